"""Objects that are encrypted in the SQLite store of a real server, and the rotation of keys."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.stage.server import standalone_server, started_server

from ostinato.client import Client
from ostinato.kinds.core_v1 import Secret
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.encryption.configuration import load
from ostinato.server.store.encryption.encrypted_log import EncryptedLog
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import UnusableStore
from ostinato.world import World

SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "namespace": "default"},
    "stringData": {"password": "correct horse"},
}


def configuration(directory: Path, *keys: str, cipher: str = "aesgcm", identity: bool = False) -> Path:
    listed = [{"name": key, "secret": base64.b64encode(key.ljust(32).encode()).decode()} for key in keys]
    providers: list[dict[str, Any]] = [{cipher: {"keys": listed}}] if keys else []
    providers += [{"identity": {}}] if identity else []
    file = directory / "encryption.yaml"
    content = {
        "kind": "EncryptionConfiguration",
        "apiVersion": "apiserver.config.k8s.io/v1",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


def served(state: Path, config: Path | None, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """Start a server on the store, and use it."""

    async def main() -> Any:
        world = World.real(workers=1)
        encryption = Encryption() if config is None else load(config, world.ids)
        log = SQLiteLog(state / "store.db", world, durable=False)
        try:
            async with started_server(world, EncryptedLog(log, encryption)) as server:
                return await work(Client(InProcessTransport(server), world=world))
        except UnusableStore:
            log.close()
            raise
        finally:
            world.executor.close()

    state.mkdir(exist_ok=True)
    return asyncio.run(main())


def stored(state: Path, key: str = "default/a", collection: str = "secrets") -> bytes:
    with sqlite3.connect(state / "store.db") as database:
        query = "SELECT data FROM object WHERE collection = ? AND key = ?"
        (data,) = database.execute(query, (collection, key)).fetchone()
    database.close()
    return bytes(data)


async def create(client: Client) -> Any:
    return await client.create(SECRET)


async def password(client: Client) -> bytes:
    secret = await client.get(Secret, "a", namespace="default")
    return bytes(secret.data["password"])


async def replace(client: Client) -> None:
    """`kubectl get secret a -o json | kubectl replace -f -`."""
    await client.update(await client.get(Secret, "a", namespace="default"))


@pytest.mark.parametrize("cipher", ["aesgcm", "aescbc", "secretbox"])
def test_secrets_are_encrypted_in_the_file_and_read_after_a_restart(tmp_path: Path, cipher: str) -> None:
    state = tmp_path / "state"
    config = configuration(tmp_path, "one", cipher=cipher)
    served(state, config, create)
    assert stored(state).startswith(f"k8s:enc:{cipher}:v1:one:".encode())
    content = b"".join(each.read_bytes() for each in state.glob("store.db*"))
    assert base64.b64encode(b"correct horse") not in content
    assert served(state, config, password) == b"correct horse"
    json.loads(stored(state, "default", "namespaces"))  # not configured: not encrypted


def test_keys_are_rotated_by_updates_that_change_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    served(state, None, create)
    assert b"password" in stored(state)

    async def replace_twice(client: Client) -> list[str]:
        versions = []
        for _ in range(3):
            secret = await client.get(Secret, "a", namespace="default")
            versions.append(secret.metadata.resource_version)
            await client.update(secret)
        return versions

    first, second, third = served(state, configuration(tmp_path, "one", identity=True), replace_twice)
    assert first != second == third, "written again once, and then not any more"
    assert stored(state).startswith(b"k8s:enc:aesgcm:v1:one:")
    served(state, configuration(tmp_path, "two", "one"), replace)
    assert stored(state).startswith(b"k8s:enc:aesgcm:v1:two:")
    assert served(state, configuration(tmp_path, "two"), password) == b"correct horse"
    served(state, configuration(tmp_path, "two", identity=True), password)


def test_encryption_is_ended_by_identity_as_the_first_provider(tmp_path: Path) -> None:
    state = tmp_path / "state"
    file = configuration(tmp_path, "one", identity=True)
    served(state, file, create)
    content = yaml.safe_load(file.read_text())
    content["resources"][0]["providers"].reverse()
    file.write_text(yaml.safe_dump(content))
    served(state, file, replace)
    assert served(state, None, password) == b"correct horse"


def test_a_store_whose_key_is_missing_is_refused_and_names_object_and_key(tmp_path: Path) -> None:
    state = tmp_path / "state"
    served(state, configuration(tmp_path, "one"), create)
    for config, message in (
        (
            None,
            "secrets default/a: is encrypted with aesgcm, key 'one', which --encryption-provider-config does not have",
        ),
        (
            configuration(tmp_path, "two"),
            "key 'one', which --encryption-provider-config does not have for it; add the key",
        ),
    ):
        with pytest.raises(UnusableStore, match="default/a") as caught:
            served(state, config, password)
        assert message in str(caught.value)
    file = configuration(tmp_path, "one")
    file.write_text(file.read_text().replace(base64.b64encode(b"one".ljust(32)).decode(), "b25l" * 10 + "bzE="))
    with pytest.raises(UnusableStore, match="cannot be decrypted with aesgcm, key 'one': the key is wrong"):
        served(state, file, password)
    assert served(state, configuration(tmp_path, "one"), password) == b"correct horse", "nothing was lost"


def test_unencrypted_objects_need_the_provider_identity(tmp_path: Path) -> None:
    state = tmp_path / "state"
    served(state, None, create)
    with pytest.raises(UnusableStore, match="secrets default/a: is not encrypted; add the provider identity"):
        served(state, configuration(tmp_path, "one"), password)


def test_the_configuration_file_of_a_standalone_server_is_used(tmp_path: Path) -> None:
    config = configuration(tmp_path, "one")

    async def start(state: Path) -> None:
        store = f"sqlite:{state / 'store.db'}"
        async with standalone_server(state, store=store, durable=False, encryption_config=config) as server:
            assert server.core is not None
            await Client(InProcessTransport(server.core)).create(SECRET)

    asyncio.run(start(tmp_path / "state"))
    assert stored(tmp_path / "state").startswith(b"k8s:enc:aesgcm:v1:one:")
    config.write_text("kind: Secret\napiVersion: v1\n")
    with pytest.raises(UnusableStore, match=r"--encryption-provider-config .*encryption\.yaml: is a Secret of v1"):
        asyncio.run(start(tmp_path / "other"))
