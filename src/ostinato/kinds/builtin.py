"""Scheme of the built-in kinds. The module of a kind is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module

from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.object import Object
from ostinato.api.scheme import Scheme
from ostinato.api.status import Status
from ostinato.kinds.index import MODULES


def builtin_scheme(name: str = "builtin") -> Scheme:
    """Return a new scheme with all built-in kinds; further kinds can be registered."""
    scheme = Scheme(name, lazy=_loaders())
    scheme.register_unversioned(Status, GroupVersionKind("", "v1", "Status"))
    scheme.prefer(GroupVersion("autoscaling", "v2"), GroupVersion("autoscaling", "v1"))
    return scheme


@cache
def _loaders() -> Mapping[GroupVersionKind, Callable[[], type[Object]]]:
    """Return what loads each kind; not modified, as all schemes share it."""
    return {GroupVersionKind(*gvk): partial(_load, *gvk) for gvk in MODULES}


def _load(group: str, version: str, kind: str) -> type[Object]:
    module = import_module(f"ostinato.kinds.{MODULES[group, version, kind]}")
    loaded: type[Object] = getattr(module, kind)
    return loaded
