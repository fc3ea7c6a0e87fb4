"""A Bucket in an S3-compatible object store: an external system, with asyncio.

    $ pip install -r examples/requirements.txt
    $ moto_server -p 5000                                   # a server with the API of S3
    $ ostinato run --embedded examples/bucket.py
    $ kubectl apply -f examples/bucket.yaml                 # with the kubeconfig that `run` prints
    $ kubectl get buckets

- The credentials come from a Secret in the namespace of the Bucket. The role permits `get` of Secrets, not `list`.
- The external bucket is deleted before its object: the finalizer stays until that has succeeded.
- Drift is corrected: what was changed in the store is compared and set again, every minute and with every change of
  the object. Only differences are written.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from aiobotocore.session import get_session
from botocore.exceptions import ClientError

from ostinato import (
    Column,
    Context,
    CustomResource,
    Manager,
    Pattern,
    PermanentError,
    Result,
    Struct,
    TemporaryError,
    controller,
)
from ostinato.api.meta import Condition
from ostinato.crd import Access
from ostinato.kinds.core_v1 import Secret

FINALIZER = "example.dev/bucket"
CHECK_SECONDS = 60.0


class BucketSpec(Struct):
    endpoint: Annotated[str, Pattern(r"^https?://")]
    credentials: str  # a Secret with access-key-id and secret-access-key
    region: str = "us-east-1"
    versioning: Annotated[bool, Column("Versioning")] = False
    tags: dict[str, str] = {}


class BucketStatus(Struct):
    observed_generation: int = 0
    conditions: list[Condition] = []


class Bucket(CustomResource, group="example.dev", version="v1"):
    spec: BucketSpec
    status: BucketStatus | None = None


@controller(Bucket, max_concurrent=8, access=[Access(groups=("",), resources=("secrets",), verbs=("get",))])
async def buckets(bucket: Bucket, ctx: Context) -> Result:
    name = bucket.metadata.name
    async with store_of(bucket, ctx) as s3:
        async with ctx.finalizer(bucket, FINALIZER) as deleting:
            if deleting:
                await delete(s3, name)
                return Result()
        await ensure_exists(s3, name)
        await ensure_versioning(s3, name, enabled=bucket.spec.versioning)
        await ensure_tags(s3, name, bucket.spec.tags)
    await ctx.status(conditions=[Condition(type="Ready", status="True", reason="Synced")])
    return Result(requeue_after=CHECK_SECONDS)


@asynccontextmanager
async def store_of(bucket: Bucket, ctx: Context) -> AsyncIterator[Any]:  # Any: botocore's clients are made at run time
    secret = await ctx.client.get(Secret, bucket.spec.credentials, missing=None)
    if secret is None:
        raise TemporaryError(f"Secret {bucket.spec.credentials} not found; create it", delay=5)
    try:
        key, value = secret.data["access-key-id"].decode(), secret.data["secret-access-key"].decode()
    except KeyError as missing:
        raise TemporaryError(f"Secret {bucket.spec.credentials} has no {missing.args[0]}; add it", delay=5) from None
    async with get_session().create_client(
        "s3",
        region_name=bucket.spec.region,
        endpoint_url=bucket.spec.endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=value,
    ) as s3:
        yield s3


async def ensure_exists(s3: Any, name: str) -> None:
    try:
        await s3.head_bucket(Bucket=name)
    except ClientError as error:
        if code_of(error) == "403":
            raise PermanentError(f"bucket {name} belongs to another account; choose another name") from None
        if code_of(error) != "404":
            raise
        await s3.create_bucket(Bucket=name)


async def ensure_versioning(s3: Any, name: str, *, enabled: bool) -> None:
    found = (await s3.get_bucket_versioning(Bucket=name)).get("Status")
    wanted = "Enabled" if enabled else "Suspended"
    if found != wanted and (enabled or found is not None):  # a bucket that never had versions has no status
        await s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": wanted})


async def ensure_tags(s3: Any, name: str, wanted: dict[str, str]) -> None:
    try:
        found = {each["Key"]: each["Value"] for each in (await s3.get_bucket_tagging(Bucket=name))["TagSet"]}
    except ClientError as error:
        if code_of(error) != "NoSuchTagSet":
            raise
        found = {}
    if found != wanted and wanted:
        tags = [{"Key": key, "Value": value} for key, value in sorted(wanted.items())]
        await s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
    elif found != wanted:
        await s3.delete_bucket_tagging(Bucket=name)


async def delete(s3: Any, name: str) -> None:
    """Delete an empty bucket; one with objects is kept, and the deletion waits for somebody to empty it."""
    try:
        await s3.delete_bucket(Bucket=name)
    except ClientError as error:
        if code_of(error) == "BucketNotEmpty":
            raise TemporaryError(f"bucket {name} is not empty; delete its objects first", delay=30) from None
        if code_of(error) not in ("404", "NoSuchBucket"):
            raise


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


if __name__ == "__main__":
    Manager().add(buckets).run()
