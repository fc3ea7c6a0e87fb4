"""The set applier against any API server: ours over HTTP and in one process, or another with --cluster KUBECONFIG."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ostinato.api.gvk import GroupVersionKind
from ostinato.cache import CachedClient, Informers
from ostinato.cache.store.indexes import by_owner
from ostinato.client import Client, MergePatch, Unstructured, is_deleted
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.frontends.kernel.applier import MARKED, AnnotatedKinds, Outcome, SetApplier, Strategy
from tests.cluster.conftest import Play

Json = dict[str, Any]
Run = Callable[[Play], None]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
_numbers = itertools.count(1)


def object_of(kind: GroupVersionKind, name: str, namespace: str = "", **fields: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def config_map(name: str, namespace: str = "", **data: str) -> Json:
    return object_of(CONFIG_MAP, name, namespace, data=data)


def deployment(image: str = "a:1", app: str = "web") -> Json:
    """With values that servers default, normalize and merge by item."""
    container = {
        "name": "main",
        "image": image,
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}},
        "env": [{"name": "A", "value": "1"}],
    }
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    return object_of(
        DEPLOYMENT, "web", spec={"replicas": 0, "selector": {"matchLabels": {"app": app}}, "template": template}
    )


class Sets:
    """An applier with a cache, as in a process of its own, for the sets of the ConfigMap `owner`."""

    def __init__(self, client: Client) -> None:
        self.live = client
        self.informers = Informers(client)
        self.client = CachedClient(client, self.informers)
        self.applier = SetApplier(self.client, "sets", finalizer="ostinato.dev/tests")
        self.kinds = AnnotatedKinds(self.client, "sets")

    async def owner(self) -> Json:
        return await self.live.get(Unstructured(CONFIG_MAP), "owner")

    async def apply(self, *desired: Json, **options: Any) -> Outcome:
        return await self.applier.apply(await self.owner(), desired, kinds=self.kinds, **options)


@asynccontextmanager
async def sets(client: Client, *watched: GroupVersionKind) -> AsyncIterator[Sets]:
    made = Sets(client)
    for kind in watched:
        informer = made.informers.of(Unstructured(kind))
        informer.add_index(by_owner())
        informer.add_index(MARKED)
    made.informers.start()
    await made.informers.synced(30)
    try:
        yield made
    finally:
        await made.informers.stop()


@asynccontextmanager
async def places(client: Client) -> AsyncIterator[tuple[str, str]]:
    """Create the owner and another namespace; yield that namespace, and a name for cluster-scoped objects."""
    other = f"{client.namespace}-other-{os.getpid()}-{next(_numbers)}"
    await client.create(config_map("owner"))
    await client.create(object_of(GroupVersionKind("", "v1", "Namespace"), other))
    try:
        yield other, other
    finally:
        await client.delete(Unstructured.of("v1", "Namespace"), other)
        await client.delete(Unstructured(ROLE), other, missing_ok=True)


def actions(outcome: Outcome) -> list[str]:
    outcome.raise_errors()
    return [f"{each.action} {each.ref.kind}" for each in outcome.changes]


def test_a_set_is_created_left_alone_changed_and_deleted(run: Run) -> None:
    async def play(client: Client) -> None:
        async with places(client) as (other, name), sets(client, CONFIG_MAP, DEPLOYMENT) as made:
            desired = [deployment(), config_map("x", key="1"), config_map("z", other), object_of(ROLE, name)]
            assert actions(await made.apply(*desired)) == [
                "create ConfigMap",
                "create ConfigMap",
                "create ClusterRole",
                "create Deployment",
            ]
            for process in (made, Sets(client)):  # the second remembers nothing
                outcome = await process.apply(*desired)
                assert set(actions(outcome)[:3]) == {"none ConfigMap", "none ClusterRole"}
                assert outcome.applied[3]["metadata"]["generation"] == 1
            assert actions(await made.apply(deployment("a:2"), config_map("x", key="1"))) == [
                "none ConfigMap",
                "update Deployment",
                "delete ClusterRole",
                "delete ConfigMap",
            ]
            assert await client.get(Unstructured(ROLE), name, missing=None) is None
            assert await client.get(Unstructured(CONFIG_MAP), "z", namespace=other, missing=None) is None
            await client.delete(Unstructured(CONFIG_MAP), "owner")
            left = await made.applier.finalize(await made.owner(), kinds=made.kinds, reachable=False)
            assert left == []
            await client.wait_for(Unstructured(CONFIG_MAP), "owner", is_deleted, timeout=20)

    run(play)


def test_fields_are_given_up_and_those_of_others_are_kept(run: Run) -> None:
    async def play(client: Client) -> None:
        await client.create(config_map("owner"))
        async with sets(client, DEPLOYMENT) as made:
            full = deployment()
            full["metadata"]["labels"] = {"mine": "1"}
            await made.apply(full)
            theirs = {"metadata": {"annotations": {"theirs": "1"}}, "spec": {"paused": True}}
            await client.patch(Unstructured(DEPLOYMENT), "web", MergePatch(theirs), field_manager="others")
            await made.apply(deployment())
            found = await client.get(Unstructured(DEPLOYMENT), "web")
            assert "labels" not in found["metadata"]
            assert found["metadata"]["annotations"]["theirs"] == "1"
            assert found["spec"]["paused"] is True

    run(play)


def test_a_dry_run_shows_what_the_server_would_do(run: Run) -> None:
    async def play(client: Client) -> None:
        await client.create(config_map("owner"))
        made = Sets(client)
        await made.apply(deployment(), config_map("gone"))
        before = await client.get(Unstructured(DEPLOYMENT), "web")
        outcome = await made.apply(deployment("a:2"), config_map("new", key="1"), dry_run=True)
        assert actions(outcome) == ["create ConfigMap", "update Deployment", "delete ConfigMap"]
        changed = [line for line in outcome.diff.splitlines() if line.lstrip("+- ").startswith(("image:", "- image:"))]
        assert [line.replace(" ", "") for line in changed] in (
            ["-image:a:1", "+image:a:2"],
            ["--image:a:1", "+-image:a:2"],
        )
        assert (await client.get(Unstructured(DEPLOYMENT), "web"))["spec"] == before["spec"]
        assert await client.get(Unstructured(CONFIG_MAP), "new", missing=None) is None

    run(play)


def test_an_immutable_field_is_changed_by_recreating(run: Run) -> None:
    async def play(client: Client) -> None:
        await client.create(config_map("owner"))
        made, strategy = Sets(client), Strategy("Recreate")
        await made.apply(deployment())
        before = await client.get(Unstructured(DEPLOYMENT), "web")
        assert "recreate Deployment" not in actions(await made.apply(deployment(), default=strategy))
        assert uid((await made.apply(deployment(), default=strategy)).applied[0]) == uid(before)
        assert len((await made.apply(deployment(app="other"))).errors) == 1
        assert actions(await made.apply(deployment(app="other"), default=strategy)) == ["recreate Deployment"]
        await client.wait_for(
            Unstructured(DEPLOYMENT),
            "web",
            lambda each: each is None or each["metadata"]["uid"] != uid(before),
            timeout=20,
        )
        assert actions(await made.apply(deployment(app="other"), default=strategy)) == ["create Deployment"]

    run(play)


def uid(instance: Json) -> str:
    return str(instance["metadata"]["uid"])


def test_a_rolling_update_goes_on_object_by_object(run: Run) -> None:
    async def play(client: Client) -> None:
        await client.create(config_map("owner"))
        async with sets(client, CONFIG_MAP) as made:
            rolling = Strategy("RollingInPlace")

            async def values() -> list[str]:
                found = [await client.get(Unstructured(CONFIG_MAP), name) for name in "abc"]
                return [each["data"]["key"] for each in found]

            await made.apply(*(config_map(name, key="1") for name in "abc"))
            seen = []
            for _ in range(4):
                outcome = await made.apply(*(config_map(name, key="2") for name in "abc"), default=rolling)
                seen.append(await values())
            assert seen == [["2", "1", "1"], ["2", "2", "1"], ["2", "2", "2"], ["2", "2", "2"]]
            assert outcome.is_complete

    run(play)


def test_objects_of_others_are_refused(run: Run) -> None:
    async def play(client: Client) -> None:
        for name in ("owner", "second"):
            await client.create(config_map(name))
        made = Sets(client)
        await client.create(config_map("free"))
        await made.apply(config_map("x"))
        second = await client.get(Unstructured(CONFIG_MAP), "second")
        outcome = await made.applier.apply(
            second, [config_map("x"), config_map("free"), config_map("y")], kinds=made.kinds, adopt=False
        )
        assert [type(each.error).__name__ for each in outcome.errors] == ["AlreadyOwned", "ForeignObject"]
        outcome = await made.applier.apply(second, [config_map("free"), config_map("y")], kinds=made.kinds, adopt=True)
        assert outcome.is_complete

    run(play)


class Dying:
    """A transport that loses the answer of its n-th request, and all requests after it."""

    def __init__(self, inner: Any, at: int) -> None:
        self.host = inner.host
        self._inner = inner
        self._left = at

    @property
    def is_dead(self) -> bool:
        return self._left <= 0

    async def request(self, request: Request) -> Any:
        if self.is_dead:
            raise ConnectionLost("dead")
        response = await self._inner.request(request)
        self._left -= 1
        if self.is_dead:
            await response.read()
            raise ConnectionLost("dead")
        return response


async def dies(client: Client, at: int, desired: Sequence[Json]) -> bool:
    """Apply in a process that dies at its n-th request, and return whether it did."""
    transport: Any = Dying(client.transport, at)
    dying = Client(transport, world=client.world, namespace=client.namespace, field_manager="test")
    try:
        await Sets(dying).apply(*desired)
    except ConnectionLost:
        return True
    return bool(transport.is_dead)


def test_a_process_that_dies_at_any_request_leaves_no_orphan(run: Run) -> None:
    async def play(client: Client) -> None:
        async with places(client) as (other, name):
            at, deaths = 1, 0
            desired = [config_map("x"), config_map("z", other), object_of(ROLE, name)]
            while await dies(client, at, desired):
                deaths += 1
                at += 1
                made = Sets(client)
                if deaths % 2:
                    await client.delete(Unstructured(CONFIG_MAP), "owner")
                    if await client.get(Unstructured(CONFIG_MAP), "owner", missing=None) is not None:
                        assert await made.applier.finalize(await made.owner(), kinds=made.kinds, reachable=False) == []
                    await client.wait_for(Unstructured(CONFIG_MAP), "owner", is_deleted, timeout=20)
                    await client.delete(Unstructured(CONFIG_MAP), "x", missing_ok=True)
                    await client.create(config_map("owner"))
                else:
                    await made.apply()
                assert await client.get(Unstructured(CONFIG_MAP), "z", namespace=other, missing=None) is None
                assert await client.get(Unstructured(ROLE), name, missing=None) is None
            assert deaths > 8

    run(play)
