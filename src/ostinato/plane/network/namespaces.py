"""Network namespaces: a network of its own for some of the sockets of a process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_libc: Final = ctypes.CDLL(None, use_errno=True)


def new_namespace() -> int:
    """A descriptor of a network namespace in which nobody is."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call(_libc.unshare(_NEW_NETWORK))
        try:
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _call(_libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


@contextmanager
def within(namespace: int) -> Iterator[None]:
    """Sockets that this thread makes meanwhile are of that namespace, and stay so."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call(_libc.setns(namespace, _NEW_NETWORK))
        try:
            yield
        finally:
            _call(_libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


def _call(answer: int) -> None:
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
