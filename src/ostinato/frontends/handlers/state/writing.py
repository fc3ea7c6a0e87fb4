"""Writing: the patch of a handler and the progress, in as few requests as possible.

- The status, with results and progress, is one merge patch of the status subresource. A kind without that subresource
  gets everything in one patch of the object.
- A patch has the uid of the object: one that was deleted and recreated meanwhile is not changed.
- Nothing is sent if nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import APIError, BadRequest, Conflict, Forbidden, Invalid, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.patch import create_merge_patch, merge_patch
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.frontends.handlers.objects.patching import Patch, merged, pruned, transformed
from ostinato.frontends.handlers.resources import Resource
from ostinato.frontends.handlers.state.progress import Record
from ostinato.frontends.handlers.state.stores import Store

Json = dict[str, Any]

_ATTEMPTS: Final = 5  # of functions in `patch.fns`, after conflicts


class PatchRejected(Exception):  # noqa: N818 - named after the event
    """The server has rejected the patch of a handler. The cause is its error."""


class ObjectWriter:
    """Writes the objects of a kind."""

    def __init__(self, view: Unstructured, store: Store) -> None:
        self.view = view
        self.store = store
        self.resource = Resource.of(view)
        self._has_status = True  # the subresource; until the server says that it does not exist

    async def write(self, body: Json, patch: Patch | None, record: Record | None, context: Context) -> Json:
        """Send the patch of a handler and the record, and return the object as the server has it.

        Raises `PatchRejected` if the server rejects the patch of the handler.
        """
        whole = pruned(patch) if patch is not None else {}
        functions = patch.fns if patch is not None else []
        status = whole.pop("status", None) or {}
        try:
            if functions:
                body = await self._transform(body, functions, context)
            stored = {} if record is None else self.store.status_patch(body, record)
            if self._has_status:
                body = await self._send(body, whole, "", context)
                body = await self._send_status(body, merged(status, stored), context)
            else:
                body = await self._send(body, _with_status(whole, merged(status, stored)), "", context)
        except (Invalid, BadRequest, Forbidden) as error:
            if not whole and not status and not functions:
                raise
            raise PatchRejected(str(error)) from error
        if record is not None:
            await self.store.save(body, record, context.client, context.name)
        return body

    async def _send_status(self, body: Json, status: Json, context: Context) -> Json:
        if not status:
            return body
        cached = context.client.informers.of(self.view).store.get(access.key(body))
        if cached is not None and cached.uid != access.uid(body):  # the server ignores the uid in a patch of the status
            raise self._recreated(body)
        try:
            return await self._send(body, {"status": status}, "status", context)
        except NotFound:
            if await context.client.live.get(self.view, access.key(body), missing=None) is None:
                raise
            self._has_status = False
            return await self._send(body, {"status": status}, "", context)

    async def _send(self, body: Json, change: Json, subresource: str, context: Context) -> Json:
        if not change or not create_merge_patch(body, merge_patch(body, change)):
            return body
        metadata = {**change.get("metadata", {}), "uid": access.uid(body)}
        sent = MergePatch({**change, "metadata": metadata})
        options: Json = {"subresource": subresource} if subresource else {}
        try:
            return await context.client.patch(self.view, access.key(body), sent, field_manager=context.name, **options)
        except Invalid as error:
            if not _is_about_uid(error):
                raise
            raise self._recreated(body) from error

    def _recreated(self, body: Json) -> Conflict:
        gvk = access.gvk(body)
        resource = GroupResource(gvk.group, self.view.info.plural if self.view.info is not None else gvk.kind)
        return Conflict.of(resource, access.name(body), "the object was deleted and recreated")

    async def _transform(self, body: Json, functions: list[Callable[[Json], object]], context: Context) -> Json:
        """Send what functions change, conditional on the resourceVersion."""
        for attempt in range(_ATTEMPTS):
            change = transformed(body, functions)
            if not change:
                return body
            version = {"resourceVersion": access.resource_version(body)}
            locked = {**change, "metadata": {**change.get("metadata", {}), **version}}
            status = locked.pop("status", None) if self._has_status else None
            try:
                if set(change) - {"status"}:
                    body = await self._send(body, locked, "", context)
                return body if status is None else await self._send_status(body, status, context)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            body = await self._newer(body, context)
        raise AssertionError

    async def _newer(self, body: Json, context: Context) -> Json:
        newer = await context.client.live.get(self.view, access.key(body))
        if access.uid(newer) != access.uid(body):
            raise self._recreated(body)
        return newer

    async def set_finalizer(self, body: Json, name: str, context: Context, *, present: bool) -> Json:
        """Add or remove a finalizer, and return the object. After a conflict, tries again with the newer object."""
        for attempt in range(_ATTEMPTS):
            found = list(access.finalizers(body))
            if (name in found) is present:
                return body
            wanted = [*found, name] if present else [each for each in found if each != name]
            metadata = {"finalizers": wanted or None, "resourceVersion": access.resource_version(body)}
            try:
                return await self._send(body, {"metadata": metadata}, "", context)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            body = await self._newer(body, context)
        raise AssertionError


def _with_status(whole: Json, status: Json) -> Json:
    return {**whole, "status": status} if status else whole


def _is_about_uid(error: APIError) -> bool:
    return any(each.field == "metadata.uid" for each in error.causes)
