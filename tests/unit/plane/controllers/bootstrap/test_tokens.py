"""Bootstrap tokens: expiration, and signatures of cluster-info."""

from __future__ import annotations

from datetime import timedelta

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.api.time import Time
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.plane.controllers.bootstrap.signer import signature

CLEANER, SIGNER = "token-cleaner-controller", "bootstrap-signer-controller"


def secret(stage: Stage, name: str = "abcdef", *, lives: float | None = None, **data: str) -> Secret:
    said = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"} | data
    if lives is not None:
        said["expiration"] = str(Time.of(stage.world.clock.now() + timedelta(seconds=lives)))
    return Secret(
        metadata=ObjectMeta(name=f"bootstrap-token-{name}", namespace="kube-system"),
        type="bootstrap.kubernetes.io/token",
        data={key.replace("_", "-"): value.encode() for key, value in said.items()},
    )


def test_a_bootstrap_token_is_deleted_when_it_expires() -> None:
    async def play(stage: Stage) -> None:
        for name, lives in (("aaaaaa", 3600), ("bbbbbb", None), ("cccccc", -1)):
            await stage.client.create(secret(stage, name, lives=lives))
        await stage.client.create(secret(stage, "dddddd", expiration="tomorrow"))
        await stage.settle()
        left = [each.metadata.name[-6:] for each in await stage.client.list(Secret, namespace="kube-system")]
        assert left == ["aaaaaa", "bbbbbb"]
        await stage.world.clock.sleep(3590)
        assert await stage.client.get(Secret, "bootstrap-token-aaaaaa", namespace="kube-system")
        await stage.world.clock.sleep(20)
        left = [each.metadata.name[-6:] for each in await stage.client.list(Secret, namespace="kube-system")]
        assert left == ["bbbbbb"]

    on_stage(play, CLEANER)


def test_cluster_info_is_signed_with_the_tokens_that_are_for_signing() -> None:
    async def play(stage: Stage) -> None:
        info = ConfigMap(metadata=ObjectMeta(name="cluster-info", namespace="kube-public"), data={"kubeconfig": "a: 1"})
        await stage.client.create(info)
        await stage.client.create(secret(stage, "aaaaaa", lives=600))
        await stage.client.create(secret(stage, "bbbbbb"))
        await stage.client.create(secret(stage, "cccccc", usage_bootstrap_signing="false"))
        await stage.settle()
        found = await stage.client.get(ConfigMap, "cluster-info", namespace="kube-public")
        signed = {
            f"jws-kubeconfig-{name}": signature("a: 1", name, "0123456789abcdef") for name in ("aaaaaa", "bbbbbb")
        }
        assert found.data == {"kubeconfig": "a: 1", **signed}
        await stage.client.patch(
            ConfigMap, "cluster-info", MergePatch({"data": {"kubeconfig": "b: 2"}}), namespace="kube-public"
        )
        await stage.world.clock.sleep(700)
        found = await stage.client.get(ConfigMap, "cluster-info", namespace="kube-public")
        assert found.data == {
            "kubeconfig": "b: 2",
            "jws-kubeconfig-bbbbbb": signature("b: 2", "bbbbbb", "0123456789abcdef"),
        }

    on_stage(play, SIGNER)


def test_a_signature_equals_that_of_kubeadm() -> None:
    """Signature as computed by token/jws of k8s.io/cluster-bootstrap."""
    assert signature("", "joshua", "my voice is my passcode") == (
        "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk"
    )
