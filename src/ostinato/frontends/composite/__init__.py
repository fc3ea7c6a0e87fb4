"""Composites and decorators: operators as functions of an object that return the objects it should have.

- `@composite` and `@decorate` make them of Python functions.
- `MetaControllers` runs metacontroller's CompositeControllers and DecoratorControllers, with hooks over HTTP.
"""

from ostinato.frontends.composite.functions import SyncFunction, composite, decorate
from ostinato.frontends.composite.meta.controllers import MetaSettings
from ostinato.frontends.composite.meta.files import DefinitionError, read_definitions
from ostinato.frontends.composite.meta.following import MetaControllers
from ostinato.frontends.composite.vocabulary import (
    Child,
    Observed,
    Related,
    Sync,
    annotation,
    labels,
    on_delete,
    recreate,
    rolling,
)
from ostinato.frontends.kernel.sync import DeciderError, Ready, SyncEvent

__all__ = [
    "Child",
    "DeciderError",
    "DefinitionError",
    "MetaControllers",
    "MetaSettings",
    "Observed",
    "Ready",
    "Related",
    "Sync",
    "SyncEvent",
    "SyncFunction",
    "annotation",
    "composite",
    "decorate",
    "labels",
    "on_delete",
    "read_definitions",
    "recreate",
    "rolling",
]
