"""Decoration of applied objects: labels, annotations, owner, and the hash of the configuration that Pods use.

- Every object, and every Pod template in it, is labelled with its operator and its instance.
- Annotations name the plan, phase and step that applied the object. Pod templates get only the operator's version:
  other annotations would restart Pods at every run.
- Pod templates get a hash over the ConfigMaps and Secrets that they mount, so that a change of these restarts the Pods.
  The hash is KUDO's: an instance that KUDO installed is not restarted by a change of controllers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import md5
from typing import Any, Final

import msgspec

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.frontends.plans.api import HERITAGE_LABEL, INSTANCE_LABEL, OPERATOR_LABEL

Json = dict[str, Any]

OPERATOR_VERSION: Final = "kudo.dev/operator-version"
PLAN: Final = "kudo.dev/plan"
PHASE: Final = "kudo.dev/phase"
STEP: Final = "kudo.dev/step"
PLAN_UID: Final = "kudo.dev/last-plan-execution-uid"
HASH: Final = "kudo.dev/dependencies-hash"
SKIP_HASH: Final = "kudo.dev/skip-hash-calculation"
LAST_APPLIED: Final = "kudo.dev/last-applied-configuration"  # of KUDO's three-way merge

_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {  # kind: groups whose Pod template is at spec.template
    "Deployment": ("apps",),
    "StatefulSet": ("apps",),
    "ReplicaSet": (),
    "DaemonSet": (),
    "ReplicationController": (),
    "Job": ("batch",),
}
_NONE: Final = b"\0" * 16  # hash of an object that does not exist, or is not to be hashed


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Names of what runs: `.Name`, `.PlanName` and the others in templates."""

    instance: str
    namespace: str
    operator: str
    operator_version: str
    app_version: str
    plan: str
    uid: str
    phase: str = ""
    step: str = ""
    task: str = ""

    @property
    def path(self) -> str:
        return ".".join((self.plan, self.phase, self.step, self.task))


def decorate(instance: Json, names: Names) -> None:
    """Add labels and annotations to an object and to the Pod templates in it."""
    labels = {HERITAGE_LABEL: "kudo", OPERATOR_LABEL: names.operator, INSTANCE_LABEL: names.instance}
    _merge(instance, "labels", labels)
    _merge(
        instance,
        "annotations",
        {PLAN: names.plan, PHASE: names.phase, STEP: names.step, PLAN_UID: names.uid},
    )
    for template in pod_templates(instance):
        _merge(template, "labels", labels)
        _merge(template, "annotations", {OPERATOR_VERSION: names.operator_version})
    if instance.get("kind") == "StatefulSet":
        for claim in _list(_map(instance.get("spec")).get("volumeClaimTemplates")):
            _merge(claim, "labels", labels)


def pod_templates(instance: Json) -> Iterator[Json]:
    """Return the Pod templates of a workload, which are decorated."""
    kind, group = str(instance.get("kind")), str(instance.get("apiVersion", "")).rpartition("/")[0]
    spec = _map(instance.get("spec"))
    if kind == "CronJob" and group == "batch":
        spec = _map(_map(spec.get("jobTemplate")).get("spec"))
    elif kind not in _TEMPLATES or (_TEMPLATES[kind] and group not in _TEMPLATES[kind]):
        return
    if isinstance(template := spec.get("template"), dict):
        yield template


def _merge(target: Any, field: str, entries: Mapping[str, str]) -> None:
    if not isinstance(target, dict):
        return
    metadata = target.get("metadata")
    if not isinstance(metadata, dict):
        metadata = target["metadata"] = {}
    present = metadata.get(field)
    metadata[field] = {**(present if isinstance(present, dict) else {}), **entries}


Get = Callable[[str, str], Awaitable[Json | None]]
"""Reads an object of the instance's namespace: kind and name."""


async def add_hashes(instances: Sequence[Json], get: Get) -> None:
    """Annotate Pod templates with the hash of the ConfigMaps and Secrets that they use.

    `instances`: all objects of a task; an object among them counts as it will be.
    """
    local = {(str(each.get("kind")), _name(each)): each for each in instances}
    known: dict[tuple[str, str], bytes] = {}
    for instance in instances:
        for template in pod_templates(instance):
            used = sorted(set(_dependencies(_map(template.get("spec")))))
            if not used:
                continue
            digest = md5(usedforsecurity=False)
            for kind, name in used:
                if (kind, name) not in known:
                    known[kind, name] = _hash(local.get((kind, name)) or await get(kind, name))
                digest.update(known[kind, name])
            _merge(template, "annotations", {HASH: digest.hexdigest()})


def _dependencies(spec: Json) -> Iterator[tuple[str, str]]:
    for secret in _list(spec.get("imagePullSecrets")):
        yield "Secret", str(_map(secret).get("name", ""))
    for volume in _list(spec.get("volumes")):
        if isinstance(source := _map(volume).get("configMap"), dict):
            yield "ConfigMap", str(source.get("name", ""))
        if isinstance(source := _map(volume).get("secret"), dict):
            yield "Secret", str(source.get("secretName", ""))


def _hash(instance: Json | None) -> bytes:
    if instance is None or SKIP_HASH in _map(_map(instance.get("metadata")).get("annotations")):
        return _NONE
    return md5(_canonical(instance).encode(), usedforsecurity=False).digest()


def _canonical(instance: Json) -> str:
    """Return what an object is hashed by: its content, name and labels, in KUDO's form."""
    content = {name: value for name, value in instance.items() if name != "metadata" and value not in (None, {})}
    if "stringData" in content:
        content["data"] = {**_map(content.get("data")), **_encoded(content.pop("stringData"))}
    if content.get("type") == "Opaque":
        del content["type"]  # the server's default
    metadata = _map(instance.get("metadata"))
    content["apiVersion"] = content["kind"] = ""
    content["metadata"] = {
        "annotations": {},
        "deletionGracePeriodSeconds": 0,
        "finalizers": [],
        "labels": _map(metadata.get("labels")),
        "managedFields": [],
        "name": metadata.get("name", ""),
        "ownerReferences": [],
        "remainingItemCount": 0,
    }
    return encode_yaml({"object": content}).decode()


def _encoded(texts: Any) -> dict[str, str]:
    from base64 import b64encode  # noqa: PLC0415 - Secrets with stringData only

    return {name: b64encode(str(value).encode()).decode() for name, value in _map(texts).items()}


def _name(instance: Json) -> str:
    return str(_map(instance.get("metadata")).get("name", ""))


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
