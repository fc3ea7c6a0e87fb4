"""A Queue of Amazon SQS, with boto3: a reconciler that is a plain function.

    $ pip install -r examples/requirements.txt
    $ moto_server -p 5000                                   # a server with the API of SQS
    $ ostinato run --embedded examples/sqs_queue.py
    $ kubectl apply -f examples/sqs_queue.yaml                  # with the kubeconfig that `run` prints

boto3 blocks. A plain `def` runs in a thread, so that it may; its context is a `BlockingContext`, with the methods of
`Context` without `await`. The rest is as in `bucket.py`: credentials from a Secret, a finalizer, and drift corrected.
"""

from typing import Annotated, Any

import boto3

from ostinato import BlockingContext, CustomResource, Ge, Le, Manager, Pattern, Result, Struct, controller
from ostinato.crd import Access
from ostinato.kinds.core_v1 import Secret

FINALIZER = "example.dev/queue"
CHECK_SECONDS = 60.0


class QueueSpec(Struct):
    endpoint: Annotated[str, Pattern(r"^https?://")]
    credentials: str  # a Secret with access-key-id and secret-access-key
    region: str = "us-east-1"
    visibility_timeout: Annotated[int, Ge(0), Le(43200)] = 30
    retention_seconds: Annotated[int, Ge(60), Le(1209600)] = 345600


class QueueStatus(Struct):
    url: str = ""


class Queue(CustomResource, group="example.dev", version="v1"):
    spec: QueueSpec
    status: QueueStatus | None = None


@controller(Queue, max_concurrent=4, access=[Access(groups=("",), resources=("secrets",), verbs=("get",))])
def queues(queue: Queue, ctx: BlockingContext) -> Result:
    sqs = client_of(queue, ctx.client.get(Secret, queue.spec.credentials))
    with ctx.finalizer(queue, FINALIZER) as deleting:
        if deleting:
            if (url := url_of(sqs, queue.metadata.name)) is not None:
                sqs.delete_queue(QueueUrl=url)
            return Result()
    url = url_of(sqs, queue.metadata.name) or sqs.create_queue(QueueName=queue.metadata.name)["QueueUrl"]
    wanted = {
        "VisibilityTimeout": str(queue.spec.visibility_timeout),
        "MessageRetentionPeriod": str(queue.spec.retention_seconds),
    }
    if sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[*wanted])["Attributes"] != wanted:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=wanted)
    ctx.status(url=url)
    return Result(requeue_after=CHECK_SECONDS)


def client_of(queue: Queue, secret: Secret) -> Any:  # Any: boto3's clients are made at run time
    return boto3.client(
        "sqs",
        region_name=queue.spec.region,
        endpoint_url=queue.spec.endpoint,
        aws_access_key_id=secret.data["access-key-id"].decode(),
        aws_secret_access_key=secret.data["secret-access-key"].decode(),
    )


def url_of(sqs: Any, name: str) -> str | None:
    try:
        return str(sqs.get_queue_url(QueueName=name)["QueueUrl"])
    except sqs.exceptions.QueueDoesNotExist:
        return None


if __name__ == "__main__":
    Manager().add(queues).run()
