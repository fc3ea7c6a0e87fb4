"""get: one object, as it is now."""

from __future__ import annotations

from ostinato.api.errors import BadRequest, NotFound, Timeout
from ostinato.api.quoting import quote
from ostinato.server.negotiate import BUILTIN, CUSTOM, form_of
from ostinato.server.present import OBJECT_FORMS, object_response
from ostinato.server.request import Response
from ostinato.server.store.index import Index
from ostinato.server.verbs.context import Context
from ostinato.world import Clock

PATIENCE = 3.0  # seconds for which a read waits for a version that is yet to come


async def get(context: Context) -> Response:
    resource = context.resource
    form = form_of(
        context.request.headers.get("accept", ""), OBJECT_FORMS, supported=CUSTOM if resource.custom else BUILTIN
    )
    if context.request.query_string:
        version = context.request.parameter("resourceVersion")
        if version and version != "0":
            await not_older_than(context.index, context.world.clock, parse_version(version))
    assert resource.collection is not None
    entry = resource.collection.entries.get(context.key)
    if entry is None:
        raise NotFound.of(resource.group_resource, context.route.name)
    return object_response(resource, entry.data, form, include=context.request.parameter("includeObject") or "Metadata")


def parse_version(text: str) -> int:
    """A resourceVersion that a client sent."""
    if text.isascii() and text.isdigit():
        number = int(text)
        if number < 1 << 64:
            return number
        why = "value out of range"
    else:
        why = "invalid syntax"
    raise BadRequest.of(
        f"invalid resource version: resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: "
        f"parsing {quote(text)}: {why}"
    )


async def not_older_than(index: Index, clock: Clock, version: int) -> None:
    """Wait a little until the store has come to a version; Timeout if it does not."""
    if version <= index.version:
        return
    try:
        async with clock.timeout(PATIENCE):
            await index.arrived(version)
    except TimeoutError:
        raise Timeout.resource_version_too_large(version, index.version) from None
