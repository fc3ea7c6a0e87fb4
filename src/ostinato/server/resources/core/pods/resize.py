"""Strategy of pods/resize: change the resources of running containers."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.rules import keep_metadata, restore_field, validate_pod
from ostinato.server.resources.core.pods.spec.resources import quality_of_service
from ostinato.server.resources.strategy import Json, Strategy

_SPEC = Path("spec")
_KINDS = ("initContainers", "containers")
_RESIZABLE = ("cpu", "memory")
_RESTART = "RestartContainer"
_MIRROR = "kubernetes.io/config.mirror"


class Resize(Strategy):
    generation = True

    def prepare_update(self, new: Json, old: Json) -> None:
        spec = dict(old["spec"])
        for kind in _KINDS:
            containers, before = new["spec"].get(kind) or [], old["spec"].get(kind) or []
            if [c.get("name") for c in containers] != [c.get("name") for c in before]:
                return  # added and removed containers are rejected by validation
            if before:
                spec[kind] = [_resized(c, b) for c, b in zip(containers, before, strict=True)]
        restore_field("resources", spec, new["spec"])
        new["spec"] = spec
        keep_metadata(new, old)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        if _MIRROR in old["metadata"].get("annotations", {}):
            return [FieldError.forbidden(Path("[]"), "static pods cannot be resized")]
        if old["spec"].get("os", {}).get("name") == "windows":
            return [FieldError.forbidden(Path("[]"), "windows pods cannot be resized")]
        errors = validate_pod(new)
        quality = old.get("status", {}).get("qosClass", "")
        if quality != quality_of_service(new["spec"]):
            detail = "Pod QOS Class may not change as a result of resizing"
            errors.append(FieldError.invalid(_SPEC, quality, detail))
        if not _is_supported(old):
            errors.append(FieldError.forbidden(_SPEC, "Pod running on node without support for resize"))
        errors += _validate_pod_level(new["spec"].get("resources"), old["spec"].get("resources"))
        order = _validate_order(new["spec"], old["spec"])
        return errors + (order or _validate_containers(new["spec"], old["spec"]))


def _resized(container: Json, old: Json) -> Json:
    made = {**old, "resources": container.get("resources", {})}
    restore_field("resizePolicy", made, container)
    return made


def _is_supported(pod: Json) -> bool:
    """Whether the node supports resizing: it reports the resources of running containers."""
    running = (c for c in pod.get("status", {}).get("containerStatuses", ()) if "running" in c.get("state", {}))
    return all("resources" in container for container in list(running)[:1])


def _validate_order(spec: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        containers, before, path = spec.get(kind) or [], old.get(kind) or [], _SPEC.child(kind)
        if len(containers) != len(before):
            errors.append(FieldError.forbidden(path, f"{kind} may not be added or removed on resize"))
            continue
        errors += [
            FieldError.forbidden(path.index(i).child("name"), f"{kind} may not be renamed or reordered on resize")
            for i, (container, previous) in enumerate(zip(containers, before, strict=True))
            if container.get("name") != previous.get("name")
        ]
    return errors


def _validate_pod_level(resources: Json | None, old: Json | None) -> list[FieldError]:
    if not resources and not old:
        return []
    path = _SPEC.child("resources")
    if old is not None and resources is None:
        return [FieldError.forbidden(path, "pod-level resources cannot be removed")]
    errors = [
        FieldError.forbidden(path.child(side), f"pod-level resource {side} cannot be removed")
        for side in ("requests", "limits")
        if _removed(resources, old, side)
    ]
    if _immutable_part(resources) != _immutable_part(old):
        errors.append(FieldError.forbidden(_SPEC, "only cpu and memory resources are mutable at pod-level"))
    return errors


def _validate_containers(spec: Json, old: Json) -> list[FieldError]:
    pairs = {kind: list(zip(spec.get(kind) or (), old.get(kind) or (), strict=True)) for kind in _KINDS}
    errors: list[FieldError] = []
    for kind in _KINDS:
        for i, (container, before) in enumerate(pairs[kind]):
            path = _SPEC.child(kind).index(i).child("resources")
            errors += [
                FieldError.forbidden(path.child(side), f"resource {side} cannot be removed")
                for side in ("requests", "limits")
                if _removed(container.get("resources"), before.get("resources"), side)
            ]
    errors += [
        FieldError.forbidden(_SPEC, "only cpu and memory resources are mutable")
        for container, before in pairs["containers"]
        if _differs(container, before)
    ]
    for i, (container, before) in enumerate(pairs["initContainers"]):
        path = _SPEC.child("initContainers").index(i)
        if _differs(container, before):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(FieldError.forbidden(path, detail))
        if container != before and container.get("restartPolicy") != "Always":
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            policies = container.get("resizePolicy", ())
            errors += [FieldError.forbidden(path, detail) for each in policies if each["restartPolicy"] == _RESTART]
    return errors


def _differs(container: Json, before: Json) -> bool:
    """Whether resources other than CPU and memory would change; containers with claims cannot be resized."""
    new, old = container.get("resources"), before.get("resources")
    claims = (old or {}).get("claims")
    return (
        bool(claims)
        or _immutable_part(new) != _immutable_part(old)
        or container.get("resizePolicy") != before.get("resizePolicy")
    )


def _removed(new: Json | None, old: Json | None, side: str) -> bool:
    return not set((old or {}).get(side, ())) <= set((new or {}).get(side, ()))


def _immutable_part(resources: Json | None) -> Json:
    """The part of resources that a resize cannot change."""
    given = resources or {}
    return {
        side: {name: amount for name, amount in given.get(side, {}).items() if name not in _RESIZABLE}
        for side in ("requests", "limits")
    }
