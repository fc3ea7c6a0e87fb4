"""The agent of a node: makes the Pods that are bound to it run, and writes how they fare.

One reconciler serves all nodes of a process. A Pod is looked at when its runtime has news, and when others change
something in it: what they say of its status holds only where they have a say in it (readiness gates).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Time
from ostinato.cache import Event, Updated
from ostinato.cache.client import CachedClient
from ostinato.cache.store.resource_versions import reached
from ostinato.client.patching import StrategicMergePatch
from ostinato.controllers import Channel, Context, Request, Result
from ostinato.kinds.core_v1 import Pod, PodStatus
from ostinato.plane.node.admission import Rejection, Room, rejection_of
from ostinato.plane.node.containers.lifecycle import Quarters
from ostinato.plane.node.containers.log_paths import log_of
from ostinato.plane.node.environment.container_environment import Larder, Supplies
from ostinato.plane.node.pod_status import generated, merged
from ostinato.plane.node.pod_worker import PodLife
from ostinato.plane.node.runtimes import Runtime
from ostinato.plane.node.static_pods import Statics, mirror_of, remove_mirror

NodeOf = Callable[[NamespacedName], str]
"""The name of the node that a Pod of the cache is bound to, "" if none."""

ClientOf = Callable[[str], CachedClient]
"""The client with which a node asks, in its own name."""


class Host(msgspec.Struct, frozen=True, eq=False):
    """A node of this process. `larder` and `room` are those of a node with real containers."""

    name: str
    address: str
    runtime: Runtime
    larder: Larder | None = None
    room: Room | None = None


class PodAgent:
    """A reconciler: brings Pods to life, and to their end."""

    def __init__(self, hosts: Mapping[str, Host], node_of: NodeOf, client_of: ClientOf) -> None:
        self._hosts = hosts
        self._client_of = client_of
        self._node_of = node_of
        self._lives: dict[NamespacedName, PodLife] = {}
        self._supplies: dict[str, Supplies] = {}  # by node
        self._statics: Statics = {}
        self._static_keys: set[NamespacedName] = set()  # of those, and of others that are still being ended
        self.news = Channel()  # Pods whose runtime has something to tell
        for runtime in {id(host.runtime): host.runtime for host in hosts.values()}.values():
            runtime.listen(self._heard)

    def _heard(self, pod: Pod) -> None:
        self.news.put(NamespacedName(pod.metadata.namespace, pod.metadata.name))

    def keys(self, event: Event) -> tuple[NamespacedName, ...]:
        """Whose turn it is because of an event."""
        key = event.key
        life = self._lives.get(key)
        if life is None:
            return (key,) if self._node_of(key) in self._hosts else ()
        if isinstance(event, Updated) and reached(life.pod.metadata.resource_version, event.new.resource_version):
            return ()  # it is what the agent wrote last, or older
        return (key,)

    def latest(self, cached: Pod) -> Pod:
        """A Pod as the agent wrote it last, where the cache has not seen that yet."""
        life = self._lives.get(NamespacedName(cached.metadata.namespace, cached.metadata.name))
        if life is None or life.is_at_rest or life.pod.metadata.uid != cached.metadata.uid:
            return cached
        has_seen = reached(cached.metadata.resource_version, life.pod.metadata.resource_version)
        return cached if has_seen else life.pod

    def tell_statics(self, node: str, pods: Statics) -> None:
        """These are the static Pods of a node, from now on."""
        for key in {key for key, pod in self._statics.items() if pod.spec.node_name == node} - pods.keys():
            del self._statics[key]
            self.news.put(key)
        self._statics |= pods
        self._static_keys |= pods.keys()
        for key in pods:
            self.news.put(key)

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        if request in self._static_keys:
            return await self._reconcile_static(request, ctx)
        pod = await ctx.client.get(Pod, request, missing=None)
        life = self._lives.get(request)
        if life is not None and (pod is None or pod.metadata.uid != life.pod.metadata.uid):
            life.step(0.0)  # somebody took it away: its containers must not outlive it
            if life.is_over:
                del self._lives[request]
                self._forget(life.pod)
                self.news.put(request)
            return None
        if pod is None:
            return None
        host = self._hosts.get(pod.spec.node_name or "")
        if host is None:
            return None
        if life is None:
            if _is_over(pod):
                await self._go(pod)
                return None
            if (rejected := self._rejection(pod, host)) is not None:
                await self._reject(pod, rejected, ctx)
                return None
            life = await self._begin(request, pod, host, ctx)
        life.see(pod)
        after = life.step(None if pod.metadata.deletion_timestamp is None else _grace(pod))
        if life.is_busy:
            await ctx.world.clock.sleep(0)  # what takes no time needs no status of its own
        try:
            await self._write(life, life.pod, ctx)
        except NotFound:
            return None  # it is gone; the cache will tell
        if life.is_over and pod.metadata.deletion_timestamp is not None:
            await self._go(pod)
            return None
        waits = [each for each in (after, await life.tend()) if each is not None]
        if not host.runtime.is_real:
            life.rest()
        return Result(requeue_after=min(waits)) if waits else None

    def log(self, pod: Pod, container: str, previous: bool) -> Path | None:
        """The file that a container writes to, or the one before it wrote to; None if it never ran, or not here."""
        host = self._hosts.get(pod.spec.node_name or "")
        if host is None or host.larder is None:
            return None
        life = self._lives.get(NamespacedName(pod.metadata.namespace, pod.metadata.name))
        if life is not None and life.pod.metadata.uid == pod.metadata.uid and container in life.records:
            record = life.records[container]
            attempt = -1 if record.running is None else record.running.attempt
        else:
            status = pod.status
            groups = (status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses)
            told = next((each for group in groups for each in group if each.name == container), None)
            attempt = -1 if told is None or not told.container_id else told.restart_count
        attempt -= previous
        return None if attempt < 0 else log_of(host.larder.logs, pod, container, attempt)

    def _rejection(self, pod: Pod, host: Host) -> Rejection | None:
        if host.room is None or pod.status.start_time is not None:
            return None
        others = (
            life.pod for life in self._lives.values() if life.pod.spec.node_name == host.name and not life.is_over
        )
        return rejection_of(pod, host.room, others)

    async def _reject(self, pod: Pod, rejected: Rejection, ctx: Context) -> None:
        ctx.event(pod, rejected.reason, rejected.message, kind="Warning")
        status = {
            "phase": "Failed",
            "reason": rejected.reason,
            "message": f"Pod was rejected: {rejected.message}",
            "startTime": str(ctx.now()),
            "observedGeneration": pod.metadata.generation,
        }
        change = StrategicMergePatch({"metadata": {"uid": pod.metadata.uid}, "status": status})
        with suppress(NotFound):
            await self._client_of(pod.spec.node_name or "").patch(Pod, pod.metadata, change, subresource="status")

    def _forget(self, pod: Pod) -> None:
        supplies = self._supplies.get(pod.spec.node_name or "")
        if supplies is not None:
            supplies.forget(pod)

    def _supplies_of(self, host: Host, ctx: Context) -> Supplies | None:
        if host.larder is None:
            return None
        if host.name not in self._supplies:
            self._supplies[host.name] = Supplies(host.larder, self._client_of(host.name).live, ctx.world)
        return self._supplies[host.name]

    async def _reconcile_static(self, request: Request, ctx: Context) -> Result | None:
        static, life = self._statics.get(request), self._lives.get(request)
        if life is not None and (static is None or static.metadata.uid != life.pod.metadata.uid):
            life.step(float(life.pod.spec.termination_grace_period_seconds or 0))
            if life.is_over:
                del self._lives[request]
                self._forget(life.pod)
                await remove_mirror(life.pod, self._client_of(life.pod.spec.node_name or "").live)
                self.news.put(request)
            return None
        if static is None:
            self._static_keys.discard(request)
            return None
        if life is None:
            life = await self._begin(request, static, self._hosts[static.spec.node_name or ""], ctx)
        client = self._client_of(static.spec.node_name or "").live
        mirror = await mirror_of(static, client, str(life.known.started_at))
        life.see(msgspec.structs.replace(static, status=mirror.status))
        after = life.step()
        if life.is_busy:
            await ctx.world.clock.sleep(0)
        await self._write(life, mirror, ctx)
        waits = [each for each in (after, await life.tend()) if each is not None]
        return Result(requeue_after=min(waits)) if waits else None

    async def _begin(self, request: NamespacedName, pod: Pod, host: Host, ctx: Context) -> PodLife:
        """What cannot be recovered now is tried again, before anything is started."""
        life = self._lives[request] = self._born(pod, host, ctx)  # at once: others are measured against it
        try:
            await life.recover()
        except BaseException:
            del self._lives[request]
            raise
        return life

    def _born(self, pod: Pod, host: Host, ctx: Context) -> PodLife:
        def tell(about: Pod, kind: str, reason: str, message: str) -> None:
            ctx.event(about, reason, message, kind=kind)

        quarters = Quarters(host.address, host.runtime, ctx.world.clock, self._supplies_of(host, ctx))
        life = PodLife(pod, quarters, tell)
        life.listen(self._heard)
        return life

    async def _write(self, life: PodLife, shown: Pod, ctx: Context) -> None:
        """Have the server know how a Pod fares; `shown` is what it has of it."""
        pod = life.pod
        status = merged(pod.status, generated(pod, life.records, life.known, Time.of(ctx.world.clock.now())))
        changes = _changes(pod.status, status)  # as written: a server keeps whole seconds
        if not changes:
            return
        change = StrategicMergePatch({"metadata": {"uid": shown.metadata.uid}, "status": changes})
        client = self._client_of(pod.spec.node_name or "")
        written = await client.patch(Pod, shown.metadata, change, subresource="status")
        life.see(written if shown is pod else msgspec.structs.replace(pod, status=written.status))

    async def _go(self, pod: Pod) -> None:
        """What is over and deleted leaves the server."""
        if pod.metadata.deletion_timestamp is None:
            return
        self._lives.pop(NamespacedName(pod.metadata.namespace, pod.metadata.name), None)
        try:
            await self._client_of(pod.spec.node_name or "").delete(pod, grace_period=0)
        except (NotFound, Conflict):
            return
        finally:
            self._forget(pod)


def _changes(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    """The fields to be written: those that differ; null where there is nothing any more.

    Conditions are merged one by one, and within each field by field: what others write meanwhile stays.
    """
    before, after = to_dict(old), to_dict(new)
    changed = _differences(before, after)
    if "conditions" in changed:
        known = {each["type"]: each for each in before.get("conditions", ())}
        changed["conditions"] = [
            {"type": each["type"]} | _differences(known.get(each["type"], {}), each)
            for each in after.get("conditions", ())
            if each != known.get(each["type"])
        ]
    for name in ("hostIPs", "podIPs"):  # a machine that has moved has no longer the addresses it had
        if changed.get(name):
            changed[name] = [*changed[name], {"$patch": "replace"}]
    return changed


def _differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return changed | {name: None for name in before if name not in after}


def _is_over(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _grace(pod: Pod) -> float:
    return float(pod.metadata.deletion_grace_period_seconds or 0)
