"""Resources that are decoded from a body but not stored: Scales, Evictions, TokenRequests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ostinato.api.apply import FieldManager
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.schema import builtin_schemas
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Strategy
from ostinato.server.schema.decoding import builtin


class BodyResource(Resource):
    """A built-in kind that is the body of a subresource of `gvr`, and is not stored."""

    def __init__(
        self,
        gvr: GroupVersionResource,
        gvk: GroupVersionKind,
        *,
        namespaced: bool = True,
        managers: Mapping[str, FieldManager] | None = None,
    ) -> None:
        super().__init__(
            gvr=gvr,
            gvk=gvk,
            namespaced=namespaced,
            verbs=(),
            strategy=Strategy(),
            schema=builtin_schemas().of(gvk),
            collection=None,
        )
        self.read = partial(builtin.read, builtin.model_of(gvk))
        self.managers = dict(managers or {})
