"""User namespaces, which map the ids of a container to a range of host ids. Part of the shim."""

from __future__ import annotations

import os

from shim import kernel  # type: ignore[import-not-found]


def namespace(first: int, count: int) -> int:
    """Create a user namespace that maps 0..count to host ids from `first`; return its descriptor. Requires root."""
    ready, ready_end = os.pipe()
    done, done_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ready)
            os.close(done_end)
            kernel.unshare(kernel.NEW_USER, "hostUsers")
            os.write(ready_end, b"1")
            os.read(done, 1)
        finally:
            os._exit(0)
    os.close(ready_end)
    os.close(done)
    try:
        if not os.read(ready, 1):
            raise OSError(1, "user namespaces are not available", "hostUsers")
        for kind in ("uid", "gid"):
            with open(f"/proc/{pid}/{kind}_map", "w") as file:
                file.write(f"0 {first} {count}")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready)
        os.close(done_end)
        os.waitpid(pid, 0)
