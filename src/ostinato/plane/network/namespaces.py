"""Network namespaces: create them, and open sockets in them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_OWN: Final = "/proc/thread-self/ns/net"
_libc: Final = ctypes.CDLL(None, use_errno=True)


def own_namespace() -> int:
    """A descriptor of the network namespace that this thread is in."""
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def new_namespace() -> int:
    """Create a network namespace without a process in it, and return a descriptor of it.

    The kernel removes it, with its links, when no descriptor, process or socket refers to it any more.
    """
    before = own_namespace()
    try:
        _call(_libc.unshare(_NEW_NETWORK))
        try:
            return own_namespace()
        finally:
            _call(_libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


@contextmanager
def within(namespace: int) -> Iterator[None]:
    """Have this thread be in a namespace meanwhile. Sockets that it opens stay in that namespace."""
    before = own_namespace()
    try:
        _call(_libc.setns(namespace, _NEW_NETWORK))
        try:
            yield
        finally:
            _call(_libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


def identity_of(namespace: int) -> int:
    """The number by which the kernel tells a namespace from others that exist."""
    return os.fstat(namespace).st_ino


def _call(answer: int) -> None:
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
