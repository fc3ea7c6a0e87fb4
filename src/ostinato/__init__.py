"""Ostinato: Kubernetes controllers in Python, and the control plane to run them against, in one process.

This module exports the most used names; the packages export the others. Names are imported when first used, so that
`import ostinato` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.lazy import lazy_names

if TYPE_CHECKING:
    from ostinato.api.errors import AlreadyExists, APIError, Conflict, Invalid, NotFound
    from ostinato.api.gvk import GroupVersionKind, NamespacedName
    from ostinato.api.markers import Column, Ge, Le, Len, Pattern, Rule
    from ostinato.api.meta import ObjectMeta
    from ostinato.api.object import CustomResource
    from ostinato.api.quantity import Quantity
    from ostinato.api.struct import Struct
    from ostinato.cache import CachedClient, Informers
    from ostinato.client import Client
    from ostinato.controllers import (
        BlockingContext,
        Context,
        PermanentError,
        Request,
        Result,
        TemporaryError,
        TerminalError,
        controller,
        daemon,
        timer,
    )
    from ostinato.frontends.handlers import on
    from ostinato.manager import Manager

__all__ = [
    "APIError",
    "AlreadyExists",
    "BlockingContext",
    "CachedClient",
    "Client",
    "Column",
    "Conflict",
    "Context",
    "CustomResource",
    "Ge",
    "GroupVersionKind",
    "Informers",
    "Invalid",
    "Le",
    "Len",
    "Manager",
    "NamespacedName",
    "NotFound",
    "ObjectMeta",
    "Pattern",
    "PermanentError",
    "Quantity",
    "Request",
    "Result",
    "Rule",
    "Struct",
    "TemporaryError",
    "TerminalError",
    "controller",
    "daemon",
    "on",
    "timer",
]

_HOME = {
    "APIError": "api.errors",
    "AlreadyExists": "api.errors",
    "BlockingContext": "controllers",
    "CachedClient": "cache",
    "Client": "client",
    "Column": "api.markers",
    "Conflict": "api.errors",
    "Context": "controllers",
    "CustomResource": "api.object",
    "Ge": "api.markers",
    "GroupVersionKind": "api.gvk",
    "Informers": "cache",
    "Invalid": "api.errors",
    "Le": "api.markers",
    "Len": "api.markers",
    "Manager": "manager",
    "NamespacedName": "api.gvk",
    "NotFound": "api.errors",
    "ObjectMeta": "api.meta",
    "Pattern": "api.markers",
    "PermanentError": "controllers",
    "Quantity": "api.quantity",
    "Request": "controllers",
    "Result": "controllers",
    "Rule": "api.markers",
    "Struct": "api.struct",
    "TemporaryError": "controllers",
    "TerminalError": "controllers",
    "controller": "controllers",
    "daemon": "controllers",
    "on": "frontends.handlers.on",
    "timer": "controllers",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
