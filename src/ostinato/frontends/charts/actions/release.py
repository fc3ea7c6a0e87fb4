"""Release: the actions on one release, each of which a later process can take up where this one died.

| action | status of its revision | steps between its hooks |
|---|---|---|
| install | `pending-install`, then `deployed` or `failed` | CRDs (before the hooks), objects |
| upgrade | `pending-upgrade`, then `deployed` or `failed`; the former `superseded` | objects, deletion of others |
| roll back | `pending-rollback`, then as for an upgrade | objects of the last deployed revision, as a new one |
| uninstall | `uninstalling`, then no records | deletion of objects |

- The record is written before the first object. A pending record without its process is a leftover: the action is done
  again from the start, over the same objects.
- An installation that fails is undone; an upgrade that fails is rolled back.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import APIError
from ostinato.api.time import MicroTime
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.frontends.charts.actions.hooks import HookRunner
from ostinato.frontends.charts.actions.objects import ReleaseError, ReleaseObjects
from ostinato.frontends.charts.manifests import ManifestError, dropped, objects_of
from ostinato.frontends.charts.releases.record import (
    DEPLOYED,
    FAILED,
    PENDING_INSTALL,
    PENDING_ROLLBACK,
    PENDING_UPGRADE,
    UNINSTALLING,
    HookRecord,
    Info,
    ReleaseRecord,
)
from ostinato.frontends.charts.releases.storage import ReleaseStorage

Json = dict[str, Any]

_DEFINITION: Final = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PENDING: Final = (PENDING_INSTALL, PENDING_UPGRADE, PENDING_ROLLBACK)
FAILURES: Final = (APIError, ReleaseError, ManifestError)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """A rendered chart, and what of it is recorded."""

    chart: Json  # as in the record
    digest: str
    config: Json  # the given values
    manifest: str
    hooks: Sequence[HookRecord]
    notes: str = ""
    definitions: Sequence[Json] = ()  # CustomResourceDefinitions of crds/


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `ready`: seconds to wait until the objects are ready. Defaults to 0: do not wait.
    - `hooks`: seconds for each hook. Defaults to 300, as in Helm.
    """

    ready: float = 0.0
    hooks: float = 300.0


class Release:
    def __init__(
        self, client: CachedClient, storage: ReleaseStorage, objects: ReleaseObjects, owner: Json, waiting: Waiting
    ) -> None:
        self._client = client
        self._storage = storage
        self._objects = objects
        self._waiting = waiting
        self._name, self._namespace = access.name(owner), access.namespace(owner)
        self._hooks = HookRunner(client, objects, owner, waiting.hooks)

    async def install(self, content: Content) -> ReleaseRecord:
        """Install the chart. After a failure what was created is deleted, and the error raised."""
        record = self._record(content, 1, PENDING_INSTALL, "Initial install underway")
        await self._storage.create(record)
        try:
            await self._define(content.definitions)
            await self._deploy(record, [], "install", force=False)
        except FAILURES as error:
            await self._fail(record, f'Release "{self._name}" failed: {error}')
            await self._objects.delete(objects_of(record.manifest))
            raise
        return await self._finish(record, [], "Install complete")

    async def upgrade(self, content: Content, history: Sequence[ReleaseRecord], *, force: bool) -> ReleaseRecord:
        """Upgrade to this content. A failure is recorded and raised; see `roll_back`."""
        deployed = deployed_of(history)
        assert deployed is not None, "only an installed release is upgraded"
        before = self._objects_since(history, deployed)
        record = self._record(content, history[-1].version + 1, PENDING_UPGRADE, "Preparing upgrade")
        record.info.first_deployed = deployed.info.first_deployed
        await self._storage.create(record)
        try:
            await self._deploy(record, before, "upgrade", force=force)
        except FAILURES as error:
            await self._fail(record, f'Upgrade "{self._name}" failed: {error}')
            raise
        return await self._finish(record, history, "Upgrade complete")

    async def roll_back(self, history: Sequence[ReleaseRecord], *, force: bool) -> ReleaseRecord:
        """Deploy the last deployed revision again, as a new one; objects of a failed upgrade are deleted."""
        deployed = deployed_of(history)
        assert deployed is not None, "there is a revision to go back to"
        record = copy.deepcopy(deployed)
        record.version = history[-1].version + 1
        record.info.status = PENDING_ROLLBACK
        record.info.description = f"Rollback to {deployed.version}"
        record.info.last_deployed = self._now()
        await self._storage.create(record)
        before = self._objects_since(history, deployed)
        try:
            await self._deploy(record, before, "rollback", force=force)
        except FAILURES as error:
            await self._fail(record, f'Rollback "{self._name}" failed: {error}')
            raise
        return await self._finish(record, history, record.info.description)

    async def discard(self, history: Sequence[ReleaseRecord], content: Content) -> None:
        """Delete records of failed and interrupted installations, and their objects that are not in `content`."""
        after = await self._objects.placed(objects_of(content.manifest))
        before = await self._objects.served(each for one in history for each in _readable(one))
        await self._objects.delete(dropped(before, [each for _, each in after]))
        for each in history:
            await self._storage.delete(each)

    async def settle(self, history: Sequence[ReleaseRecord]) -> bool:
        """Record actions that were interrupted as failed; return whether there were any after the deployed revision."""
        deployed = deployed_of(history)
        interrupted = [each for each in history if each.status in PENDING]
        for each in interrupted:
            await self._fail(each, "Interrupted")
        await self._storage.supersede([each for each in history if each is not deployed])
        return bool(interrupted)

    async def repair(self, record: ReleaseRecord) -> None:
        """Apply the objects of a deployed revision again; no request is sent for those that have not changed."""
        await self._objects.apply(objects_of(record.manifest))

    async def uninstall(self, history: Sequence[ReleaseRecord], *, wait: bool) -> list[Json]:
        """Delete the objects and then the records; return the objects that still exist.

        `wait`: keep the records until no object exists.
        """
        record = next((each for each in history if each.status == UNINSTALLING), deployed_of(history) or history[-1])
        if record.status != UNINSTALLING:
            await self._hooks.run(record.hooks or [], "pre-delete")
            record.info.status = UNINSTALLING
            record.info.deleted = self._now()
            record.info.description = "Deletion in progress (or silently failed)"
            await self._storage.update(record)
        objects = [each for one in history for each in _readable(one)]
        left = await self._objects.delete(objects)
        if left and wait:
            return left
        await self._hooks.run(record.hooks or [], "post-delete")
        await self._storage.delete_all()
        return left

    # Steps

    async def _define(self, definitions: Sequence[Json]) -> None:
        """Create the definitions that do not exist; existing ones are not changed, as in Helm."""
        for each in definitions:
            if await self._client.live.get(_DEFINITION, access.name(each), missing=None) is None:
                await self._client.create(each)
            await self._client.live.wait_for(_DEFINITION, access.name(each), "Established", timeout=60)
        if definitions:
            await self._client.live.mapper.refresh()

    async def _deploy(self, record: ReleaseRecord, before: Sequence[Json], action: str, *, force: bool) -> None:
        hooks = record.hooks or []
        after = objects_of(record.manifest)
        await self._hooks.run(hooks, f"pre-{action}")
        applied = await self._objects.apply(after, force=force)
        if before:
            placed = [each for _, each in await self._objects.placed(after)]
            await self._objects.delete(dropped(await self._objects.served(before), placed))
        if self._waiting.ready:
            await self._objects.ready(applied, self._waiting.ready)
        await self._hooks.run(hooks, f"post-{action}")

    async def _fail(self, record: ReleaseRecord, description: str) -> None:
        record.info.status = FAILED
        record.info.description = description
        await self._storage.update(record)

    async def _finish(self, record: ReleaseRecord, history: Sequence[ReleaseRecord], description: str) -> ReleaseRecord:
        """Mark the revision as deployed, then the former ones as superseded: of two deployed ones the newer wins."""
        record.info.status = DEPLOYED
        record.info.description = description
        await self._storage.update(record)
        await self._storage.supersede([each for each in history if each.version != record.version])
        return record

    def _objects_since(self, history: Sequence[ReleaseRecord], deployed: ReleaseRecord) -> list[Json]:
        """Return the objects of the deployed revision and of those after it, which have failed."""
        return [each for one in history if one.version >= deployed.version for each in _readable(one)]

    def _record(self, content: Content, version: int, status: str, description: str) -> ReleaseRecord:
        now = self._now()
        return ReleaseRecord(
            name=self._name,
            namespace=self._namespace,
            version=version,
            info=Info(now, now, "", status, description, content.notes),
            chart=content.chart,
            config=content.config,
            manifest=content.manifest,
            hooks=[copy.deepcopy(each) for each in content.hooks],
            digest=content.digest,
        )

    def _now(self) -> str:
        return str(MicroTime.of(self._client.world.clock.now()))


def deployed_of(history: Sequence[ReleaseRecord]) -> ReleaseRecord | None:
    """Return the newest deployed revision."""
    return next((each for each in reversed(history) if each.status == DEPLOYED), None)


def _readable(record: ReleaseRecord) -> list[Json]:
    """Return the objects of a revision; none of one that failed because its manifest cannot be read."""
    try:
        return objects_of(record.manifest)
    except ManifestError:
        return []
