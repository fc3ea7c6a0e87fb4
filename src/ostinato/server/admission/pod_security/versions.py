"""Versions of the Pod Security Standards: the checks of each, by level.

A namespace may pin a version, so that a newer server enforces the same checks. Versions newer than the newest check are
evaluated as the newest.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ostinato.server.admission.pod_security import checks
from ostinato.server.admission.pod_security.checks import Check, Finding
from ostinato.server.resources.strategy import Json

LEVELS: Final = ("privileged", "baseline", "restricted")
LATEST: Final = "latest"
is_version = re.compile(r"v1\.(0|[1-9][0-9]*)").fullmatch
_NEWEST: Final = 35
_Versions = dict[int, Check]  # by the minor version that introduced it

_SYSCTLS: Final = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)
_SYSCTLS_27: Final = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29: Final = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SYSCTLS_32: Final = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")

# In the order in which violations are reported.
_BASELINE: Final[dict[str, _Versions]] = {
    "appArmorProfile": {0: checks.app_armor},
    "capabilities": {0: checks.capabilities},
    "hostNamespaces": {0: checks.host_namespaces},
    "hostPathVolumes": {0: checks.host_paths},
    "hostPorts": {0: checks.host_ports},
    "hostProbes": {34: checks.host_probes},
    "privileged": {0: checks.privileged},
    "procMount": {0: checks.proc_mount, 35: checks.unless_own_users(checks.proc_mount)},
    "seLinuxOptions": {0: checks.selinux(), 31: checks.selinux("container_engine_t")},
    "seccompProfile": {0: checks.seccomp_annotations, 19: checks.seccomp},
    "sysctls": {
        0: checks.sysctls(*_SYSCTLS),
        27: checks.sysctls(*_SYSCTLS_27),
        29: checks.sysctls(*_SYSCTLS_29),
        32: checks.sysctls(*_SYSCTLS_32),
    },
    "windowsHostProcess": {0: checks.host_process},
}
# Each with the baseline check that it replaces, if any.
_RESTRICTED: Final[tuple[tuple[str, _Versions], ...]] = (
    ("", {8: checks.escalation, 25: checks.unless_windows(checks.escalation)}),
    ("capabilities", {22: checks.all_dropped, 25: checks.unless_windows(checks.all_dropped)}),
    ("procMount", {35: checks.proc_mount}),
    ("hostPathVolumes", {0: checks.volumes}),
    ("", {0: checks.not_root, 35: checks.unless_own_users(checks.not_root)}),
    ("", {23: checks.user, 35: checks.unless_own_users(checks.user)}),
    ("seccompProfile", {19: checks.seccomp_set, 25: checks.unless_windows(checks.seccomp_set)}),
)


def findings(level: str, version: str, metadata: Json, spec: Json) -> list[Finding]:
    """The violations of a level by a Pod."""
    return [found for check in _checks(level, version) if (found := check(metadata, spec)) is not None]


@cache
def _checks_of(level: str, minor: int) -> tuple[Check, ...]:
    stricter = {name: _held(versions, minor) for name, versions in _RESTRICTED if name}
    if level == "baseline":
        found = [_held(versions, minor) for versions in _BASELINE.values()]
    else:
        found = [_held(versions, minor) for name, versions in _BASELINE.items() if stricter.get(name) is None]
        found += [_held(versions, minor) for _, versions in _RESTRICTED]
    return tuple(check for check in found if check is not None)


def _checks(level: str, version: str) -> tuple[Check, ...]:
    if level == "privileged":
        return ()
    return _checks_of(level, _NEWEST if version == LATEST else min(int(version.removeprefix("v1.")), _NEWEST))


def _held(versions: _Versions, minor: int) -> Check | None:
    """The check in effect at a minor version; None if it was introduced later."""
    since = [first for first in versions if first <= minor]
    return versions[max(since)] if since else None
