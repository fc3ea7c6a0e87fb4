"""list: objects in their current state or at a resourceVersion, in one response or in pages."""

from __future__ import annotations

from itertools import compress

import msgspec

from ostinato.api.errors import BadRequest, Expired
from ostinato.server.request import Response
from ostinato.server.request.context import Context
from ostinato.server.request.list_body import COMPLETE, MAX_BODY_BYTES, Page
from ostinato.server.request.list_encoding import encode_items, is_sharable, shared_response
from ostinato.server.request.messages import SHORT_QUERY
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.options import ListOptions, check_list_options, list_options
from ostinato.server.request.present import in_slices, list_response
from ostinato.server.resources.strategy import Json
from ostinato.server.store.collection import Selected
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
    """The objects of a list request, and the metadata of the list."""

    entries: list[Entry]
    metadata: Json


async def list_(context: Context) -> Response:
    form = form_of(context.request, context.resource, watchable=True)
    options = list_options(context.request)
    check_list_options(options, watch=False)
    selection = Selection(context, options)
    current, version, beyond = await _read(context, options, selection)
    resource, query = context.resource, context.request.query_string
    key = (resource, context.prefix, form, query)
    shared = isinstance(current, Selected) and not options.continue_ and is_sharable(resource, form)
    body = context.lists.find(key, current) if shared else None
    if body is None:
        entries, page = await _select(context, options, selection, current, beyond)
        if not shared or len(query) > SHORT_QUERY or sum(len(entry.data) for entry in entries) > MAX_BODY_BYTES:
            return await list_response(context, resource, entries, _metadata(context, version, page), form)
        async with context.lists.making(key):
            body = context.lists.find(key, current)
            if body is None:
                body = await encode_items(context, entries, page, form, context.lists.items(key))
                context.lists.keep(key, current, body)
    return shared_response(resource, _metadata(context, version, body.page), form, body)


async def listing(context: Context, options: ListOptions) -> Listing:
    """Return the objects that the options select."""
    selection = Selection(context, options)
    entries, version, beyond = await _read(context, options, selection)
    entries, page = await _select(context, options, selection, entries, beyond)
    return Listing(entries, _metadata(context, version, page))


async def _select(
    context: Context, options: ListOptions, selection: Selection, entries: list[Entry], beyond: int
) -> tuple[list[Entry], Page]:
    """Return the objects that match, up to the limit. `beyond`: objects that were not read, after these."""
    conversion = context.resource.conversion
    if conversion is not None and not selection.everything:
        entries = await conversion.entries(entries)  # selectors apply to converted objects
    if not selection.everything:
        selected = await in_slices(context.lane.turns, selection.selects, entries, 128)
        entries = list(compress(entries, selected))
    page = COMPLETE
    if 0 < options.limit < len(entries) + beyond and not _from_cache(options):
        left = len(entries) + beyond - options.limit
        entries = entries[: options.limit]
        page = Page(entries[-1].key, left if selection.everything else None)
    if conversion is not None and selection.everything:
        entries = await conversion.entries(entries)
    return entries, page


def _metadata(context: Context, version: int, page: Page) -> Json:
    metadata: Json = {"resourceVersion": str(version)}
    if page.last:
        metadata["continue"] = ContinueToken(version, page.last.removeprefix(context.prefix)).encode()
        if page.left is not None:
            metadata["remainingItemCount"] = page.left
    return metadata


def _from_cache(options: ListOptions) -> bool:
    """Whether any state suffices (resourceVersion 0): then the limit is ignored."""
    return options.resource_version == "0" and not options.continue_ and options.match != "Exact"


async def _read(context: Context, options: ListOptions, selection: Selection) -> tuple[list[Entry], int, int]:
    """Return the objects in scope, the resourceVersion of the read, and the number of objects beyond the limit.

    More objects than the limit may be returned.
    """
    index, collection, prefix = context.index, context.collection, context.prefix
    if options.continue_:
        return await _next_page(context, options, selection)
    if not options.resource_version and index.is_shared:
        await index.catch_up()
    if options.resource_version in ("", "0"):
        return collection.select(prefix), index.version, 0
    try:
        version = parse_version(options.resource_version)
    except ValueError as error:
        raise BadRequest.of(f"invalid resource version: {error}") from error
    await not_older_than(index, context.world.clock, version)
    if options.match == "Exact" or (not options.match and options.limit):
        try:
            return await _read_at(context, options, selection, version, "")
        except Compacted:
            raise Expired.of("The resourceVersion for the provided list is too old.") from None
    return collection.select(prefix), index.version, 0


async def _read_at(
    context: Context, options: ListOptions, selection: Selection, version: int, after: str
) -> tuple[list[Entry], int, int]:
    """Read the objects at a resourceVersion from the history; before it, from the store."""
    index, collection, prefix = context.index, context.collection, context.prefix
    try:
        return index.select_at(collection, version, prefix, after), version, 0
    except Compacted:
        limit = options.limit if selection.everything else 0
        entries, beyond = await index.select_past(collection, version, prefix, after, limit)
        return entries, version, beyond


async def _next_page(context: Context, options: ListOptions, selection: Selection) -> tuple[list[Entry], int, int]:
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
        return await _read_at(context, options, selection, version, context.prefix + token.after)
    except Compacted:
        status = Expired.of(_PAGE_TOO_OLD).status
        metadata = {"continue": ContinueToken(_INCONSISTENT, token.after).encode()}
        raise Expired(msgspec.structs.replace(status, metadata=metadata)) from None
