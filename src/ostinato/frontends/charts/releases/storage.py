"""Release storage: the records of one release, in Secrets of its namespace."""

from __future__ import annotations

from typing import Any

from ostinato.api import accessors as access
from ostinato.api.meta import OwnerReference
from ostinato.api.owners import owner_references, set_owner_reference
from ostinato.client.client import Client
from ostinato.client.views import Unstructured
from ostinato.frontends.charts.releases.record import (
    DEPLOYED,
    SECRET_TYPE,
    SUPERSEDED,
    RecordError,
    ReleaseRecord,
    record_of,
    secret_of,
)

Json = dict[str, Any]

_SECRET = Unstructured.of("v1", "Secret")


class ForeignRelease(RecordError):  # noqa: N818
    """The release of this name belongs to another custom resource."""

    def __init__(self, name: str, owner: OwnerReference) -> None:
        super().__init__(f"release {name} belongs to {owner.kind} {owner.name} (uid {owner.uid}); use another name")


class ReleaseStorage:
    def __init__(self, client: Client, owner: Json, *, max_history: int = 10) -> None:
        """
        - `client`: reads from the server: a decision on an old record would repeat an installation.
        - `owner`: the custom resource; the records are deleted with it.
        - `max_history`: revisions that are kept. Defaults to 10, as in Helm.
        """
        self._client = client
        self._owner = owner
        self._max_history = max_history
        self._name = access.name(owner)
        self._namespace = access.namespace(owner)

    async def history(self) -> list[ReleaseRecord]:
        """Return all revisions, the oldest first. Raises `RecordError`, and `ForeignRelease`."""
        labels = {"owner": "helm", "name": self._name}
        secrets = await self._client.list(_SECRET, namespace=self._namespace, labels=labels)
        stored = [each for each in secrets if each.get("type") == SECRET_TYPE]
        for each in stored:
            self._check_owner(each)
        records = [record_of(each) for each in stored]
        return sorted(records, key=lambda each: each.version)

    def _check_owner(self, secret: Json) -> None:
        owners = owner_references(secret)
        if owners and all(each.uid != access.uid(self._owner) for each in owners):
            raise ForeignRelease(self._name, owners[0])

    async def create(self, record: ReleaseRecord) -> None:
        """Store a new revision, and delete those beyond the history limit."""
        await self._client.create(self._secret(record))
        await self._trim()

    async def update(self, record: ReleaseRecord) -> None:
        """Replace the record of a revision."""
        await self._client.update(self._secret(record))

    async def supersede(self, records: list[ReleaseRecord]) -> None:
        """Mark deployed revisions as superseded."""
        for each in records:
            if each.status == DEPLOYED:
                each.info.status = SUPERSEDED
                await self.update(each)

    async def delete(self, record: ReleaseRecord) -> None:
        await self._client.delete(_SECRET, record.secret_name, namespace=self._namespace, missing_ok=True)

    async def delete_all(self) -> None:
        for each in await self.history():
            await self.delete(each)

    async def _trim(self) -> None:
        """Delete the oldest revisions beyond the limit, never a deployed one."""
        records = await self.history()
        for each in records[: max(0, len(records) - self._max_history)]:
            if each.status != DEPLOYED:
                await self.delete(each)

    def _secret(self, record: ReleaseRecord) -> Json:
        secret = secret_of(record, int(self._client.world.clock.wall()))
        set_owner_reference(self._owner, secret)
        return secret
