"""A stateful application: a replicated key-value store with ordered upgrades, backups and restores.

    $ ostinato up                                           # Pods are processes; as root, Services have addresses
    $ ostinato run --install-crds examples/key_value_store/store.py
    $ kubectl apply -f examples/key_value_store/store.yaml
    $ kubectl wait store/books --for=condition=Ready
    $ kubectl patch store books --type=merge -p '{"spec": {"version": "2"}}'
    $ kubectl get store books -w

- An upgrade begins with a backup: the StatefulSet gets the new version when the Job `NAME-before-VERSION` is complete.
  Then the StatefulSet replaces one Pod at a time, followers first and the first replica, which takes the writes, last.
- A CronJob backs up on a schedule. Backups are on a volume that outlives the Store.
- `spec.restoreFrom` names a backup, such as `before-2`; a Job restores it once.
- Level-based: each reconcile derives the next step from what exists, so that it resumes after a crash at any point.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from ostinato import Column, Context, CustomResource, Ge, Manager, ObjectMeta, Quantity, Struct, controller
from ostinato.api.meta import Condition, LabelSelector
from ostinato.controllers import Readiness, readiness_of
from ostinato.crd import Access
from ostinato.kinds.apps_v1 import StatefulSet, StatefulSetSpec
from ostinato.kinds.batch_v1 import CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec
from ostinato.kinds.core_v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    EnvVar,
    HTTPGetAction,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PodSpec,
    PodTemplateSpec,
    Probe,
    Service,
    ServicePort,
    ServiceSpec,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)

PROGRAM = Path(__file__).with_name("server.py").read_text()
VERSION = "example.dev/version"  # annotation of the StatefulSet


class StoreSpec(Struct):
    version: Annotated[str, Column("Wanted")] = "1"
    replicas: Annotated[int, Ge(1)] = 2
    size: Quantity = Quantity.parse("100Mi")
    backup_schedule: str = "0 3 * * *"
    restore_from: str = ""
    image: str = "python:3.13-slim"


class StoreStatus(Struct):
    version: Annotated[str, Column("Version")] = ""
    url: Annotated[str, Column("URL")] = ""
    restored_from: str = ""
    observed_generation: int = 0
    conditions: list[Condition] = []


class Store(CustomResource, group="example.dev", version="v1"):
    spec: StoreSpec
    status: StoreStatus | None = None


CLAIMS = Access(groups=("",), resources=("persistentvolumeclaims",), verbs=("get", "create", "patch"))


@controller(Store, owns=[ConfigMap, Service, StatefulSet, CronJob, Job], access=[CLAIMS])
async def stores(store: Store, ctx: Context) -> None:
    name, spec = store.metadata.name, store.spec
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"server.py": PROGRAM}), owner=store)
    await ctx.apply(claim(f"{name}-backups", spec.size))  # without an owner: backups outlive the store
    service = await ctx.apply(service_of(store), owner=store)
    url = f"http://{service.spec.cluster_ip}/" if service.spec else ""
    restored = store.status.restored_from if store.status else ""

    found = await ctx.client.get(StatefulSet, name, missing=None)
    version = spec.version if found is None else found.metadata.annotations.get(VERSION, "")
    wanted, waiting = store, None
    if found is not None and version != spec.version:
        backup = await run_once(ctx, store, job_of(store, "backup", f"before-{spec.version}", url))
        if not is_complete(backup):  # the Job is owned: its end reconciles the store again
            failed = readiness_of(backup).state == "Failed"
            waiting = Readiness("Failed" if failed else "InProgress", f"backup before version {spec.version}")
            wanted = store_as_it_runs(store, found)  # everything else need not wait

    running = await ctx.apply(statefulset_of(wanted, url), owner=store)
    await ctx.apply(cronjob_of(wanted, url), owner=store)
    ready = readiness_of(running) if waiting is None else waiting
    if ready and spec.restore_from not in ("", restored):
        restore = await run_once(ctx, store, job_of(store, "restore", spec.restore_from, url))
        if not is_complete(restore):
            ready = Readiness("InProgress", f"restore from {spec.restore_from}")
        else:
            restored = spec.restore_from
    await report(ctx, wanted.spec.version, url, ready, restored)


def store_as_it_runs(store: Store, found: StatefulSet) -> Store:
    """Return a store with the version and the image that it has now."""
    image = found.spec.template.spec.containers[0].image if found.spec.template.spec else store.spec.image
    version = found.metadata.annotations.get(VERSION, "")
    spec = msgspec.structs.replace(store.spec, version=version, image=image or store.spec.image)
    return msgspec.structs.replace(store, spec=spec)


async def run_once(ctx: Context, store: Store, job: Job) -> Job:
    """Create a Job unless it exists: its template cannot be changed, and what it does need not be done again."""
    found = await ctx.client.get(Job, job.metadata.name, missing=None)
    return await ctx.apply(job, owner=store) if found is None else found


async def report(ctx: Context, version: str, url: str, ready: Readiness, restored: str) -> None:
    status = "True" if ready else "False"
    condition = Condition(type="Ready", status=status, reason=ready.state, message=ready.message)
    await ctx.status(version=version, url=url, restored_from=restored, conditions=[condition])


def is_complete(job: Job) -> bool:
    return any(each.type == "Complete" and each.status == "True" for each in job.status.conditions)


def labels_of(store: Store) -> dict[str, str]:
    return {"app.kubernetes.io/name": "store", "app.kubernetes.io/instance": store.metadata.name}


def claim(name: str, size: Quantity) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"], resources=VolumeResourceRequirements(requests={"storage": size})
    )
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name), spec=spec)


def service_of(store: Store) -> Service:
    """The address of the first replica, which takes the writes."""
    first = {**labels_of(store), "statefulset.kubernetes.io/pod-name": f"{store.metadata.name}-0"}
    return Service(
        metadata=ObjectMeta(name=store.metadata.name),
        spec=ServiceSpec(selector=first, ports=[ServicePort(name="http", port=80, target_port="http")]),
    )


def container_of(store: Store, url: str, *arguments: str) -> Container:
    return Container(
        name="server",
        image=store.spec.image,
        command=["python3", "/app/server.py", *arguments],
        env=[EnvVar(name="VERSION", value=store.spec.version), EnvVar(name="STORE_URL", value=url)],
        volume_mounts=[VolumeMount(name="app", mount_path="/app", read_only=True)],
    )


def app_volume(store: Store) -> Volume:
    return Volume(name="app", config_map=ConfigMapVolumeSource(name=store.metadata.name))


def statefulset_of(store: Store, url: str) -> StatefulSet:
    labels = labels_of(store)
    server = container_of(store, url, "serve")
    server.ports = [ContainerPort(name="http", container_port=8080)]
    server.readiness_probe = Probe(http_get=HTTPGetAction(path="/-/version", port="http"), period_seconds=1)
    server.volume_mounts.append(VolumeMount(name="data", mount_path="/data"))
    return StatefulSet(
        metadata=ObjectMeta(name=store.metadata.name, annotations={VERSION: store.spec.version}),
        spec=StatefulSetSpec(
            replicas=store.spec.replicas,
            service_name=store.metadata.name,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[server], volumes=[app_volume(store)])
            ),
            volume_claim_templates=[claim("data", store.spec.size)],
        ),
    )


def job_spec(store: Store, url: str, *arguments: str) -> JobSpec:
    container = container_of(store, url, *arguments)
    container.volume_mounts.append(VolumeMount(name="backups", mount_path="/backups"))
    source = PersistentVolumeClaimVolumeSource(claim_name=f"{store.metadata.name}-backups")
    backups = Volume(name="backups", persistent_volume_claim=source)
    pod = PodSpec(containers=[container], volumes=[app_volume(store), backups], restart_policy="OnFailure")
    return JobSpec(template=PodTemplateSpec(spec=pod))


def job_of(store: Store, verb: str, backup: str, url: str) -> Job:
    name = f"{store.metadata.name}-{backup}" if verb == "backup" else f"{store.metadata.name}-{verb}-{backup}"
    return Job(metadata=ObjectMeta(name=name), spec=job_spec(store, url, verb, f"/backups/{backup}.json"))


def cronjob_of(store: Store, url: str) -> CronJob:
    return CronJob(
        metadata=ObjectMeta(name=f"{store.metadata.name}-backup"),
        spec=CronJobSpec(
            schedule=store.spec.backup_schedule,
            concurrency_policy="Forbid",
            job_template=JobTemplateSpec(spec=job_spec(store, url, "backup", "/backups/scheduled.json")),
        ),
    )


if __name__ == "__main__":
    Manager().add(stores).run()
