"""The effective securityContext of a container: its own fields, then those of its Pod.

Fields that this runtime cannot apply are rejected with the field path and a remedy, unless the node was started with
`--insecure-processes`, which applies as much as possible.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.kinds.core_v1 import (
    Container,
    ContainerUser,
    LinuxContainerUser,
    Pod,
    PodSecurityContext,
    SecurityContext,
)
from ostinato.plane.node.images.image import Image
from ostinato.plane.node.images.users import UnknownUser, own_user, user_in
from ostinato.plane.node.runtimes import StartError
from ostinato.plane.node.runtimes.process.seccomp import default_filter

# CRI-O's defaults: without NET_RAW, with which a Pod could forge packets of its neighbours.
DEFAULT_CAPABILITIES: Final = frozenset(
    {"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETPCAP", "SETUID"}
)
# Ordered by capability number.
_CAPABILITIES: Final = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
ALL_CAPABILITIES: Final = frozenset(_CAPABILITIES)
_IPC_SYSCTLS: Final = re.compile(r"kernel\.(shm.*|msg.*|sem)|fs\.mqueue\..*")
_NETWORK_SYSCTLS: Final = re.compile(r"net[./]")
_AS_ROOT: Final = "container has runAsNonRoot and image will run as root"
_FIXES: Final = "use the runtime containerd, or start the node with --insecure-processes to run it without"
_FIXES_WITHOUT_ROOT: Final = (
    "run the node as root, use the runtime containerd, or start the node with --insecure-processes to run it without"
)


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """In the format of the shim; see `shim.privileges`."""

    user: int | None
    group: int | None
    groups: list[int] | None
    capabilities: int | None
    no_new_privileges: bool
    seccomp: str | None


class Identity(msgspec.Struct, frozen=True):
    """The user that a container runs as."""

    user: int
    group: int
    groups: list[int]  # supplementary


def security_of(
    pod: Pod,
    container: Container,
    runs_as: Identity,
    *,
    isolated: bool,
    insecure: bool,
    own_network: bool = False,
) -> Security:
    """Return the settings to apply; `StartError` if a field is unsupported."""
    if not insecure:
        for field, why in unsupported_fields(pod, container, isolated=isolated, own_network=own_network):
            fix = _FIXES if isolated or os.geteuid() == 0 else _FIXES_WITHOUT_ROOT
            raise StartError("CreateContainerConfigError", f"{field}: {why}; {fix}")
    own, whole = contexts(pod, container)
    privileged = bool(own.privileged)
    granted = (ALL_CAPABILITIES if privileged else _capabilities(own)) & node_capabilities()
    profile = None if privileged else own.seccomp_profile or whole.seccomp_profile
    program = default_filter(granted) if profile is not None and profile.type == "RuntimeDefault" else None
    drops = own.capabilities is not None and bool(own.capabilities.drop)
    restricted = own.allow_privilege_escalation is False
    return Security(
        user=runs_as.user if isolated else None,
        group=runs_as.group if isolated else None,
        groups=runs_as.groups if isolated else None,
        capabilities=sum(1 << _CAPABILITIES.index(each) for each in granted) if isolated else None,
        # Without root, a seccomp filter requires it, and it keeps dropped capabilities unobtainable.
        no_new_privileges=restricted or (not isolated and (program is not None or drops)),
        seccomp=None if program is None else program.hex(),
    )


def contexts(pod: Pod, container: Container) -> tuple[SecurityContext, PodSecurityContext]:
    return container.security_context or SecurityContext(), pod.spec.security_context or PodSecurityContext()


def identity(pod: Pod, container: Container, image: Image | None) -> tuple[Identity, str]:
    """Return the user of a container, and its home directory; `StartError` if runAsNonRoot is violated.

    An image defines the user that the Pod does not, and the groups of both.
    """
    own, whole = contexts(pod, container)
    user, group = _first(own.run_as_user, whole.run_as_user, None), _first(own.run_as_group, whole.run_as_group, None)
    asked = "" if image is None or image.config.user is None else image.config.user
    try:
        found = own_user() if image is None else user_in(image.root, asked if user is None else str(user))
    except UnknownUser as error:
        raise StartError("CreateContainerError", f"container {container.name}: {error}") from None
    if _first(own.run_as_non_root, whole.run_as_non_root, None):
        _check_non_root(pod, container, user, found.user, asked.partition(":")[0])
    of_image = [] if whole.supplemental_groups_policy == "Strict" else found.groups
    groups = {*of_image, *whole.supplemental_groups, *([] if whole.fs_group is None else [whole.fs_group])}
    runs_as = Identity(_first(user, found.user), _first(group, found.group), sorted(groups))
    return runs_as, found.home


def user_of(security: Mapping[str, Any]) -> ContainerUser:
    """Return the user for the container's status, by its settings; without isolation, that of the node."""
    user, group, groups = security["user"], security["group"], security["groups"]
    if user is None:
        user, group, groups = os.geteuid(), os.getegid(), sorted(os.getgroups())
    return ContainerUser(
        linux=LinuxContainerUser(uid=user, gid=group, supplemental_groups=[*dict.fromkeys([group, *groups])])
    )


def ipc_sysctls_of(pod: Pod) -> dict[str, str]:
    """Return the sysctls of the Pod's IPC namespace."""
    _, whole = contexts(pod, Container(name=""))
    return {each.name: each.value for each in whole.sysctls if _IPC_SYSCTLS.fullmatch(each.name)}


def network_sysctls_of(pod: Pod) -> dict[str, str]:
    """Return the sysctls of the Pod's network namespace."""
    _, whole = contexts(pod, Container(name=""))
    return {each.name: each.value for each in whole.sysctls if _NETWORK_SYSCTLS.match(each.name)}


# Unsupported fields


def unsupported_fields(
    pod: Pod, container: Container, *, isolated: bool, own_network: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (field path, reason) for each field that cannot be applied."""
    own, whole = contexts(pod, container)
    mine, shared = f"spec.containers[{container.name}].securityContext", "spec.securityContext"
    for field, context in ((mine, own), (shared, whole)):
        options: Any = context
        if options.se_linux_options is not None and msgspec.to_builtins(options.se_linux_options):
            yield f"{field}.seLinuxOptions", "the process runtime does not set SELinux labels"
        if options.app_armor_profile is not None and options.app_armor_profile.type != "Unconfined":
            yield f"{field}.appArmorProfile", "the process runtime does not set AppArmor profiles"
        if options.windows_options is not None:
            yield f"{field}.windowsOptions", "this is not Windows"
        profile = options.seccomp_profile
        if profile is not None and profile.type == "Localhost":
            yield f"{field}.seccompProfile", "the process runtime supports RuntimeDefault and Unconfined only"
        if profile is not None and profile.type == "RuntimeDefault" and default_filter(()) is None:
            yield f"{field}.seccompProfile", f"the process runtime has no seccomp filter for {platform.machine()}"
    for name in sorted(_added(own) - {"ALL"}):
        if name not in ALL_CAPABILITIES:
            yield f"{mine}.capabilities.add", f"unknown capability {name}"
        elif isolated and name not in node_capabilities():
            yield f"{mine}.capabilities.add", f"the node lacks the capability {name}"
    for each in whole.sysctls:
        own_ipc = isolated and not pod.spec.host_ipc and _IPC_SYSCTLS.fullmatch(each.name)
        if not own_ipc and not (own_network and _NETWORK_SYSCTLS.match(each.name)):
            yield (
                f"{shared}.sysctls[{each.name}]",
                "this sysctl is not namespaced here; containers share the host's value",
            )
    if not isolated:
        yield from _unsupported_without_isolation(pod, own, whole, mine)


def _unsupported_without_isolation(
    pod: Pod, own: SecurityContext, whole: PodSecurityContext, mine: str
) -> Iterator[tuple[str, str]]:
    cannot = "requires root and namespaces, which the node does not have"
    user, group = _first(own.run_as_user, whole.run_as_user, None), _first(own.run_as_group, whole.run_as_group, None)
    if user is not None and user != os.geteuid():
        yield f"{mine}.runAsUser", f"containers run as user {os.geteuid()}: {cannot}"
    if group is not None and group != os.getegid():
        yield f"{mine}.runAsGroup", f"containers run as group {os.getegid()}: {cannot}"
    mine_already = {os.getegid(), *os.getgroups()}
    if whole.fs_group is not None and whole.fs_group not in mine_already:
        yield "spec.securityContext.fsGroup", cannot
    if not mine_already.issuperset(whole.supplemental_groups):
        yield "spec.securityContext.supplementalGroups", cannot
    if own.privileged:
        yield f"{mine}.privileged", cannot
    if own.read_only_root_filesystem:
        yield f"{mine}.readOnlyRootFilesystem", cannot
    if own.capabilities is not None and own.capabilities.add:
        yield f"{mine}.capabilities.add", cannot
    if pod.spec.host_users is False:
        yield "spec.hostUsers", cannot


def _check_non_root(pod: Pod, container: Container, asked: int | None, user: int, in_image: str) -> None:
    """Raise `StartError` if the container would run as root, or as a user by name, who may be root tomorrow."""
    if asked is not None:
        text = "container's runAsUser breaks non-root policy" if asked == 0 else ""
    elif in_image and not in_image.isdecimal():
        text = f"container has runAsNonRoot and image has non-numeric user ({in_image}), cannot verify user is non-root"
    else:
        text = _AS_ROOT if user == 0 else ""
    if text:
        known = pod.metadata
        whose = f'(pod: "{known.name}_{known.namespace}({known.uid})", container: {container.name})'
        raise StartError("CreateContainerConfigError", f"{text} {whose}")


def _capabilities(own: SecurityContext) -> frozenset[str]:
    """Apply `drop: [ALL]`, then `add`, then other drops, as container runtimes do."""
    if own.capabilities is None:
        return DEFAULT_CAPABILITIES
    add, drop = _names(own.capabilities.add), _names(own.capabilities.drop)
    base = ALL_CAPABILITIES if "ALL" in add else frozenset() if "ALL" in drop else DEFAULT_CAPABILITIES
    return (base | (add & ALL_CAPABILITIES)) - (drop - {"ALL"})


def _added(own: SecurityContext) -> frozenset[str]:
    return _names([] if own.capabilities is None else own.capabilities.add)


@cache
def node_capabilities() -> frozenset[str]:
    """Return the permitted capabilities of this process; all where /proc is not available."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("CapPrm:"):
                mask = int(line.split()[1], 16)
                return frozenset(name for number, name in enumerate(_CAPABILITIES) if mask >> number & 1)
    return ALL_CAPABILITIES


def _names(given: list[str]) -> frozenset[str]:
    return frozenset(each.upper().removeprefix("CAP_") for each in given)


def _first(*choices: Any) -> Any:
    """Return the first choice that is not None; the last is the default."""
    return next((each for each in choices[:-1] if each is not None), choices[-1])
