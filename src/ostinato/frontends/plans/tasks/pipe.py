"""Task Pipe: a Pod writes files, which become a Secret or a ConfigMap that later templates name by `.Pipes.KEY`.

- The package gives a Pod with one init container and one emptyDir volume. A container that waits is added to it, and
  the files are read from that when the init container has ended.
- A file may have 1 MiB. `envFile` stores the variables of a file, `file` the whole content.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.frontends.plans.api import OperatorVersionSpec, Pipe, Plan, TaskSpec
from ostinato.frontends.plans.engine.execute import DONE, TaskResult
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.decoration import Names, decorate
from ostinato.frontends.plans.tasks.errors import PIPE, VALIDATION, FatalError
from ostinato.frontends.plans.tasks.health import health_of
from ostinato.frontends.plans.tasks.manifests import parsed, rendered

Json = dict[str, Any]

PIPE_POD: Final = "kudo.dev/pipepod"  # annotation
_CONTAINER: Final = "waiter"
_IMAGE: Final = "busybox"
_MAX_FILE: Final = 1 << 20  # bytes
_KEY: Final = re.compile(r"[a-zA-Z0-9_\-]+")
_FILE_NAME: Final = re.compile(r"[-._a-zA-Z0-9]+")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


async def pipe(spec: TaskSpec, context: TaskContext) -> TaskResult:
    text = rendered(context.templates, spec.pod, context.values, context.world)
    instances = parsed(text, spec.pod, named=False)  # the Pod gets the name of its step
    if len(instances) != 1 or instances[0]["kind"] != "Pod":
        raise FatalError(f"pipe task needs one Pod in {spec.pod}", VALIDATION)
    pod = await context.cluster.place(pipe_pod(instances[0], spec.pipe or [], context.names), context.owner)
    decorate(pod, context.names)
    running = await context.cluster.apply(pod, context.owner)
    if not (health := health_of(running)):
        return TaskResult("waiting", health.message)
    contents = await asyncio.gather(*(_content(_source(each), running, context) for each in spec.pipe or ()))
    for each, content in zip(spec.pipe or (), contents, strict=True):
        stored = await context.cluster.place(_artifact(each, content, context.names), context.owner)
        decorate(stored, context.names)
        await context.cluster.apply(stored, context.owner)
    await context.cluster.delete(running)
    return DONE


def pipe_problem(each: Pipe) -> str:
    """Return what is wrong with the files of a pipe task, or ""."""
    if bool(each.file) == bool(each.env_file):
        return f"pipe file {each.key}: set either 'file' or 'envFile'"
    if each.kind not in ("Secret", "ConfigMap"):
        return f"pipe file {each.key}: invalid pipe kind {each.kind!r}; use Secret or ConfigMap"
    if not _KEY.fullmatch(each.key):
        return f"invalid pipe key {each.key!r}; only letters, numbers and _ and - are allowed"
    return ""


def pipe_pod(pod: Json, files: list[Pipe], names: Names) -> Json:
    """Return the Pod of a package with the container that keeps it, after the checks of its form."""
    spec = pod.get("spec") if isinstance(pod.get("spec"), dict) else {}
    assert isinstance(spec, dict)
    if spec.get("containers"):
        raise FatalError("pipe pod should not have containers; the init container writes the files", VALIDATION)
    inits = spec.get("initContainers") or []
    if len(inits) != 1:
        raise FatalError("pipe pod should define one init container", VALIDATION)
    if spec.get("restartPolicy", "OnFailure") != "OnFailure":
        raise FatalError("pipe pod restartPolicy should be OnFailure", VALIDATION)
    volumes = [each["name"] for each in spec.get("volumes") or () if isinstance(each.get("emptyDir"), dict)]
    if len(volumes) != 1:
        raise FatalError("pipe pod should define one emptyDir volume", VALIDATION)
    mounts = [each["mountPath"] for each in inits[0].get("volumeMounts") or () if each.get("name") == volumes[0]]
    if not mounts:
        raise FatalError(f"pipe pod should mount {volumes[0]} in its init container", VALIDATION)
    for each in files:
        _check_path(_source(each), mounts[0])
    access.set_annotation(pod, PIPE_POD, "true")
    access.writable_metadata(pod)["name"] = artifact_name(names, "pipepod")
    waiter = {
        "name": _CONTAINER,
        "image": _IMAGE,
        "command": ["/bin/sh", "-c"],
        "args": ["sleep infinity"],
        "volumeMounts": [{"name": volumes[0], "mountPath": mounts[0]}],
    }
    return {**pod, "spec": {**spec, "restartPolicy": "OnFailure", "containers": [waiter]}}


def _check_path(file: str, mount: str) -> None:
    path = PurePosixPath(file)
    if ".." in path.parts or not path.is_relative_to(mount) or path == PurePosixPath(mount):
        raise FatalError(f"pipe file {file} should be a child of {mount} mount path", VALIDATION)
    if not _FILE_NAME.fullmatch(path.name):
        raise FatalError(
            f"pipe file name {path.name} should only contain alphanumeric characters, '.', '_' and '-'", VALIDATION
        )


async def _content(file: str, pod: Json, context: TaskContext) -> bytes:
    run = context.cluster.client.live.pods.run
    done = await run(
        access.name(pod),
        ["head", "-c", str(_MAX_FILE + 1), file],
        namespace=access.namespace(pod),
        container=_CONTAINER,
    )
    if done.exit_code:
        raise FatalError(f"pipe file {file}: {done.stderr.decode(errors='replace').strip()}", PIPE)
    if len(done.stdout) > _MAX_FILE:
        raise FatalError(f"pipe file {file} size exceeds maximum file size of {_MAX_FILE} bytes", PIPE)
    return done.stdout


def _artifact(each: Pipe, content: bytes, names: Names) -> Json:
    """Return the Secret or ConfigMap of a file."""
    found: Json = {
        "apiVersion": "v1",
        "kind": each.kind,
        "metadata": {"name": artifact_name(names, each.key), "namespace": names.namespace},
    }
    if each.env_file:
        values = variables_of(content, each.env_file)
        encoded = {name: b64encode(value.encode()).decode() for name, value in values.items()}
        found["data"] = encoded if each.kind == "Secret" else values
    else:
        field = "data" if each.kind == "Secret" else "binaryData"
        found[field] = {PurePosixPath(each.file).name: b64encode(content).decode()}
    if each.kind == "Secret":
        found["type"] = "Opaque"
    return found


def variables_of(content: bytes, name: str) -> dict[str, str]:
    """Parse a file of KEY=VALUE lines. Raises FatalError."""
    found: dict[str, str] = {}
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FatalError(f"failed to read env var file {name}: {error}", PIPE) from None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.removesuffix("\r").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        key, equals, value = stripped.partition("=")
        if not equals or not _VARIABLE.fullmatch(key):
            raise FatalError(f"{name}:{number}: not a variable; write NAME=VALUE", PIPE)
        found[key] = value
    return found


def artifact_name(names: Names, suffix: str) -> str:
    """Return the name of the Pod, the Secret or the ConfigMap of a pipe."""
    parts = (names.instance, names.plan, names.phase, names.step, names.task, suffix)
    return ".".join(re.sub(r"[^a-z0-9]+", "", part.lower()) for part in parts)


def pipes_of(plan: Plan, version: OperatorVersionSpec, names: Names) -> Mapping[str, str]:
    """Return `.Pipes`: the names of the Secrets and ConfigMaps of a plan, by key. Raises FatalError."""
    import msgspec  # noqa: PLC0415 - plans without pipes do not need it

    tasks = {each.name: each for each in version.tasks}
    found: dict[str, str] = {}
    for phase in plan.phases or ():
        for step in phase.steps:
            for name in step.tasks:
                task = tasks.get(name)
                if task is None or task.kind != "Pipe":
                    continue
                at = msgspec.structs.replace(names, phase=phase.name, step=step.name, task=name)
                for each in task.spec.pipe or ():
                    if each.key in found:
                        raise FatalError(f"duplicated pipe key {each.key}", "InvalidPlan")
                    found[each.key] = artifact_name(at, each.key)
    return found


def _source(each: Pipe) -> str:
    return each.file or each.env_file
