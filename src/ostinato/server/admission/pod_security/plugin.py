"""Pod security: namespaces say by their labels which level of the Pod security standards they demand.

`enforce` refuses Pods, `warn` tells the client, of Pods and of what makes Pods from a template. `audit` is read and
checked, but a server without an audit log has nowhere to write it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ostinato.api.errors import Invalid
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupResource
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import Kind, forbidden
from ostinato.server.admission.pod_security.versions import LATEST, LEVELS, findings
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.verbs.context import Context

_PREFIX: Final = "pod-security.kubernetes.io/"
_is_version = re.compile(r"v1\.(0|[1-9][0-9]*)").fullmatch
# Subresources of Pods that show none.
_NO_PODS: Final = frozenset(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"])
_TEMPLATES: Final = {
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("", "replicationcontrollers"),
    ("", "podtemplates"),
}


class Standard(NamedTuple):
    level: str = "privileged"
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


class PodSecurity(Plugin):
    about = resources("pods", "namespaces") | {GroupResource(*each) for each in _TEMPLATES}

    def __init__(self, namespaces: Kind, pods: Kind) -> None:
        self._namespaces = namespaces
        self._pods = pods

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if obj is None or operation not in ("CREATE", "UPDATE"):
            return
        gvr, sub = context.resource.gvr, context.route.subresource
        if (gvr.group, gvr.resource) == ("", "pods"):
            if sub not in _NO_PODS and (old is None or _changes(obj["spec"], old["spec"])):
                self._pod(context, obj)
        elif (gvr.group, gvr.resource) in _TEMPLATES and not sub:
            self._template(context, obj)
        elif (gvr.group, gvr.resource) == ("", "namespaces") and not sub:
            self._namespace(context, obj, old)

    def _demanded(self, context: Context) -> dict[str, Standard]:
        namespace = self._namespaces.get(context.route.namespace)
        return _standards((namespace or {}).get("metadata", {}).get("labels") or {})[0]

    def _pod(self, context: Context, pod: Json) -> None:
        demanded = self._demanded(context)
        why = _violations(demanded["enforce"], pod["metadata"], pod["spec"])
        if why:
            raise forbidden(context, pod, f'violates PodSecurity "{demanded["enforce"]}": {why}')
        _warn(context, demanded["warn"], pod["metadata"], pod["spec"])

    def _template(self, context: Context, obj: Json) -> None:
        spec = obj if context.resource.gvr.resource == "podtemplates" else obj.get("spec") or {}
        if context.resource.gvr.resource == "cronjobs":
            spec = (spec.get("jobTemplate") or {}).get("spec") or {}
        template = spec.get("template") or {}
        if template.get("spec"):
            _warn(context, self._demanded(context)["warn"], template.get("metadata") or {}, template["spec"])

    def _namespace(self, context: Context, new: Json, old: Json | None) -> None:
        wanted, faults = _standards(new["metadata"].get("labels") or {})
        before, known = _standards(((old or {}).get("metadata") or {}).get("labels") or {})
        if faults and (old is None or list(map(str, faults)) != list(map(str, known))):
            raise Invalid.of(context.resource.gvk.group_kind, new["metadata"]["name"], faults)
        now, then = wanted["enforce"], before["enforce"]
        relaxed = now.version == then.version and LEVELS.index(now.level) <= LEVELS.index(then.level)
        if old is not None and now != then and not relaxed:
            context.request.warnings.extend(self._existing(new["metadata"]["name"], now))

    def _existing(self, namespace: str, standard: Standard) -> list[str]:
        """What of the Pods that run already would not be let in any more; those with the same faults together."""
        found: dict[str, list[str]] = {}
        for entry in self._pods.entries(namespace):
            pod = self._pods.resource.object(entry.data)
            reasons = [reason for reason, _ in findings(standard.level, standard.version, pod["metadata"], pod["spec"])]
            if reasons:
                found.setdefault(", ".join(reasons), []).append(pod["metadata"]["name"])
        if not found:
            return []
        intro = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"'
        return [intro, *sorted(f"{_some(sorted(names))}: {reasons}" for reasons, names in found.items())]


def _some(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    others = len(names) - 1
    return f"{names[0]} (and {others} other pod{'s' if others > 1 else ''})"


def _changes(new: Json, old: Json) -> bool:
    """Whether an update makes another Pod of it, as security goes: containers come, go, or run something else."""
    if any(_images(new, field) != _images(old, field) for field in ("containers", "initContainers")):
        return True
    before = {container["name"]: container.get("image") for container in old.get("ephemeralContainers") or ()}
    return any(before.get(one["name"], "") != one.get("image") for one in new.get("ephemeralContainers") or ())


def _images(spec: Json, field: str) -> list[str | None]:
    return [container.get("image") for container in spec.get(field) or ()]


def _violations(standard: Standard, metadata: Json, spec: Json) -> str:
    return ", ".join(f"{why} ({detail})" for why, detail in findings(standard.level, standard.version, metadata, spec))


def _warn(context: Context, standard: Standard, metadata: Json, spec: Json) -> None:
    why = _violations(standard, metadata, spec)
    if why:
        context.request.warnings.append(f'would violate PodSecurity "{standard}": {why}')


def _standards(labels: dict[str, str]) -> tuple[dict[str, Standard], list[FieldError]]:
    """What the labels of a namespace demand in each mode, and what is wrong with them."""
    demanded, faults = {}, []
    for mode in ("enforce", "audit", "warn"):
        level, version = labels.get(_PREFIX + mode, "privileged"), labels.get(f"{_PREFIX}{mode}-version", "latest")
        if level not in LEVELS:
            faults.append(_fault(mode, level, f"must be one of {', '.join(LEVELS)}"))
            level = "restricted" if mode == "enforce" else "privileged"
        if version != "latest" and not _is_version(version):
            faults.append(_fault(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        demanded[mode] = Standard(level, version)
    strict, said = demanded["enforce"], f"{_PREFIX}warn" in labels
    if not said and labels.get(_PREFIX + "enforce") in LEVELS and strict.level != "privileged":
        version = demanded["warn"].version if f"{_PREFIX}warn-version" in labels else strict.version
        demanded["warn"] = Standard(strict.level, version)
    return demanded, faults


def _fault(label: str, value: str, detail: str) -> FieldError:
    return FieldError.invalid(Path("metadata", "labels").key(_PREFIX + label), value, detail)
