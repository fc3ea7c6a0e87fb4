"""get: one object in its current state."""

from __future__ import annotations

from ostinato.api.errors import BadRequest, NotFound, Timeout, Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.request import Response
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import PLAIN, form_of
from ostinato.server.request.options import boolean
from ostinato.server.request.present import object_response, presented
from ostinato.server.store.index import Index
from ostinato.server.store.records import Entry
from ostinato.world import Clock

READ_TIMEOUT = 3.0  # seconds that a read waits for a future resourceVersion


async def get(context: Context) -> Response:
    form = form_of(context.request, context.resource)
    await check_get_options(context)
    conversion = context.resource.conversion
    if conversion is None:
        return await presented(context, _entry(context).data, form)
    entry = await conversion.entry(_entry(context))
    return await presented(context, entry.data, form)


def get_now(context: Context) -> Response | None:
    """Like `get`, for a request without options; None if the object is so large that its encoding has to wait."""
    form, data = form_of(context.request, context.resource), _entry(context).data
    return object_response(context.resource, data, form) if form is PLAIN or not is_heavy(data) else None


def _entry(context: Context) -> Entry:
    entry = context.collection.entries.get(context.key)
    if entry is None:
        raise NotFound.of(context.resource.group_resource, context.route.name)
    return entry


async def check_get_options(context: Context) -> None:
    """Reject unknown options, and wait for the requested resourceVersion; without one, for the newest state."""
    request, index = context.request, context.index
    if not request.query_string:
        if index.is_shared:
            await index.catch_up()
        return
    if "export" in request.query and boolean(request.parameter("export")):
        raise BadRequest.of("the export parameter, deprecated since v1.14, is no longer supported")
    version = request.parameter("resourceVersion")
    if not version and index.is_shared:
        await index.catch_up()
    if version and version != "0":
        try:
            number = parse_version(version)
        except ValueError as error:
            raise Unknown.of(str(error)) from error
        await not_older_than(index, context.world.clock, number)


def parse_version(text: str) -> int:
    """Parse a resourceVersion; ValueError if it is invalid."""
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) <= 20 else 1 << 64
        if number < 1 << 64:
            return number
        why = "value out of range"
    else:
        why = "invalid syntax"
    raise ValueError(f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: {why}")


async def not_older_than(index: Index, clock: Clock, version: int) -> None:
    """Wait for the store to reach a resourceVersion; Timeout if it does not in time."""
    if version <= index.version:
        return
    try:
        async with clock.timeout(READ_TIMEOUT):
            await index.wait_for(version)
    except TimeoutError:
        raise Timeout.resource_version_too_large(version, index.version) from None
