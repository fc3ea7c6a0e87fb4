"""list: many objects, as they are now or were at a version, whole or in pages."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from ostinato.api.errors import BadRequest, Expired
from ostinato.server.negotiate import BUILTIN, CUSTOM, form_of
from ostinato.server.options import ListOptions, check_list_options, list_options
from ostinato.server.present import LIST_FORMS, list_response
from ostinato.server.request import Response
from ostinato.server.store.index import Compacted, Entry
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.get import not_older_than, parse_version
from ostinato.server.verbs.selection import Selection

_PAGE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct):
    """A continue token: the version of the list, and the key before the next page."""

    rv: int
    start: str
    v: str = "meta.k8s.io/v1"

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> _Token:
        try:
            token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=cls)
        except (binascii.Error, ValueError, msgspec.DecodeError) as error:
            raise BadRequest.of(f"continue key is not valid: {error}") from error
        if token.v != "meta.k8s.io/v1":
            raise BadRequest.of(
                f"continue key is not valid: server does not recognize this encoded version {token.v!r}"
            )
        return token


async def list_(context: Context) -> Response:
    resource = context.resource
    request = context.request
    form = form_of(
        request.headers.get("accept", ""), LIST_FORMS, supported=CUSTOM if resource.custom else BUILTIN, stream=True
    )
    options = list_options(request)
    check_list_options(options, watch=False)
    selection = Selection(context, options)
    entries, version = await _read(context, options)
    if not selection.everything:
        total = None
        entries = [entry for entry in entries if selection.selects(entry)]
    else:
        total = len(entries)
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if 0 < options.limit < len(entries):
        entries = entries[: options.limit]
        metadata["continue"] = _Token(version, entries[-1].key).encode()
        if total is not None:
            metadata["remainingItemCount"] = total - options.limit
    return list_response(resource, entries, metadata, form, request.parameter("includeObject") or "Metadata")


async def _read(context: Context, options: ListOptions) -> tuple[list[Entry], int]:
    """The objects of the scope, and the version at which they are read."""
    index, collection, prefix = context.index, context.resource.collection, context.prefix
    assert collection is not None
    if options.continue_:
        if options.resource_version not in ("", "0"):
            raise BadRequest.of("specifying resource version is not allowed when using continue")
        token = _Token.decode(options.continue_)
        version = token.rv if token.rv > 0 else index.version
        try:
            return index.select_at(collection, version, prefix, token.start), version
        except Compacted:
            error = Expired.of(_PAGE_TOO_OLD)
            raise Expired(
                msgspec.structs.replace(error.status, metadata={"continue": _Token(-1, token.start).encode()})
            ) from None
    if options.resource_version in ("", "0"):
        return collection.select(prefix), index.version
    version = parse_version(options.resource_version)
    await not_older_than(index, context.world.clock, version)
    if options.match == "Exact" or (not options.match and options.limit):
        try:
            return index.select_at(collection, version, prefix, ""), version
        except Compacted:
            raise Expired.of("The resourceVersion for the provided list is too old.") from None
    return collection.select(prefix), index.version
