"""One client library, one request after the other: typed gets, creates and lists per second.

    python -m bench.client_calls ostinato|official KUBECONFIG NAMESPACE PREFIX SECONDS

PREFIX begins the names of created objects. The namespace has the Pods of `bench.first_sync`. Prints JSON: requests per
second; of lists of 500, Pods per second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from bench.first_sync_process import pod_name
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import ConfigMap, Pod
from ostinato.manager.running import loop_factory

PAGE = 500
DATA = {"text": "x" * 900}


async def ostinato(kubeconfig: str, namespace: str, prefix: str, seconds: float) -> dict[str, float]:
    async with Client.connect(Config.load(path=kubeconfig, namespace=namespace)) as client:

        async def get(_: int) -> None:
            assert (await client.get(Pod, pod_name(1))).spec.containers

        async def create(number: int) -> None:
            await client.create(ConfigMap(metadata=ObjectMeta(name=f"{prefix}-ours-{number}"), data=DATA))

        async def page(_: int) -> None:
            found = 0
            async for pod in client.list(Pod, namespace=namespace, page_size=PAGE):
                assert pod.metadata.name
                found += 1
                if found == PAGE:
                    return

        async def rate(act: Callable[[int], Awaitable[None]]) -> float:
            await act(0)
            count, began = 1, time.perf_counter()
            while (took := time.perf_counter() - began) < seconds:
                await act(count)
                count += 1
            return (count - 1) / took

        return {"get": await rate(get), "create": await rate(create), "list": await rate(page) * PAGE}


def official(kubeconfig: str, namespace: str, prefix: str, seconds: float) -> dict[str, float]:
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()

    def get(_: int) -> None:
        assert api.read_namespaced_pod(pod_name(1), namespace).spec.containers

    def create(number: int) -> None:
        metadata = client.V1ObjectMeta(name=f"{prefix}-official-{number}")
        api.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata, data=DATA))

    def page(_: int) -> None:
        assert len(api.list_namespaced_pod(namespace, limit=PAGE).items) == PAGE

    def rate(act: Callable[[int], None]) -> float:
        act(0)
        count, began = 1, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            act(count)
            count += 1
        return (count - 1) / took

    return {"get": rate(get), "create": rate(create), "list": rate(page) * PAGE}


def main() -> None:
    name, kubeconfig, namespace, prefix, seconds = sys.argv[1:]
    if name == "official":
        found = official(kubeconfig, namespace, prefix, float(seconds))
    else:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            found = runner.run(ostinato(kubeconfig, namespace, prefix, float(seconds)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
