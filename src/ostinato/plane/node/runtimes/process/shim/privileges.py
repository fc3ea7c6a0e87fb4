"""What a process of a container may do: user, groups, capabilities, no_new_privs and seccomp. Part of the shim.

A launch's `security` says it:

- `user`, `group`, `groups`: ids; None is whatever this process has.
- `capabilities`: a bit for each that a process of root has, and that no program can exceed; None where this process
  cannot change them.
- `no_new_privileges`: programs with setuid or file capabilities give nothing.
- `seccomp`: a filter in classic BPF, in hex; None for none.
"""

from __future__ import annotations

import os
from typing import Any

from shim import kernel  # type: ignore[import-not-found]

_LAST = 63


def drop(security: dict[str, Any]) -> None:
    """Give up what the container must not have. What it asked for and cannot get is an `OSError`."""
    filtered = security["seccomp"]
    if security["no_new_privileges"]:
        kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
    elif filtered is not None:
        kernel.install_filter(
            bytes.fromhex(filtered)
        )  # now: without no_new_privs it takes a capability that is about to go
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
        os.setresuid(*[security["user"]] * 3)  # for others than root, this leaves no capability
    if granted is not None:
        kernel.set_capabilities(granted if os.geteuid() == 0 else 0)
    if security["no_new_privileges"] and filtered is not None:
        kernel.install_filter(bytes.fromhex(filtered))
