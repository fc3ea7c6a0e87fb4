"""Security contexts of the CRI: the container's own fields, then those of its Pod."""

from __future__ import annotations

from typing import Any, Final

from ostinato.kinds.core_v1 import (
    AppArmorProfile,
    Container,
    Pod,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
    SELinuxOptions,
)

POD, CONTAINER, NODE, TARGET = range(4)  # values of NamespaceMode

_PROFILES: Final = {"RuntimeDefault": 0, "Unconfined": 1, "Localhost": 2}
_SECCOMP: Final = "/var/lib/kubelet/seccomp"  # kubelet's default seccomp root
_GROUP_POLICIES: Final = {"Merge": 0, "Strict": 1}
_MASKED: Final = (
    *("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
    "/sys/devices/virtual/powercap",
)
_READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def sandbox_security(pod: Pod) -> dict[str, Any]:
    """Return the security context of a Pod's sandbox."""
    context = pod.spec.security_context or PodSecurityContext()
    group = (
        context.run_as_group if context.run_as_user is not None else None
    )  # containerd rejects a group without a user
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return {
        "privileged": any(
            each.security_context is not None and bool(each.security_context.privileged) for each in every
        ),
        "seccomp": {"profile_type": _PROFILES["RuntimeDefault"]},
        "namespace_options": namespaces(pod),
        "supplemental_groups": _groups(context),
        "supplemental_groups_policy": _GROUP_POLICIES.get(context.supplemental_groups_policy or "", 0),
        "selinux_options": _selinux(context.se_linux_options),
        **_number("run_as_user", context.run_as_user),
        **_number("run_as_group", group),
    }


def container_security(pod: Pod, container: Container, image: dict[str, Any], target: str | None) -> dict[str, Any]:
    """`image`: its ImageStatus. `target`: id of the container whose PID namespace is joined."""
    own, shared = container.security_context or SecurityContext(), pod.spec.security_context or PodSecurityContext()
    unmasked = own.proc_mount == "Unmasked"
    config: dict[str, Any] = {
        "privileged": bool(own.privileged),
        "readonly_rootfs": bool(own.read_only_root_filesystem),
        "no_new_privs": own.allow_privilege_escalation is False,
        "masked_paths": [] if unmasked else list(_MASKED),
        "readonly_paths": [] if unmasked else list(_READ_ONLY),
        "namespace_options": namespaces(pod),
        "supplemental_groups": _groups(shared),
        "supplemental_groups_policy": _GROUP_POLICIES.get(shared.supplemental_groups_policy or "", 0),
        "selinux_options": _selinux(own.se_linux_options or shared.se_linux_options),
        "seccomp": _seccomp(own.seccomp_profile or shared.seccomp_profile),
        "apparmor": _apparmor(own.app_armor_profile or shared.app_armor_profile),
        **_number("run_as_group", _first(own.run_as_group, shared.run_as_group)),
    }
    if own.capabilities is not None:
        config["capabilities"] = {"add_capabilities": own.capabilities.add, "drop_capabilities": own.capabilities.drop}
    user = _first(own.run_as_user, shared.run_as_user)
    if user is not None or image.get("uid") is not None:
        config |= _number("run_as_user", image["uid"].get("value", 0) if user is None else user)
    elif image.get("username"):
        config["run_as_username"] = image["username"]
    if target is not None and config["namespace_options"]["pid"] == CONTAINER:
        config["namespace_options"] |= {"pid": TARGET, "target_id": target}
    return config


def non_root_violation(pod: Pod, container: Container, image: dict[str, Any]) -> str | None:
    """Return how a container violates runAsNonRoot; None if it does not."""
    own, shared = container.security_context or SecurityContext(), pod.spec.security_context or PodSecurityContext()
    if not _first(own.run_as_non_root, shared.run_as_non_root):
        return None
    known = pod.metadata
    whose = f'(pod: "{known.name}_{known.namespace}({known.uid})", container: {container.name})'
    user = _first(own.run_as_user, shared.run_as_user)
    if user is not None:
        return f"container's runAsUser breaks non-root policy {whose}" if user == 0 else None
    name = image.get("username", "")
    if name and image.get("uid") is None:
        return (
            f"container has runAsNonRoot and image has non-numeric user ({name}), "
            f"cannot verify user is non-root {whose}"
        )
    if (image.get("uid") or {}).get("value", 0) == 0:
        return f"container has runAsNonRoot and image will run as root {whose}"
    return None


def namespaces(pod: Pod) -> dict[str, Any]:
    """Return the network, PID and IPC namespace modes of a Pod."""
    spec = pod.spec
    return {
        "network": NODE if spec.host_network else POD,
        "pid": NODE if spec.host_pid else POD if spec.share_process_namespace else CONTAINER,
        "ipc": NODE if spec.host_ipc else POD,
    }


def target_of(pod: Pod, name: str) -> str | None:
    """Return the target container of an ephemeral container; None if there is none."""
    targets = {each.name: each.target_container_name for each in pod.spec.ephemeral_containers}
    return targets.get(name) or None


def _first(own: Any, shared: Any) -> Any:
    return shared if own is None else own


def _number(name: str, value: int | None) -> dict[str, Any]:
    return {} if value is None else {name: {"value": value}}


def _groups(context: PodSecurityContext) -> list[int]:
    return [*([] if context.fs_group is None else [context.fs_group]), *context.supplemental_groups]


def _selinux(options: SELinuxOptions | None) -> dict[str, str] | None:
    if options is None:
        return None
    config = {"user": options.user, "role": options.role, "type": options.type, "level": options.level}
    return {name: value for name, value in config.items() if value}


def _seccomp(profile: SeccompProfile | None) -> dict[str, Any]:
    if profile is None:
        return {"profile_type": _PROFILES["Unconfined"]}
    config: dict[str, Any] = {"profile_type": _PROFILES.get(profile.type, 0)}
    if profile.localhost_profile:
        config["localhost_ref"] = f"{_SECCOMP}/{profile.localhost_profile}"
    return config


def _apparmor(profile: AppArmorProfile | None) -> dict[str, Any] | None:
    if profile is None:
        return None
    return {"profile_type": _PROFILES.get(profile.type, 0), "localhost_ref": profile.localhost_profile or ""}
