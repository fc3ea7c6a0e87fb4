"""Encoding of the items of a list, apart from its head, in the forms of which responses can share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ostinato.server.flow.heavy import HEAVY_BYTES
from ostinato.server.request import Response
from ostinato.server.request.list_body import PIECE_BYTES, ListBody, Page
from ostinato.server.request.negotiate import PLAIN, Form
from ostinato.server.request.present import in_slices, list_head
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.records import Entry

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_PROTOBUF = Form("protobuf")
_SHORT = 1 << 15  # bytes of a body that is sent as one part
_END = b"]}\n"


def is_sharable(resource: Resource, form: Form) -> bool:
    """Whether lists of a resource have a body of their own in this form: the same at any time, for any client."""
    if resource.conversion is not None:
        return False
    return form is PLAIN or (form == _PROTOBUF and not resource.custom)


async def encode_items(
    context: Context, entries: Sequence[Entry], page: Page, form: Form, known: Mapping[Entry, bytes]
) -> ListBody:
    """Encode the items of a list. `known`: encodings of some objects in this form."""
    resource, turns = context.resource, context.lane.turns
    if form.media == "protobuf":
        items = await _as_protobuf(context, entries, known)
        return ListBody(await _joined(context, list(items.values()), b""), page, items)
    if resource.items_as_stored:
        parts = [entry.data for entry in entries]
    else:
        parts = await in_slices(turns, lambda entry: resource.item(entry.data), entries, 64)
    return ListBody(await _joined(context, parts, b","), page)


async def _joined(context: Context, parts: list[bytes], between: bytes) -> list[bytes]:
    """Join parts to pieces of about `PIECE_BYTES`. The separator precedes each piece but the first."""
    if not parts:
        return []
    count = max(1, PIECE_BYTES * len(parts) // (sum(map(len, parts)) or 1))
    pieces = [between.join(parts[:count])]
    for start in range(count, len(parts), count):
        pieces.append(between.join([b"", *parts[start : start + count]]))
        await context.lane.turns.pause()
    return pieces


async def _as_protobuf(context: Context, entries: Sequence[Entry], known: Mapping[Entry, bytes]) -> dict[Entry, bytes]:
    from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

    resource = context.resource
    message = protobuf.item_of(resource.gvk.api_version, resource.list_kind)
    missing = [entry for entry in entries if entry not in known] if known else entries

    def encoded(chosen: Iterable[Entry]) -> list[bytes]:
        return [protobuf.encode_item(message, resource.object(entry.data)) for entry in chosen]

    if sum(len(entry.data) for entry in missing) < HEAVY_BYTES // 4:
        new = dict(zip(missing, encoded(missing), strict=True))
    else:
        new = dict(zip(missing, await context.in_thread(lambda: encoded(missing)), strict=True))
    return {entry: new.get(entry) or known[entry] for entry in entries} if known else new


def shared_response(resource: Resource, metadata: Json, form: Form, body: ListBody) -> Response:
    """The response with a list whose items are encoded."""
    head = list_head(resource, metadata)
    if form.media == "protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415 - see above

        before, after = protobuf.list_envelope(head, body.length)
    else:
        before, after = msgspec.json.encode(head)[:-1] + b',"items":[', _END
    if body.length < _SHORT:
        return Response(200, b"".join([before, *body.pieces, after]), form.content_type)
    return Response(200, [before, *body.pieces, after], form.content_type, shared=body)
