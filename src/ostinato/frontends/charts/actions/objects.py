"""Objects of a release in the cluster: applied, repaired, awaited and deleted.

- Every object gets Helm's label and annotations, a controller reference to the custom resource, or operator-sdk's
  annotations where a reference cannot reach, and the label with the name of the chart.
- An object that exists is taken over only if it belongs to the release: it has Helm's annotations of this release, or a
  reference to the custom resource.
- Objects with `helm.sh/resource-policy: keep` get no reference, so that they survive the custom resource.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import Invalid
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.owners import controller_of
from ostinato.cache.client import CachedClient
from ostinato.client import NoSuchKind
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.objects.readiness import readiness_of
from ostinato.frontends.charts.manifests import is_kept
from ostinato.frontends.kernel.applier import ObjectRef, install_order, uninstall_order
from ostinato.frontends.watches.dependents import owner_annotations, supports_reference

Json = dict[str, Any]

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
RELEASE_NAME: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
CHART: Final = "helm.sdk.operatorframework.io/chart"
_POLL: Final = 1.0  # seconds between looks at objects that are awaited
_GONE: Final = 300.0  # seconds for the deletion of an object that is recreated


class ReleaseError(Exception):
    """An action on a release has failed."""


class ReleaseObjects:
    def __init__(self, client: CachedClient, applier: Applier, owner: Json, kind: KindInfo, chart: str) -> None:
        """
        - `owner`: the custom resource, of this `kind`. Its name is that of the release.
        - `chart`: name of the chart.
        """
        self._client = client
        self._applier = applier
        self._owner = owner
        self._kind = kind
        self._chart = chart

    async def placed(self, objects: Iterable[Json]) -> list[tuple[KindInfo, Json]]:
        """Return copies with their kinds and namespaces. Raises `ReleaseError` for a kind that is not served."""
        found = []
        for each in objects:
            gvk = access.gvk(each)
            try:
                info = await self._client.live.mapper.kind(gvk)
            except NoSuchKind:
                raise ReleaseError(
                    f"{access.describe(each)}: the server does not serve {gvk.kind} of {gvk.api_version}; "
                    "install its CustomResourceDefinition first"
                ) from None
            instance = copy.deepcopy(each)
            metadata = access.writable_metadata(instance)
            if not info.namespaced:
                metadata.pop("namespace", None)
            elif not metadata.get("namespace"):
                metadata["namespace"] = access.namespace(self._owner)
            found.append((info, instance))
        return found

    async def apply(self, objects: Iterable[Json], *, force: bool = False) -> list[Json]:
        """Apply objects in Helm's order and return them. `force`: recreate those with changed immutable fields."""
        placed = await self.placed(objects)
        infos = {id(instance): info for info, instance in placed}
        applied = []
        for instance in install_order([instance for _, instance in placed]):
            info = infos[id(instance)]
            applied.append(await self._apply(info, instance, force=force))
        return applied

    async def _apply(self, info: KindInfo, instance: Json, *, force: bool) -> Json:
        owner = self._marked(info, instance)
        view, key = Unstructured(info.gvk, info), access.key(instance)
        existing = await self._client.get(view, key, missing=None)
        if existing is not None:
            self._check_ownership(existing)
        try:
            return await self._applier.apply(instance, owner=owner, force=True, adopt=True, client=self._client)
        except Invalid:
            if existing is None or not force:
                raise
        await self._client.delete(existing, propagation="Background", missing_ok=True)
        await self._gone(view, key)
        return await self._applier.apply(instance, owner=owner, force=True, adopt=True, client=self._client)

    def _marked(self, info: KindInfo, instance: Json) -> Json | None:
        """Set labels and annotations, and return the owner if the object may refer to it."""
        access.set_label(instance, MANAGED_BY, "Helm")
        access.set_label(instance, CHART, self._chart)
        access.set_annotation(instance, RELEASE_NAME, access.name(self._owner))
        access.set_annotation(instance, RELEASE_NAMESPACE, access.namespace(self._owner))
        return self.owned(info, instance)

    def owned(self, info: KindInfo, instance: Json) -> Json | None:
        """Return the owner if the object may refer to it; else set the owner's annotations."""
        home = access.namespace(self._owner)
        if supports_reference(self._kind, home, info, access.namespace(instance)) and not is_kept(instance):
            return self._owner
        for name, value in owner_annotations(self._owner).items():
            access.set_annotation(instance, name, value)
        return None

    def _check_ownership(self, existing: Json) -> None:
        controller = controller_of(existing)
        if controller is not None and controller.uid == access.uid(self._owner):
            return
        found = access.annotations(existing)
        release = (found.get(RELEASE_NAME), found.get(RELEASE_NAMESPACE))
        name, namespace = access.name(self._owner), access.namespace(self._owner)
        if controller is None and access.labels(existing).get(MANAGED_BY) == "Helm" and release == (name, namespace):
            return
        raise ReleaseError(
            f"{access.describe(existing)} exists and does not belong to release {namespace}/{name}; delete it, or set "
            f"its label {MANAGED_BY}=Helm and annotations {RELEASE_NAME}={name}, {RELEASE_NAMESPACE}={namespace}"
        )

    async def ready(self, objects: Sequence[Json], seconds: float) -> None:
        """Wait until the objects are ready. Raises `ReleaseError` after so many seconds, with what is missing."""
        waiting = ""
        try:
            async with self._client.world.clock.timeout(seconds):
                while waiting := await self._not_ready(objects):
                    await self._client.world.clock.sleep(_POLL)
        except TimeoutError:
            raise ReleaseError(f"not ready after {seconds:g} s: {waiting}") from None

    async def _not_ready(self, objects: Sequence[Json]) -> str:
        """Return the first object that is not ready, and why; "" if all are."""
        for each in objects:
            found = await self._client.get(Unstructured(access.gvk(each)), access.key(each), missing=None)
            if found is None:
                return f"{access.describe(each)}: does not exist"
            readiness = readiness_of(found)
            if not readiness:
                return f"{access.describe(each)}: {readiness.message}"
        return ""

    async def delete(self, objects: Iterable[Json]) -> list[Json]:
        """Delete objects in reverse order, except those that are to be kept; return those that still exist.

        An object that belongs to another release by now is not deleted.
        """
        left = []
        for instance in uninstall_order(await self.served(objects)):
            found = await self._client.live.get(Unstructured(access.gvk(instance)), access.key(instance), missing=None)
            if found is None or is_kept(found) or is_kept(instance) or not self._is_ours(found):
                continue
            left.append(found)
            if not access.is_being_deleted(found):
                await self._client.delete(found, propagation="Background", missing_ok=True)
        return left

    async def served(self, objects: Iterable[Json]) -> list[Json]:
        """Return the placed objects whose kinds are served, each once; the others are gone."""
        found: dict[ObjectRef, Json] = {}
        for each in objects:
            try:
                for _, instance in await self.placed([each]):
                    found[ObjectRef.of(instance)] = instance
            except ReleaseError:
                continue
        return list(found.values())

    def _is_ours(self, existing: Json) -> bool:
        try:
            self._check_ownership(existing)
        except ReleaseError:
            return False
        return True

    async def _gone(self, view: Unstructured, key: NamespacedName) -> None:
        try:
            async with self._client.world.clock.timeout(_GONE):
                while await self._client.live.get(view, key, missing=None) is not None:
                    await self._client.world.clock.sleep(_POLL)
        except TimeoutError:
            raise ReleaseError(f"{view.gvk.kind} {key} is to be recreated, and not gone after {_GONE:g} s") from None
