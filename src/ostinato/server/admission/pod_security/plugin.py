"""PodSecurity: evaluates Pods against the level that namespace labels select.

`enforce` rejects Pods; `warn` adds warnings and `audit` annotates the audit event, for Pods and workloads with a Pod
template. The configuration has defaults for namespaces without labels, and exemptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ostinato.api.errors import Invalid
from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path, joined
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden
from ostinato.server.admission.pod_security.configuration import PodSecurityConfiguration
from ostinato.server.admission.pod_security.versions import LATEST, LEVELS, findings, is_version
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_PREFIX: Final = "pod-security.kubernetes.io/"
# Subresources whose requests contain no Pod.
_NO_PODS: Final = frozenset(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"])
TEMPLATES: Final = {
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
    covers = resources("pods", "namespaces") | {GroupResource(*each) for each in TEMPLATES}
    judges_status_by_content = True  # it ignores them

    def __init__(self, namespaces: Lister, pods: Lister, configuration: PodSecurityConfiguration | None = None) -> None:
        given = configuration or PodSecurityConfiguration()
        self._namespaces = namespaces
        self._pods = pods
        self._exempt = given.exemptions
        self._defaults = {
            "enforce": Standard(given.defaults.enforce, given.defaults.enforce_version),
            "audit": Standard(given.defaults.audit, given.defaults.audit_version),
            "warn": Standard(given.defaults.warn, given.defaults.warn_version),
        }
        # The latest namespace, and what it demands.
        self._latest: tuple[Json | None, tuple[dict[str, Standard], list[FieldError]] | None] = (None, None)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if obj is None or operation not in ("CREATE", "UPDATE"):
            return
        gvr, sub = context.resource.gvr, context.route.subresource
        if (gvr.group, gvr.resource) == ("", "pods"):
            if sub not in _NO_PODS and not self._exempts(context):
                self._pod(context, obj, old)
        elif (gvr.group, gvr.resource) in TEMPLATES and not sub:
            if not self._exempts(context):
                self._template(context, obj)
        elif (gvr.group, gvr.resource) == ("", "namespaces") and not sub:
            self._namespace(context, obj, old)

    def _exempts(self, context: Context) -> bool:
        """Whether the namespace or the user is exempt."""
        user = context.request.user
        if context.route.namespace in self._exempt.namespaces:
            context.request.annotate(f"{_PREFIX}exempt", "namespace")
            return True
        if user is not None and user.name in self._exempt.usernames:
            context.request.annotate(f"{_PREFIX}exempt", "user")
            return True
        return False

    def _demanded(self, context: Context) -> tuple[dict[str, Standard], list[FieldError]]:
        namespace = self._namespaces.shared(context.route.namespace)
        known, demanded = self._latest
        if demanded is None or known is not namespace:
            demanded = self._standards((namespace or {}).get("metadata", {}).get("labels") or {})
            self._latest = namespace, demanded
        return demanded

    def _pod(self, context: Context, pod: Json, old: Json | None) -> None:
        demanded, faults = self._demanded(context)
        if not faults and all(standard.level == "privileged" for standard in demanded.values()):
            context.request.annotate(f"{_PREFIX}enforce-policy", str(demanded["enforce"]))
            return
        if old is None or _changes(pod["spec"], old["spec"]):
            self._evaluate(context, pod, demanded, pod["metadata"], pod["spec"], faults)

    def _evaluate(
        self,
        context: Context,
        pod: Json | None,
        demanded: dict[str, Standard],
        metadata: Json,
        spec: Json,
        faults: list[FieldError],
    ) -> None:
        """Evaluate all modes. `pod`: rejected if it violates `enforce`; None for templates, which are not rejected."""
        if spec.get("runtimeClassName") in self._exempt.runtime_classes:
            context.request.annotate(f"{_PREFIX}exempt", "runtimeClass")
            return
        if context.request.audited:
            self._annotate(context, demanded, metadata, spec, faults, enforced=pod is not None)
        if pod is not None:
            why = _violations(demanded["enforce"], metadata, spec)
            if why:
                raise forbidden(context, pod, f'violates PodSecurity "{demanded["enforce"]}": {why}')
        _warn(context, demanded["warn"], metadata, spec)

    def _annotate(
        self,
        context: Context,
        demanded: dict[str, Standard],
        metadata: Json,
        spec: Json,
        faults: list[FieldError],
        *,
        enforced: bool,
    ) -> None:
        if faults:
            context.request.annotate(f"{_PREFIX}error", f"Failed to parse policy: {joined(faults)}")
        if enforced:
            context.request.annotate(f"{_PREFIX}enforce-policy", str(demanded["enforce"]))
        why = _violations(demanded["audit"], metadata, spec)
        if why:
            violated = f'would violate PodSecurity "{demanded["audit"]}": {why}'
            context.request.annotate(f"{_PREFIX}audit-violations", violated)

    def _template(self, context: Context, obj: Json) -> None:
        spec = obj if context.resource.gvr.resource == "podtemplates" else obj.get("spec") or {}
        if context.resource.gvr.resource == "cronjobs":
            spec = (spec.get("jobTemplate") or {}).get("spec") or {}
        template = spec.get("template") or {}
        if template.get("spec"):
            demanded, faults = self._demanded(context)
            self._evaluate(context, None, demanded, template.get("metadata") or {}, template["spec"], faults)

    def _namespace(self, context: Context, new: Json, old: Json | None) -> None:
        name, labels = new["metadata"]["name"], new["metadata"].get("labels") or {}
        wanted, faults = self._standards(labels)
        before, known = self._standards(((old or {}).get("metadata") or {}).get("labels") or {})
        if faults and (old is None or list(map(str, faults)) != list(map(str, known))):
            raise Invalid.of(context.resource.gvk.group_kind, name, faults)
        now, then = wanted["enforce"], before["enforce"]
        relaxed = now.version == then.version and LEVELS.index(now.level) <= LEVELS.index(then.level)
        if old is not None and (now == then or now.level == "privileged" or relaxed):
            return
        if name in self._exempt.namespaces:
            self._warn_of_exemption(context, name, wanted, labels)
        elif old is not None:
            context.request.warnings.extend(self._existing(name, now))

    def _warn_of_exemption(self, context: Context, name: str, wanted: dict[str, Standard], labels: Json) -> None:
        """Warn that the labels of an exempt namespace have no effect."""
        if wanted == self._defaults or all(standard.level == "privileged" for standard in wanted.values()):
            return
        policies = [
            f"{mode}={standard}"
            for mode, standard in wanted.items()
            if standard.level != "privileged" and (_PREFIX + mode in labels or f"{_PREFIX}{mode}-version" in labels)
        ]
        ignored = f"is exempt from Pod Security, and the policy ({', '.join(policies)}) will be ignored"
        context.request.warnings.append(f"namespace {quote(name)} {ignored}")

    def _standards(self, labels: dict[str, str]) -> tuple[dict[str, Standard], list[FieldError]]:
        """The standard of each mode from namespace labels, and the errors in the labels."""
        demanded, faults = {}, []
        for mode, default in self._defaults.items():
            level = labels.get(_PREFIX + mode, default.level)
            version = labels.get(f"{_PREFIX}{mode}-version", default.version)
            if level not in LEVELS:
                faults.append(_fault(mode, level, f"must be one of {', '.join(LEVELS)}"))
                level = "restricted" if mode == "enforce" else "privileged"
            if version != "latest" and not is_version(version):
                faults.append(_fault(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
                version = "latest"
            demanded[mode] = Standard(level, version)
        strict, warned = demanded["enforce"], demanded["warn"]
        stricter = LEVELS.index(strict.level) > LEVELS.index(warned.level)
        if f"{_PREFIX}warn" not in labels and labels.get(_PREFIX + "enforce") in LEVELS and stricter:
            version = warned.version if f"{_PREFIX}warn-version" in labels else strict.version
            demanded["warn"] = Standard(strict.level, version)
        return demanded, faults

    def _existing(self, namespace: str, standard: Standard) -> list[str]:
        """Warnings about existing Pods that violate the new enforce level, grouped by violation."""
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
    """Whether an update is relevant to security: containers added or removed, or images changed."""
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


def _fault(label: str, value: str, detail: str) -> FieldError:
    return FieldError.invalid(Path("metadata", "labels").key(_PREFIX + label), value, detail)
