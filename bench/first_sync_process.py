"""One contender of `bench.first_sync`, in its own process: it caches the Pods of a namespace and prints figures.

    python -m bench.first_sync_process NAME KUBECONFIG NAMESPACE COUNT

Times are from the first request, after imports, until the cache has synced; memory is that of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

import msgspec

from bench.cache import EVENTS, INDEXES, encoded, followed, now, resident_bytes
from bench.timing import seconds_each
from ostinato.api.gvk import NamespacedName
from ostinato.cache import CachedClient, FeedOptions, Informers, InformerSettings
from ostinato.client import Client, Config
from ostinato.client.config.tls import TlsFiles, make_context
from ostinato.client.views import MetadataOf
from ostinato.kinds.core_v1 import Pod
from ostinato.manager.running import freeze_objects
from ostinato.world import World

PAGE = 500


class Figures(msgspec.Struct, kw_only=True):
    seconds: float  # to the first sync
    cpu: float = 0.0  # seconds of this process, of them
    objects: int  # that are cached
    resident: int  # bytes, right after the sync
    collected: int  # bytes, after a garbage collection
    peak: int = 0  # bytes, at the worst until then
    start: int = 0  # bytes, before the sync
    pause: float = 0.0  # ms, the longest of the garbage collector, with all that came after the sync
    reads: dict[str, float] = {}  # us
    events: float = 0.0  # a second

    def or_better(self, other: Figures) -> Figures:
        """Return the faster sync, with the best of the other figures."""
        faster = self if self.seconds <= other.seconds else other
        reads = {name: min(each, other.reads[name]) for name, each in self.reads.items()}
        pause, events = min(self.pause, other.pause), max(self.events, other.events)
        return msgspec.structs.replace(faster, reads=reads, pause=pause, events=events)


class Stopwatch:
    """Measures a sync; call `done` when all objects are cached and still referenced."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._start = resident_bytes()
        self._cpu = process_time()
        self._begun = perf_counter()

    def done(self, objects: int) -> Figures:
        seconds, cpu = perf_counter() - self._begun, process_time() - self._cpu
        resident, peak = resident_bytes(), _peak()
        with _noting_pauses(self.pauses):
            gc.collect()
        return Figures(
            seconds=seconds,
            cpu=cpu,
            objects=objects,
            resident=resident,
            collected=resident_bytes(),
            peak=peak,
            start=self._start,
            pause=max(self.pauses),
        )


def ostinato(kubeconfig: str, namespace: str, count: int) -> Figures:
    return asyncio.run(_ostinato(kubeconfig, namespace, count, FeedOptions(indexes=INDEXES)))


def ostinato_managed_fields(kubeconfig: str, namespace: str, _: int) -> Figures:
    """Keep managedFields, like client-go by default; without reads and events, which the other contender measures."""
    return asyncio.run(_ostinato(kubeconfig, namespace, 0, FeedOptions(indexes=INDEXES, keep_managed_fields=True)))


async def _ostinato(kubeconfig: str, namespace: str, count: int, feed: FeedOptions) -> Figures:
    async with Client.connect(Config.load(path=kubeconfig, namespace=namespace)) as live:
        informers = Informers(live, defaults=InformerSettings(namespaces=(namespace,), feed=feed))
        informer = informers.of(Pod)
        watch = Stopwatch()
        with freeze_objects([informers.synced]), _noting_pauses(watch.pauses):
            informers.start()
            await informers.synced(timeout=600)
            figures = watch.done(len(informer.store))
            if count:
                client, metadata = CachedClient(live, informers), MetadataOf(Pod)
                key = NamespacedName(namespace, pod_name(count // 2))
                [owner] = (await client.get(Pod, key)).metadata.owner_references
                figures.reads = {
                    name: seconds * 1e6
                    for name, seconds in seconds_each(
                        {
                            "typed get": lambda: now(client.get(Pod, key)),
                            "metadata get": lambda: now(client.get(metadata, key)),
                            "keys of an index": lambda: informer.store.index_keys("owner", owner.uid),
                        }
                    ).items()
                }
                figures.events = await _events()
        figures.pause = max(watch.pauses)
        await informers.stop()
    return figures


async def _events() -> float:
    first = [encoded(number) for number in range(1000)]
    changes = [encoded(number % 1000, 300_000 + number) for number in range(EVENTS)]
    return EVENTS / min([await followed(first, changes) for _ in range(3)])


def official(kubeconfig: str, namespace: str, count: int) -> Figures:
    """List in pages, with every object decoded to its class."""
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)
    api, pods, more = client.CoreV1Api(), dict[str, Any](), ""
    watch = Stopwatch()
    with _noting_pauses(watch.pauses):
        while len(pods) < count:
            page = api.list_namespaced_pod(namespace, limit=min(PAGE, count - len(pods)), _continue=more or None)
            pods.update((pod.metadata.uid, pod) for pod in page.items)
            more = page.metadata._continue
            if not more:
                break
        return watch.done(len(pods))


def kopf(kubeconfig: str, namespace: str, _: int) -> Figures:
    """List once, decode to dicts with the standard library, and keep them."""
    return asyncio.run(_kopf(kubeconfig, namespace))


async def _kopf(kubeconfig: str, namespace: str) -> Figures:
    import aiohttp

    config = Config.load(path=kubeconfig)
    context = make_context(config, await TlsFiles(config, World.real()).current())
    headers = {"Authorization": f"Bearer {config.token.reveal()}"} if config.token else {}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        watch = Stopwatch()
        with _noting_pauses(watch.pauses):
            async with session.get(f"{config.url}/api/v1/namespaces/{namespace}/pods") as answer:
                answer.raise_for_status()
                found = await answer.json()
            pods = {}
            for pod in found.pop("items"):
                pod.update(apiVersion="v1", kind="Pod")  # items of a list do not say it
                pods[pod["metadata"]["uid"]] = pod
            return watch.done(len(pods))


def pod_name(number: int) -> str:
    return f"web-7d4b9c6f5-{number:05}"


@contextlib.contextmanager
def _noting_pauses(pauses: list[float]) -> Iterator[None]:
    """Record the duration of each garbage collection, in ms of this thread's processor time."""
    begun = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = thread_time()
        else:
            pauses.append((thread_time() - begun) * 1e3)

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


CONTENDERS: dict[str, Callable[[str, str, int], Figures]] = {
    each.__name__: each for each in (ostinato, ostinato_managed_fields, official, kopf)
}


def main() -> None:
    name, kubeconfig, namespace, count = sys.argv[1:]
    print(msgspec.json.encode(CONTENDERS[name](kubeconfig, namespace, int(count))).decode())


if __name__ == "__main__":
    main()
