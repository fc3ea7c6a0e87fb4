"""ComponentStatuses (deprecated): the health of the store.

The server reports only its own store, under the name `etcd-0`.
"""

from __future__ import annotations

import msgspec

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource
from ostinato.server.request import Response
from ostinato.server.request.context import Context, Handlers
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.present import list_response, object_response
from ostinato.server.store.records import Entry

_STORE = "etcd-0"


async def _get(context: Context) -> Response:
    form = form_of(context.request, context.resource)
    if context.route.name != _STORE:
        raise NotFound.of(GroupResource("", "componentstatus"), context.route.name)
    return object_response(context.resource, _store(context).data, form)


async def _list(context: Context) -> Response:
    form = form_of(context.request, context.resource)
    return await list_response(context, context.resource, [_store(context)], {}, form)


def _store(context: Context) -> Entry:
    failure = context.index.failure
    condition = {"type": "Healthy", "status": "True", "message": "ok"}
    if failure is not None:
        condition = {"type": "Healthy", "status": "False", "message": failure}
    data = msgspec.json.encode({"metadata": {"name": _STORE}, "conditions": [condition]})
    return Entry(_STORE, 0, data, {}, {}, "")


HANDLERS: Handlers = {("", "componentstatuses", "", "get"): _get, ("", "componentstatuses", "", "list"): _list}
