"""Stores: where the progress of an object is kept.

| kind | store |
|---|---|
| custom resources | `status.handlers.NAME` of the object |
| kinds of Kubernetes itself; custom resources whose schema prunes that field | a ConfigMap beside the object |
| Secrets | a Secret beside the object: the last handled state has its data |

- Annotations of objects are never written.
- A ConfigMap of a record has the object as its owner, so that it is deleted with it. For cluster-scoped objects it is
  in the operator's namespace.
- Whether a schema keeps the field is seen in the server's response to the first write.
- This process is the only writer: what it has written is also kept in memory, and is used if another client erases the
  status.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import AlreadyExists, Forbidden, NotFound
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.patch import create_merge_patch
from ostinato.cache.client import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.frontends.handlers.resources import is_builtin
from ostinato.frontends.handlers.state.progress import Record

Json = dict[str, Any]

FIELD: Final = "handlers"  # of the status
LABEL: Final = "handlers.ostinato.dev/operator"
_KOPF: Final = "kopf.zalando.org/last-handled-configuration"
_SECRET: Final = GroupVersionKind("", "v1", "Secret")
_KEY: Final = "record"
_logger = logging.getLogger("ostinato.handlers")


def is_record(body: Json) -> bool:
    """Return whether an object is a record: handlers of ConfigMaps are not called for it."""
    return LABEL in access.labels(body)


class Store:
    """The records of the objects of a kind."""

    def __init__(self, operator: str, gvk: GroupVersionKind, where: str, namespace: str) -> None:
        """
        - `operator`: name of the handlers; operators with different names do not see each other's records.
        - `where`: "auto", "status" or "objects".
        - `namespace`: of the records of cluster-scoped objects.
        """
        self._operator = operator
        self._in_status = where == "status" or (where == "auto" and not is_builtin(gvk))
        self._may_fall_back = where == "auto"
        self._objects = RecordObjects(operator, gvk, namespace)

    def share(self) -> None:
        """Read each record when it is needed: other replicas write records, of objects that may become this one's."""
        self._objects.is_shared = True

    async def load(self, body: Json, client: CachedClient) -> Record:
        """Return the record of an object; an empty one if it was never handled."""
        uid = access.uid(body)
        found = Record.read(self._fragment(body), uid) if self._in_status else None
        if found is None and (not self._in_status or self._may_fall_back):
            found = Record.read(await self._objects.load(body, client), uid)
        return Record(uid, last=_handled_by_kopf(body)) if found is None else found

    def status_patch(self, body: Json, record: Record) -> Json:
        """Return the merge patch of the status that stores a record; {} if the status has it, or another place has."""
        if not self._in_status:
            return {}
        before = self._fragment(body)
        after = {name: value for name, value in record.stored().items() if value is not None}
        change = create_merge_patch(before if isinstance(before, dict) else {}, after)
        return {FIELD: {self._operator: change}} if change else {}

    async def save(self, body: Json, record: Record, client: CachedClient, manager: str) -> None:
        """Store the record elsewhere, if the status does not hold it. `body`: as the write of the status returned."""
        if self._in_status:
            if Record.read(self._fragment(body), record.uid) is not None or not self._may_fall_back:
                return
            self._in_status = False
            _logger.info(
                "the schema of the kind does not keep status.%s; progress is stored in ConfigMaps kind=%s operator=%s",
                FIELD,
                body.get("kind"),
                self._operator,
            )
        await self._objects.save(body, record, client, manager)

    async def discard(self, uid: str, client: CachedClient) -> None:
        """Delete the record of an object that is gone, if this process has written one."""
        await self._objects.discard(uid, client)

    def _fragment(self, body: Json) -> object:
        status = body.get("status")
        found = status.get(FIELD) if isinstance(status, dict) else None
        return found.get(self._operator) if isinstance(found, dict) else None


class RecordObjects:
    """Records in ConfigMaps, or in Secrets for Secrets."""

    def __init__(self, operator: str, gvk: GroupVersionKind, namespace: str) -> None:
        self._operator = operator
        self._namespace = namespace
        self._is_secret = gvk == _SECRET
        self._view = Unstructured.of("v1", "Secret" if self._is_secret else "ConfigMap")
        self._written: dict[str, NamespacedName] = {}  # by uid of the object
        self._listed: dict[str, bytes] | None = None  # records found at the start, by uid; taken when they are loaded
        self._listing = asyncio.Lock()
        self.is_shared = False  # other replicas write records, too

    async def load(self, body: Json, client: CachedClient) -> object:
        uid = access.uid(body)
        async with self._listing:
            if self._listed is None:
                self._listed = {} if self.is_shared else await self._list(client)
        data = self._listed.pop(uid, None)
        if data is None and (self.is_shared or uid in self._written):
            found = await client.live.get(self._view, self._place(body), missing=None)
            data = None if found is None else _data(found)
        if data is None:
            return None
        self._written.setdefault(uid, self._place(body))
        try:
            return msgspec.json.decode(data)
        except msgspec.MsgspecError:
            return None

    async def save(self, body: Json, record: Record, client: CachedClient, manager: str) -> None:
        place = self._place(body)
        content = {"stringData" if self._is_secret else "data": {_KEY: msgspec.json.encode(record.stored()).decode()}}
        uid = access.uid(body)
        try:
            if uid in self._written:
                await client.live.patch(self._view, place, MergePatch(content), field_manager=manager)
                return
            document = {**self._empty(body, place), **content}
            try:
                await client.live.create(document, field_manager=manager)
            except AlreadyExists:
                await client.live.patch(self._view, place, MergePatch(content), field_manager=manager)
        except NotFound:  # deleted by someone, or with its owner
            self._written.pop(uid, None)
            if not access.is_being_deleted(body):
                raise
            return
        except Forbidden:
            if not access.is_being_deleted(body):
                raise  # in a namespace that is being deleted nothing can be created: memory has to do
            return
        self._written[uid] = place

    async def discard(self, uid: str, client: CachedClient) -> None:
        place = self._written.pop(uid, None)
        if place is not None:
            await client.live.delete(self._view, place, missing_ok=True)

    async def _list(self, client: CachedClient) -> dict[str, bytes]:
        """Return all records, in the namespaces that are watched."""
        found: dict[str, bytes] = {}
        informers = client.informers
        namespaces = informers.settings_of(self._view).namespaces
        for namespace in {*namespaces, *([] if "" in namespaces else [self._namespace])}:
            async for each in client.live.list(self._view, namespace=namespace, labels={LABEL: self._operator}):
                data = _data(each)
                if data is not None:
                    found[access.name(each).rpartition(".")[2]] = data
        return found

    def _place(self, body: Json) -> NamespacedName:
        return NamespacedName(access.namespace(body) or self._namespace, f"{self._operator}.{access.uid(body)}")

    def _empty(self, body: Json, place: NamespacedName) -> Json:
        gvk = access.gvk(body)
        owner = {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": access.name(body), "uid": access.uid(body)}
        return {
            "apiVersion": "v1",
            "kind": self._view.gvk.kind,
            "metadata": {
                "name": place.name,
                "namespace": place.namespace,
                "labels": {LABEL: self._operator},
                "ownerReferences": [owner],
            },
        }


def _data(instance: Json) -> bytes | None:
    content = instance.get("data")
    text = content.get(_KEY) if isinstance(content, dict) else None
    if not isinstance(text, str):
        return None
    if instance.get("kind") != "Secret":
        return text.encode()
    try:
        return msgspec.json.decode(f'"{text}"', type=bytes)
    except msgspec.MsgspecError:
        return None


def _handled_by_kopf(body: Json) -> Json | None:
    """Return the state that kopf has handled last, for an object that was handled by a kopf operator before."""
    text = access.annotations(body).get(_KOPF)
    try:
        found = msgspec.json.decode(text) if text else None
    except msgspec.MsgspecError:
        return None
    return found if isinstance(found, dict) else None
