"""The examples with systems outside of the cluster, as operators of fakes: an object store, a queue service."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ostinato import ObjectMeta
from ostinato.kinds.core_v1 import Secret
from ostinato.testing import load

EXAMPLES = Path(__file__).parents[2] / "examples"
CREDENTIALS = Secret(metadata=ObjectMeta(name="keys"), data={"access-key-id": b"a", "secret-access-key": b"b"})


class ClientError(Exception):
    """Takes the place of botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class FakeS3:
    """Buckets with versioning and tags. `state` is compared after each step."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Any]] = {}

    def state(self) -> object:
        return sorted(self.buckets.items())

    async def head_bucket(self, *, Bucket: str) -> None:  # noqa: N803 - names of S3
        self._bucket(Bucket, "404")

    async def create_bucket(self, *, Bucket: str) -> None:  # noqa: N803
        self.buckets.setdefault(Bucket, {"Status": None, "TagSet": []})

    async def delete_bucket(self, *, Bucket: str) -> None:  # noqa: N803
        self._bucket(Bucket)
        del self.buckets[Bucket]

    async def get_bucket_versioning(self, *, Bucket: str) -> dict[str, Any]:  # noqa: N803
        status = self._bucket(Bucket)["Status"]
        return {} if status is None else {"Status": status}

    async def put_bucket_versioning(self, *, Bucket: str, VersioningConfiguration: dict[str, str]) -> None:  # noqa: N803
        self._bucket(Bucket)["Status"] = VersioningConfiguration["Status"]

    async def get_bucket_tagging(self, *, Bucket: str) -> dict[str, Any]:  # noqa: N803
        tags = self._bucket(Bucket)["TagSet"]
        if not tags:
            raise ClientError("NoSuchTagSet")
        return {"TagSet": tags}

    async def put_bucket_tagging(self, *, Bucket: str, Tagging: dict[str, Any]) -> None:  # noqa: N803
        self._bucket(Bucket)["TagSet"] = Tagging["TagSet"]

    async def delete_bucket_tagging(self, *, Bucket: str) -> None:  # noqa: N803
        self._bucket(Bucket)["TagSet"] = []

    def _bucket(self, name: str, code: str = "NoSuchBucket") -> dict[str, Any]:
        if name not in self.buckets:
            raise ClientError(code)
        return self.buckets[name]


class QueueDoesNotExist(Exception):  # noqa: N818 - a name of SQS
    pass


class FakeSqs:
    """Queues by URL, with their attributes."""

    exceptions = SimpleNamespace(QueueDoesNotExist=QueueDoesNotExist)

    def __init__(self) -> None:
        self.queues: dict[str, dict[str, str]] = {}

    def state(self) -> object:
        return sorted(self.queues.items())

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803 - names of SQS
        url = f"https://sqs/{QueueName}"
        if url not in self.queues:
            raise QueueDoesNotExist(QueueName)
        return {"QueueUrl": url}

    def create_queue(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803
        url = f"https://sqs/{QueueName}"
        self.queues.setdefault(url, {})
        return {"QueueUrl": url}

    def delete_queue(self, *, QueueUrl: str) -> None:  # noqa: N803
        del self.queues[QueueUrl]

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:  # noqa: N803
        found = self.queues[QueueUrl]
        return {"Attributes": {name: found[name] for name in AttributeNames if name in found}}

    def set_queue_attributes(self, *, QueueUrl: str, Attributes: dict[str, str]) -> None:  # noqa: N803
        self.queues[QueueUrl].update(Attributes)


def bucket_example() -> tuple[Any, Any]:
    """Return the module of `bucket.py`, and the function that makes its operator of an `s3`."""

    @asynccontextmanager
    async def client(s3: Any) -> AsyncIterator[Any]:
        yield s3

    def operator(s3: Any) -> list[Any]:
        example.get_session = lambda: SimpleNamespace(create_client=lambda *_, **__: client(s3))
        return [example.buckets]

    packages = {
        "aiobotocore": {},
        "aiobotocore.session": {"get_session": None},
        "botocore": {},
        "botocore.exceptions": {"ClientError": ClientError},
    }
    with _packages(packages):
        example: Any = load(EXAMPLES / "bucket.py")
    return example, operator


def queue_example() -> tuple[Any, Any]:
    """Return the module of `sqs_queue.py`, and the function that makes its operator of an `sqs`."""

    def operator(sqs: Any) -> list[Any]:
        example.boto3 = SimpleNamespace(client=lambda *_, **__: sqs)
        return [example.queues]

    with _packages({"boto3": {}}):
        example: Any = load(EXAMPLES / "sqs_queue.py")
    return example, operator


@contextmanager
def _packages(contents: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Let the packages of a cloud be imported, which only the examples need."""
    before = {name: sys.modules.get(name) for name in contents}
    for name, values in contents.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(values)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                del sys.modules[name]
            else:
                sys.modules[name] = known
