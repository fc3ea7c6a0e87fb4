"""Apply user, groups, capabilities, no_new_privs and seccomp to a process of a container. Part of the shim.

Fields of `security` in the launch request:

- `user`, `group`, `groups`: ids; None leaves them unchanged.
- `capabilities`: bit mask of the bounding set, and of the permitted set for root; None leaves them unchanged.
- `no_new_privileges`: sets no_new_privs, which disables setuid and file capabilities.
- `seccomp`: filter as classic BPF in hex; None for no filter.
"""

from __future__ import annotations

import os
from typing import Any

from shim import kernel  # type: ignore[import-not-found]

_LAST = 63


def drop(security: dict[str, Any]) -> None:
    """Drop privileges to those of `security`; `OSError` if that fails."""
    filtered = security["seccomp"]
    if security["no_new_privileges"]:
        kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
    elif filtered is not None:
        # Before capabilities are dropped: without no_new_privs, installing a filter requires SYS_ADMIN.
        kernel.install_filter(bytes.fromhex(filtered))
    granted = security["capabilities"]
    if granted is not None:
        for number in range(_LAST + 1):
            if not granted >> number & 1:
                kernel.drop_from_bound(number)
    if security["groups"] is not None:
        os.setgroups(security["groups"])
    if security["group"] is not None:
        os.setresgid(*[security["group"]] * 3)
    if security["user"] is not None:
        os.setresuid(*[security["user"]] * 3)  # clears the capabilities of a non-root user
    if granted is not None:
        kernel.set_capabilities(granted if os.geteuid() == 0 else 0)
    if security["no_new_privileges"] and filtered is not None:
        kernel.install_filter(bytes.fromhex(filtered))
