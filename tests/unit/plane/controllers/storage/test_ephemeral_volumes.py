"""Generic ephemeral volumes."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import (
    Container,
    EphemeralVolumeSource,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    Pod,
    PodSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    Volume,
    VolumeResourceRequirements,
)

CONTROLLER = "ephemeral-volume-controller"
PROTECTION = "persistentvolumeclaim-protection-controller"  # deletes claims of deleted Pods


def claim_spec() -> PersistentVolumeClaimSpec:
    return PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        storage_class_name="manual",
        resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
    )


def pod(name: str = "p") -> Pod:
    template = PersistentVolumeClaimTemplate(
        metadata=ObjectMeta(labels={"app": "web"}, annotations={"note": "mine"}), spec=claim_spec()
    )
    volume = Volume(name="data", ephemeral=EphemeralVolumeSource(volume_claim_template=template))
    spec = PodSpec(containers=[Container(name="a", image="i")], volumes=[volume])
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


async def has_claim(stage: Stage) -> PersistentVolumeClaim | None:
    return await stage.client.get(PersistentVolumeClaim, "p-data", missing=None)


def test_a_pod_gets_a_claim_that_it_owns() -> None:
    async def play(stage: Stage) -> None:
        made = await stage.client.create(pod())
        claim = await stage.until(lambda: has_claim(stage))
        assert claim is not None
        (owner,) = claim.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == (
            "Pod",
            made.metadata.uid,
            True,
            True,
        )
        assert claim.metadata.labels == {"app": "web"}
        assert claim.metadata.annotations == {"note": "mine"}
        assert claim.spec.storage_class_name == "manual"
        assert claim.spec.resources is not None
        assert claim.spec.resources.requests == {"storage": Quantity("1Gi")}
        assert await stage.events("p") == []

    on_stage(play, CONTROLLER)


def test_a_deleted_claim_is_recreated() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(pod())
        first = await stage.until(lambda: has_claim(stage))
        assert first is not None
        await stage.client.delete(PersistentVolumeClaim, "p-data")

        async def another() -> bool:
            claim = await has_claim(stage)
            return claim is not None and claim.metadata.uid != first.metadata.uid

        await stage.until(another)

    on_stage(play, CONTROLLER, PROTECTION)


def test_a_claim_that_the_pod_does_not_own_is_kept_and_an_event_reports_it() -> None:
    async def play(stage: Stage) -> None:
        theirs = await stage.client.create(PersistentVolumeClaim(metadata=ObjectMeta(name="p-data"), spec=claim_spec()))
        await stage.client.create(pod())

        async def told() -> list[tuple[str, str]]:
            return await stage.events("p")

        assert (await stage.until(told))[0] == (
            "FailedBinding",
            "ephemeral volume data: PVC default/p-data was not created for pod default/p (pod is not owner)",
        )
        claim = await has_claim(stage)
        assert claim is not None
        assert claim.metadata.resource_version == theirs.metadata.resource_version
        await stage.client.delete(PersistentVolumeClaim, "p-data")

        async def own() -> bool:
            claim = await has_claim(stage)
            return claim is not None and bool(claim.metadata.owner_references)

        await stage.until(own)

    on_stage(play, CONTROLLER, PROTECTION)


def test_a_rejected_claim_is_reported_and_retried() -> None:
    async def play(stage: Stage) -> None:
        quota = ResourceQuotaSpec(hard={"persistentvolumeclaims": Quantity("0")})
        await stage.client.create(ResourceQuota(metadata=ObjectMeta(name="none"), spec=quota))
        await stage.settle()
        await stage.client.create(pod())

        async def told() -> list[tuple[str, str]]:
            return await stage.events("p")

        reason, note = (await stage.until(told))[0]
        assert reason == "FailedBinding"
        assert note.startswith('ephemeral volume data: create PVC p-data: persistentvolumeclaims "p-data" is forbidden')
        await stage.client.delete(ResourceQuota, "none")
        assert await stage.until(lambda: has_claim(stage)) is not None

    on_stage(play, CONTROLLER, "resourcequota-controller")
