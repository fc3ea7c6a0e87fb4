"""Validation of the security contexts of Pods and containers."""

from __future__ import annotations

import re

from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.windows import validate_windows_options
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, descending_path, listed, one_of
from ostinato.server.resources.validation.internal_values import as_internal

_LONGEST_SYSCTL = 253
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"
_is_sysctl = re.compile(_SYSCTL).fullmatch
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_APP_ARMOR = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095  # bytes, the maximum of a path
_ESCALATION = "cannot set `allowPrivilegeEscalation` to false and "


def validate_app_armor(profile: Json | None, path: Path) -> list[FieldError]:
    if profile is None:
        return []
    kind, name, at = profile.get("type", ""), profile.get("localhostProfile"), path.child("localhostProfile")
    if not kind:
        return [FieldError.required(path.child("type"), "type is required when appArmorProfile is set")]
    if kind not in _APP_ARMOR:
        return [FieldError.not_supported(path.child("type"), kind, _APP_ARMOR)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if name is None else [FieldError.invalid(at, name, detail)]
    if not name:
        return [FieldError.required(at, "must be set when AppArmor type is Localhost")]
    errors = []
    if name.strip() != name:
        errors.append(FieldError.invalid(at, name, "must not be padded with whitespace"))
    if names.byte_length(name) > _LONGEST_PROFILE:
        errors.append(FieldError.too_long(at, _LONGEST_PROFILE))
    return errors


def validate_security_context(context: Json, path: Path, *, host_users: bool) -> list[FieldError]:
    """Validate the securityContext of a container."""
    errors: list[FieldError] = []
    for field in ("runAsUser", "runAsGroup"):
        if field in context:
            errors += checked(field_values.is_user_id, context[field], path.child(field))
    mount, where = context.get("procMount"), path.child("procMount")
    if mount is not None:
        errors += listed(mount, ("Default", "Unmasked"), where)
        if host_users and mount == "Unmasked":
            errors.append(FieldError.invalid(where, mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            errors.append(
                FieldError.invalid(
                    path, as_internal("core.v1.SecurityContext", context), f"{_ESCALATION}`privileged` to true"
                )
            )
        if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
            errors.append(
                FieldError.invalid(
                    path,
                    as_internal("core.v1.SecurityContext", context),
                    f"{_ESCALATION}`capabilities.Add` CAP_SYS_ADMIN",
                )
            )
    errors += validate_windows_options(context.get("windowsOptions"), path.child("windowsOptions"))
    return errors + validate_app_armor(context.get("appArmorProfile"), path.child("appArmorProfile"))


def validate_pod_security_context(context: Json, spec: Json, path: Path) -> list[FieldError]:
    """Validate the securityContext of a Pod."""
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        if field in context:
            errors += checked(field_values.is_user_id, context[field], path.child(field))
    for i, group in enumerate(context.get("supplementalGroups", ())):
        errors += checked(field_values.is_user_id, group, path.child("supplementalGroups").index(i))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        where = path.child("shareProcessNamespace")
        errors.append(FieldError.invalid(where, True, "ShareProcessNamespace and HostPID cannot both be enabled"))  # noqa: FBT003
    if context.get("sysctls"):
        errors += _validate_sysctls(context["sysctls"], spec, path.child("sysctls"))
    errors += _validate_choice(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    errors += _validate_seccomp(context.get("seccompProfile"), path.child("seccompProfile"))
    errors += validate_windows_options(context.get("windowsOptions"), path.child("windowsOptions"))
    errors += validate_app_armor(context.get("appArmorProfile"), path.child("appArmorProfile"))
    errors += _validate_choice(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    return errors + _validate_choice(context, "seLinuxChangePolicy", ("Recursive",), path)


def _validate_choice(context: Json, field: str, supported: tuple[str, ...], path: Path) -> list[FieldError]:
    value = context.get(field)
    if value is None or value in supported:
        return []
    return [FieldError.not_supported(path.child(field), value, supported)]


def _validate_sysctls(sysctls: list[Json], spec: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, sysctl in enumerate(sysctls):
        name, where = sysctl.get("name", ""), path.index(i).child("name")
        if not name:
            errors.append(FieldError.required(where))
        elif len(name) > _LONGEST_SYSCTL or not _is_sysctl(name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            errors.append(FieldError.invalid(where, name, detail))
        elif name in seen:
            errors.append(FieldError.duplicate(where, name))
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(FieldError.invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (
            dotted.startswith(("fs.mqueue.", "kernel.msg", "kernel.shm")) or dotted == "kernel.sem"
        ):
            errors.append(FieldError.invalid(where, name, "may not be specified when 'hostIPC' is true"))
    return errors


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
        detail = "can only be set when seccomp type is Localhost"
        errors.append(FieldError.invalid(where, as_internal("core.v1.SeccompProfile", profile), detail))
    return errors


_WINDOWS: tuple[str, ...] = ("windowsOptions",)
_NOT_ON_WINDOWS: tuple[str, ...] = (  # of a Pod, in the order of the errors; fields of the spec itself are marked
    "appArmorProfile",
    "seLinuxOptions",
    "/hostUsers",
    "/hostPID",
    "/hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "/shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_NOT_IN_WINDOWS_CONTAINERS: tuple[str, ...] = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def validate_os(spec: Json, name: str, path: Path) -> list[FieldError]:
    """Validate that a Pod has no fields of another operating system."""
    if name == "linux":
        detail, of_pod, of_container = "windows options cannot be set for a linux pod", _WINDOWS, _WINDOWS
    else:
        detail, of_pod, of_container = "cannot be set for a windows pod", _NOT_ON_WINDOWS, _NOT_IN_WINDOWS_CONTAINERS
    context, where = spec.get("securityContext", {}), path.child("securityContext")
    errors = [
        FieldError.forbidden(path.child(field[1:]) if field[0] == "/" else where.child(field), detail)
        for field in of_pod
        if (field[1:] in spec if field[0] == "/" else field in context)
    ]
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            at = path.child(kind).index(i).child("securityContext")
            own = container.get("securityContext", {})
            errors += [FieldError.forbidden(at.child(field), detail) for field in of_container if field in own]
    return errors
