"""list: objects in their current state or at a resourceVersion, in one response or in pages."""

from __future__ import annotations

from itertools import compress

import msgspec

from ostinato.api.errors import BadRequest, Expired
from ostinato.server.request import Response
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.options import ListOptions, check_list_options, list_options
from ostinato.server.request.present import in_slices, list_response
from ostinato.server.resources.strategy import Json
from ostinato.server.store.records import Compacted, Entry
from ostinato.server.verbs.continue_token import ContinueToken
from ostinato.server.verbs.get import not_older_than, parse_version
from ostinato.server.verbs.selection import Selection

_PAGE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1  # resourceVersion of a token that continues with the current state


class Listing(msgspec.Struct):
    """Return the objects of a list request, and the metadata of the list."""

    entries: list[Entry]
    metadata: Json


async def list_(context: Context) -> Response:
    form = form_of(context.request, context.resource, watchable=True)
    options = list_options(context.request)
    check_list_options(options, watch=False)
    found = await listing(context, options)
    return await list_response(context, context.resource, found.entries, found.metadata, form)


async def listing(context: Context, options: ListOptions) -> Listing:
    """Return the objects that the options select."""
    selection = Selection(context, options)
    entries, version = await _read(context, options)
    conversion = context.resource.conversion
    if conversion is not None and not selection.everything:
        entries = await conversion.entries(entries)  # selectors apply to converted objects
    if not selection.everything:
        selected = await in_slices(context.lane.turns, selection.selects, entries, 128)
        entries = list(compress(entries, selected))
    metadata: Json = {"resourceVersion": str(version)}
    if 0 < options.limit < len(entries) and not _from_cache(options):
        left = len(entries) - options.limit
        entries = entries[: options.limit]
        metadata["continue"] = ContinueToken(version, entries[-1].key.removeprefix(context.prefix)).encode()
        if selection.everything:
            metadata["remainingItemCount"] = left
    if conversion is not None and selection.everything:
        entries = await conversion.entries(entries)
    return Listing(entries, metadata)


def _from_cache(options: ListOptions) -> bool:
    """Whether any state suffices (resourceVersion 0): then the limit is ignored."""
    return options.resource_version == "0" and not options.continue_ and options.match != "Exact"


async def _read(context: Context, options: ListOptions) -> tuple[list[Entry], int]:
    """Return the objects in scope, and the resourceVersion of the read."""
    index, collection, prefix = context.index, context.collection, context.prefix
    if options.continue_:
        return await _next_page(context, options)
    if not options.resource_version and index.is_shared:
        await index.catch_up()
    if options.resource_version in ("", "0"):
        return collection.select(prefix), index.version
    try:
        version = parse_version(options.resource_version)
    except ValueError as error:
        raise BadRequest.of(f"invalid resource version: {error}") from error
    await not_older_than(index, context.world.clock, version)
    if options.match == "Exact" or (not options.match and options.limit):
        try:
            return index.select_at(collection, version, prefix, ""), version
        except Compacted:
            raise Expired.of("The resourceVersion for the provided list is too old.") from None
    return collection.select(prefix), index.version


async def _next_page(context: Context, options: ListOptions) -> tuple[list[Entry], int]:
    token = ContinueToken.decode(options.continue_)
    if options.resource_version not in ("", "0"):
        raise BadRequest.of("specifying resource version is not allowed when using continue")
    index = context.index
    if token.version > 0:
        await not_older_than(index, context.world.clock, token.version)  # of a page that another server returned
    elif index.is_shared:
        await index.catch_up()
    version = token.version if token.version > 0 else index.version
    try:
        return index.select_at(context.collection, version, context.prefix, context.prefix + token.after), version
    except Compacted:
        status = Expired.of(_PAGE_TOO_OLD).status
        metadata = {"continue": ContinueToken(_INCONSISTENT, token.after).encode()}
        raise Expired(msgspec.structs.replace(status, metadata=metadata)) from None
