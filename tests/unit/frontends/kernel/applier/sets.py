"""Sets of objects for tests of the applier, and an applier with caches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.stage.controllers import ControllerStage
from tests.stage.kinds import widget

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind
from ostinato.cache import CachedClient, Informers
from ostinato.cache.store.indexes import by_owner
from ostinato.client import Unstructured
from ostinato.frontends.kernel.applier import MARKED, AnnotatedKinds, Outcome, SetApplier, Strategy

Json = dict[str, Any]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
WIDGET = GroupVersionKind("example.dev", "v1", "Widget")
FINALIZER = "ostinato.dev/tests"


def config_map(name: str, namespace: str = "", **data: str) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def cluster_role(name: str) -> Json:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}


def namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


class Sets:
    """An applier in a process of its own: nothing is shared with another but the server."""

    def __init__(self, stage: ControllerStage, manager: str = "sets", **options: Any) -> None:
        live = stage.new_client()
        self.stage = stage
        self.informers = Informers(live)
        self.client = CachedClient(live, self.informers)
        self.applier = SetApplier(self.client, manager, **{"finalizer": FINALIZER, **options})
        self.kinds = AnnotatedKinds(self.client, manager)

    async def watch(self, *kinds: GroupVersionKind) -> Sets:
        for kind in kinds:
            informer = self.informers.of(Unstructured(kind))
            informer.add_index(by_owner())
            informer.add_index(MARKED)
        self.informers.start()
        await self.informers.synced(10)
        return self

    async def owner(self, name: str = "a") -> Json:
        return await self.client.live.get(Unstructured(WIDGET), name)

    async def apply(self, *desired: Json, owner: Json | None = None, **options: Any) -> Outcome:
        if "method" in options:
            options["default"] = Strategy(options.pop("method"), *options.pop("gate", ()))
        return await self.applier.apply(owner or await self.owner(), desired, kinds=self.kinds, **options)

    async def finalize(self, name: str = "a", **options: Any) -> list[str]:
        left = await self.applier.finalize(await self.owner(name), kinds=self.kinds, **options)
        return [str(each) for each in left]


async def sets(stage: ControllerStage, *watched: GroupVersionKind, **options: Any) -> Sets:
    """Create the owner `a` and the namespace `other`, and return an applier."""
    if await stage.user.get(Unstructured(WIDGET), "a", missing=None) is None:
        await stage.user.create(widget("a"))
        await stage.user.create(namespace("other"))
    return await Sets(stage, **options).watch(*watched)


async def marked(stage: ControllerStage, kinds: Iterable[GroupVersionKind] = (CONFIG_MAP, SECRET, ROLE)) -> list[str]:
    """Return all objects in the cluster that belong to a set."""
    objects = [each for kind in kinds for each in await stage.user.list(Unstructured(kind))]
    return sorted(access.describe(each) for each in objects if _is_marked(each))


def _is_marked(instance: Json) -> bool:
    return "ostinato.dev/owner-uid" in access.labels(instance) or "ownerReferences" in instance["metadata"]


def actions(outcome: Outcome) -> list[str]:
    return [f"{each.action} {each.ref}" for each in outcome.changes]


def held(outcome: Outcome) -> list[str]:
    return [str(each) for each in outcome.held]


def errors(outcome: Outcome) -> list[str]:
    return [str(each) for each in outcome.errors]
