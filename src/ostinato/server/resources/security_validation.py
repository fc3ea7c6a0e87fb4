"""What is wrong with the security contexts of Pods and containers."""

from __future__ import annotations

from ostinato.api import field_values
from ostinato.api.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation import checked, descending_path, one_of

_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_ESCALATION = "cannot set `allowPrivilegeEscalation` to false and "


def validate_security_context(context: Json, path: Path, *, host_users: bool) -> list[FieldError]:
    """That of a container."""
    errors: list[FieldError] = []
    for field in ("runAsUser", "runAsGroup"):
        if field in context:
            errors += checked(field_values.is_user_id, context[field], path.child(field))
    mount, where = context.get("procMount"), path.child("procMount")
    if mount is not None:
        errors += one_of(mount, ("Default", "Unmasked"), where)
        if host_users and mount == "Unmasked":
            errors.append(FieldError.invalid(where, mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            errors.append(FieldError.invalid(path, context, f"{_ESCALATION}`privileged` to true"))
        if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
            errors.append(FieldError.invalid(path, context, f"{_ESCALATION}`capabilities.Add` CAP_SYS_ADMIN"))
    return errors


def validate_pod_security_context(context: Json, spec: Json, path: Path) -> list[FieldError]:
    """That of a Pod."""
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if field in context:
            errors += checked(field_values.is_user_id, context[field], path.child(field))
    for i, group in enumerate(context.get("supplementalGroups", ())):
        errors += checked(field_values.is_user_id, group, path.child("supplementalGroups").index(i))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        where = path.child("shareProcessNamespace")
        errors.append(FieldError.invalid(where, True, "ShareProcessNamespace and HostPID cannot both be enabled"))  # noqa: FBT003
    for field, supported in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        value = context.get(field)
        if value is not None and value not in supported:
            errors.append(FieldError.not_supported(path.child(field), value, supported))
    return errors + _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))


def _validate_seccomp(profile: Json | None, path: Path) -> list[FieldError]:
    if profile is None:
        return []
    kind = profile.get("type", "")
    errors = one_of(kind, _SECCOMP, path.child("type"))
    if not kind:
        errors = [FieldError.required(path.child("type"), "type is required when seccompProfile is set")]
    where, local = path.child("localhostProfile"), profile.get("localhostProfile")
    if profile.get("type") == "Localhost":
        if local is None:
            return [*errors, FieldError.required(where, "must be set when seccomp type is Localhost")]
        return errors + descending_path(local, where)
    if local is not None:
        errors.append(FieldError.invalid(where, profile, "can only be set when seccomp type is Localhost"))
    return errors
