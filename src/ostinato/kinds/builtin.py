"""The scheme of the built-in kinds. A kind's module is imported when the kind is first asked for."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.object import Object
from ostinato.api.scheme import Scheme
from ostinato.api.status import Status
from ostinato.kinds.index import MODULES


def builtin_scheme(name: str = "builtin") -> Scheme:
    """A new scheme that knows all built-in kinds, to be added to."""
    scheme = Scheme(name, lazy={GroupVersionKind(*gvk): partial(_load, *gvk) for gvk in MODULES})
    scheme.register_unversioned(Status, GroupVersionKind("", "v1", "Status"))
    scheme.prefer(GroupVersion("autoscaling", "v2"), GroupVersion("autoscaling", "v1"))
    return scheme


def _load(group: str, version: str, kind: str) -> type[Object]:
    module = import_module(f"ostinato.kinds.{MODULES[group, version, kind]}")
    loaded: type[Object] = getattr(module, kind)
    return loaded
