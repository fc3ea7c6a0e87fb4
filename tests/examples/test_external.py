"""Buckets and queues in a server with the APIs of S3 and SQS (moto), each a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sysconfig
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.examples.conftest import PACKAGES
from tests.examples.example_plane import EXAMPLES, fetch

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config, MergePatch, Unstructured, is_deleted
from ostinato.kinds.core_v1 import Secret

SECONDS = 20
Json = dict[str, Any]
BUCKET, QUEUE = Unstructured.of("example.dev/v1", "Bucket"), Unstructured.of("example.dev/v1", "Queue")


@contextmanager
def program(*command: str, until: str, log: Path) -> Iterator[str]:
    """Run a program; yields the text that matches `until` in its output."""
    paths = {"PYTHONPATH": str(EXAMPLES.parent / "src"), PACKAGES: sysconfig.get_path("purelib")}
    environment = {**os.environ, **paths}
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream, env=environment) as process:
        try:
            while (found := re.search(until, log.read_text())) is None:
                assert process.poll() is None, log.read_text()
                time.sleep(0.02)
            yield found[1]
        finally:
            process.terminate()
            process.wait(SECONDS)


@pytest.fixture(scope="module")
def store(examples_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with the APIs of S3 and SQS."""
    log = tmp_path_factory.mktemp("moto") / "log"
    with program(examples_python, "-m", "moto.server", "-p", "0", until=r"Running on (http://\S+)", log=log) as url:
        yield url


@pytest.fixture(scope="module")
def kubeconfig(examples_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of a cluster that runs both operators."""
    command = [examples_python, "-m", "ostinato.cli", "run", "--embedded"]
    files = [str(EXAMPLES / "bucket.py"), str(EXAMPLES / "sqs_queue.py")]
    log = tmp_path_factory.mktemp("operators") / "log"
    with program(*command, *files, until=r"--kubeconfig (\S+)\nrunning buckets, queues\n", log=log) as file:
        yield file


def run(kubeconfig: str, play: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        config = Config.load(path=kubeconfig, namespace="default")
        async with asyncio.timeout(SECONDS), Client.connect(config, field_manager="user") as user:
            await play(user)

    asyncio.run(main())


def spec(store: str, secret: str, **more: Any) -> Json:
    return {"endpoint": store, "credentials": secret, **more}


def thing(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "example.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def credentials(name: str) -> Secret:
    data = {"access-key-id": b"testing", "secret-access-key": b"testing"}
    return Secret(metadata=ObjectMeta(name=name), data=data)


def synced(found: Json | None) -> bool:
    status = (found or {}).get("status") or {}
    conditions = status.get("conditions") or [{}]
    return found is not None and (
        conditions[0].get("status") == "True" and status["observedGeneration"] == found["metadata"]["generation"]
    )


async def request(url: str, method: str = "GET", body: str | None = None, service: str = "s3", target: str = "") -> str:
    """Send a request with credentials; the server does not check signatures."""
    scope = f"Credential=testing/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}"}
    if target:
        headers |= {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0"}
    return await fetch(url, method, body, headers)


async def attributes_of(store: str, queue: str) -> Json:
    """Return the attributes of a queue, or the error."""
    body = json.dumps({"QueueUrl": queue, "AttributeNames": ["VisibilityTimeout"]})
    found: Json = json.loads(await request(f"{store}/", "POST", body, "sqs", "AmazonSQS.GetQueueAttributes"))
    return found


def test_a_bucket_follows_its_object_and_is_deleted_with_it(store: str, kubeconfig: str) -> None:
    async def play(user: Client) -> None:
        await user.create(thing("Bucket", "photos", spec(store, "later", versioning=True, tags={"team": "web"})))
        failing = await user.wait_for(
            BUCKET, "photos", lambda it: bool(((it or {}).get("status") or {}).get("conditions")), timeout=SECONDS
        )
        assert (
            failing["status"]["conditions"][0]["message"]
            == "buckets: TemporaryError: Secret later not found; create it"
        )
        await user.create(credentials("later"))
        await user.wait_for(BUCKET, "photos", synced, timeout=SECONDS)
        assert "<Status>Enabled</Status>" in await request(f"{store}/photos?versioning")
        assert "<Value>web</Value>" in await request(f"{store}/photos?tagging")

        await request(f"{store}/photos?tagging", "DELETE")  # drift: somebody removes the tags
        await user.patch(BUCKET, "photos", MergePatch({"spec": {"versioning": False}}))
        await user.wait_for(BUCKET, "photos", synced, timeout=SECONDS)
        assert "<Status>Suspended</Status>" in await request(f"{store}/photos?versioning")
        assert "<Value>web</Value>" in await request(f"{store}/photos?tagging")

        await user.delete(BUCKET, "photos")
        await user.wait_for(BUCKET, "photos", is_deleted, timeout=SECONDS)
        assert "<Name>photos</Name>" not in await request(f"{store}/")

    run(kubeconfig, play)


def test_a_bucket_with_objects_is_not_deleted(store: str, kubeconfig: str) -> None:
    async def play(user: Client) -> None:
        await user.create(credentials("kept"))
        await user.create(thing("Bucket", "kept", spec(store, "kept")))
        await user.wait_for(BUCKET, "kept", synced, timeout=SECONDS)
        await request(f"{store}/kept/a.txt", "PUT", "content")
        await user.delete(BUCKET, "kept")
        waiting = await user.wait_for(
            BUCKET, "kept", lambda it: "not empty" in str((it or {}).get("status")), timeout=SECONDS
        )
        assert waiting["metadata"]["finalizers"] == ["example.dev/bucket"]
        await request(f"{store}/kept/a.txt", "DELETE")
        await user.patch(BUCKET, "kept", MergePatch({"metadata": {"labels": {"again": "now"}}}))
        await user.wait_for(BUCKET, "kept", is_deleted, timeout=SECONDS)

    run(kubeconfig, play)


def test_a_queue_follows_its_object_and_is_deleted_with_it(store: str, kubeconfig: str) -> None:
    async def play(user: Client) -> None:
        await user.create(credentials("queues"))
        await user.create(thing("Queue", "orders", spec(store, "queues", visibilityTimeout=45)))
        made = await user.wait_for(QUEUE, "orders", lambda it: bool((it or {}).get("status")), timeout=SECONDS)
        url = made["status"]["url"]
        assert await attributes_of(store, url) == {"Attributes": {"VisibilityTimeout": "45"}}
        await user.patch(QUEUE, "orders", MergePatch({"spec": {"visibilityTimeout": 60}}))
        while await attributes_of(store, url) != {"Attributes": {"VisibilityTimeout": "60"}}:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.1)
        await user.delete(QUEUE, "orders")
        await user.wait_for(QUEUE, "orders", is_deleted, timeout=SECONDS)
        assert "QueueDoesNotExist" in (await attributes_of(store, url))["__type"]

    run(kubeconfig, play)
