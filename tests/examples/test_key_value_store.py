"""The key-value store runs on real Pods: an upgrade after a backup, one Pod at a time, and a restore."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.examples.example_plane import SECONDS, example, fetch, plane_with

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.apps_v1 import StatefulSet
from ostinato.kinds.batch_v1 import CronJob, Job
from ostinato.kinds.core_v1 import PersistentVolumeClaim, Pod

kv = example("key_value_store/store")


async def change(user: Client, **spec: str) -> Any:
    """Change the store and wait until it is ready."""
    changed = await user.patch(kv.Store, "books", MergePatch({"spec": spec}))
    return await user.wait_for(
        kv.Store,
        "books",
        lambda it: (
            it.status.observed_generation == changed.metadata.generation and it.status.conditions[0].status == "True"
        ),
        timeout=SECONDS,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="addresses of Services need root")
def test_the_store_is_upgraded_after_a_backup_and_restored_from_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with plane_with(tmp_path, kv.stores) as user:
            await user.create(kv.Store(metadata=ObjectMeta(name="books"), spec=kv.StoreSpec()))
            store = await user.wait_for(kv.Store, "books", "Ready", timeout=SECONDS)
            url = store.status.url
            assert await fetch(f"{url}-/version") == "1"
            await fetch(f"{url}tolkien", "PUT", "hobbit")
            assert (await user.get(CronJob, "books-backup")).spec.schedule == "0 3 * * *"

            before = (await user.list(Pod)).resource_version
            assert (await change(user, version="2")).status.version == "2"
            deleted: list[str] = []
            async with user.watch(Pod, namespace="default", since=before) as events:
                async for event in events:
                    deleted += [event.object.metadata.name] if event.type == "DELETED" else []
                    if len(deleted) == 2:
                        break
            assert deleted == ["books-1", "books-0"], "followers first"
            backup = await user.get(Job, "books-before-2")
            revised = await user.get(StatefulSet, "books")
            assert backup.status.completion_time is not None
            assert revised.metadata.annotations[kv.VERSION] == "2"
            assert await fetch(f"{url}-/version") == "2"
            assert await fetch(f"{url}tolkien") == "hobbit", "on its volume"

            await fetch(f"{url}tolkien", "PUT", "lost")
            restored = await change(user, restoreFrom="before-2")
            assert restored.status.restored_from == "before-2"
            assert json.loads(await fetch(url)) == {"tolkien": "hobbit"}

            await fetch(f"{url}orwell", "PUT", "1984")
            await change(user, version="3")
            assert await fetch(f"{url}orwell") == "1984", "restored once, not after each upgrade"

            await user.delete(kv.Store, "books")
            assert (await user.get(PersistentVolumeClaim, "books-backups")).metadata.deletion_timestamp is None

    asyncio.run(main())
