"""Patches of a Pod's status that are like earlier ones: written without decoding the Pod.

Authentication, authorization and flow control came before. Admission is a part of the result of a shape only while all
active plugins judge by the content; otherwise, and for audited requests, every patch takes the long way.
"""

from __future__ import annotations

import msgspec

from ostinato.server.access.authorization.node import node_of
from ostinato.server.request.context import Context
from ostinato.server.request.options import WriteOptions
from ostinato.server.resources.core.pods.status_shapes import Circumstances, Result, Shape, StatusShapes, shape_of
from ostinato.server.store import records
from ostinato.server.store.records import Entry
from ostinato.server.verbs import write


class RepeatedStatus:
    """A strategic merge patch of a Pod's status that may be like earlier ones."""

    def __init__(self, context: Context, current: Entry, shape: Shape, shapes: StatusShapes) -> None:
        self._context = context
        self._current = current
        self._shape = shape
        self._shapes = shapes
        self._warnings = len(context.request.warnings)

    @classmethod
    def of(cls, context: Context, data: bytes, options: WriteOptions) -> RepeatedStatus | None:
        """Return it for a strategic merge patch; None if it has to take the long way."""
        shapes = context.resource.status_shapes
        if shapes is None or context.route.subresource != "status" or options.dry_run:
            return None
        request = context.request
        if request.audited or not context.admission.judges_status_by_content(context.resource.group_resource):
            return None
        current = context.collection.newest(context.key)
        if current is None:
            return None
        node = None if request.user is None else node_of(request.user)
        manager, now = write.manager_of(request, options), write.now(context.world.clock)
        shape = shape_of(current, data, Circumstances(manager, options.field_validation, node, now))
        return None if shape is None else cls(context, current, shape, shapes)

    @property
    def result(self) -> Result | None:
        """What it stores, if that is known."""
        return self._shapes.get(self._shape)

    async def store(self, result: Result) -> bytes | None:
        """Store the result; return the stored data, None if the Pod has changed."""
        context, current, shape = self._context, self._current, self._shape
        entry = Entry(current.key, 0, b"", current.labels, result.fields(shape), current.uid)
        try:
            stored = await context.index.put(
                context.collection, entry, current, lambda version: result.data(shape, version)
            )
        except records.Conflict:
            return None
        return stored.data

    def learn(self, version: int, data: bytes) -> None:
        """Note what is going to be stored on the long way, at the first attempt."""
        context, current = self._context, self._current
        if len(context.request.warnings) != self._warnings:
            return
        if not context.admission.judges_status_by_content(context.resource.group_resource):
            return
        obj = msgspec.json.decode(data)
        if obj["metadata"].get("labels", {}) == current.labels:
            self._shapes.learn(self._shape, data, version, context.resource.strategy.fields(obj))
