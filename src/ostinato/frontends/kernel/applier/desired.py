"""Desired objects: completed, checked, and compared with those in the cluster, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind
from ostinato.api.object import Object
from ostinato.api.owners import AlreadyOwned, OwnerError, controller_of
from ostinato.cache.client import CachedClient
from ostinato.client import NoSuchKind
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.applying import Applier, ForeignObject, StillOwned, is_earlier
from ostinato.frontends.kernel.applier.outcome import ApplyError, Held, Outcome
from ostinato.frontends.kernel.applier.refs import ObjectRef
from ostinato.frontends.kernel.applier.strategies import Strategy
from ostinato.frontends.kernel.applier.tracking import CONTROLLER, OWNER, OWNER_UID, is_member, is_reachable, mark
from ostinato.frontends.kernel.sync import Json

_DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


class Item(NamedTuple):
    """A desired object with its namespace and marks, the one in the cluster, and how it is updated."""

    ref: ObjectRef
    wanted: Json
    live: Json | None
    strategy: Strategy


class Strategies(NamedTuple):
    """Update strategies by kind."""

    by_kind: Mapping[GroupKind, Strategy]
    default: Strategy

    def of(self, ref: ObjectRef) -> Strategy:
        return self.by_kind.get(ref.gvk.group_kind, self.default)


class DesiredObjects:
    def __init__(self, client: CachedClient, applier: Applier, *, controller: str, has_finalizer: bool) -> None:
        """
        - `controller`: of owners that have several; "" if there is one.
        - `has_finalizer`: whether owners can have objects that the garbage collector does not delete with them.
        """
        self._client = client
        self._applier = applier
        self._controller = controller
        self._has_finalizer = has_finalizer

    async def items(
        self,
        owner: AnyObject,
        desired: Sequence[AnyObject],
        strategies: Strategies,
        outcome: Outcome,
        *,
        adopt: bool,
    ) -> list[Item]:
        """Return the objects that can be applied; the outcome gets the others."""
        items: dict[ObjectRef, Item] = {}
        defined = {found for each in desired if (found := _defined(each)) is not None}
        for index, each in enumerate(desired):
            ref = ObjectRef("", "object", "", f"number {index + 1}")
            try:
                ref = _checked(each)
                wanted = await self._completed(owner, each)
                ref = ObjectRef.of(wanted)
                if ref in items:
                    raise ValueError("given twice; remove one, or rename it")
                live = await self._client.get(Unstructured(ref.gvk), ref.key, missing=None)
                if live is not None:
                    self._check_foreign(owner, wanted, live, adopt=adopt)
                items[ref] = Item(ref, wanted, live, strategies.of(ref))
            except NoSuchKind as error:
                if ref.gvk.group_kind in defined:
                    outcome.held.append(Held(ref, "its CustomResourceDefinition is not established yet"))
                else:
                    outcome.errors.append(ApplyError(ref, error))
            except (APIError, OwnerError, ValueError) as error:
                outcome.errors.append(ApplyError(ref, error))
        return list(items.values())

    async def _completed(self, owner: AnyObject, instance: AnyObject) -> Json:
        """Return a copy as it is applied: with a namespace according to its scope, and with marks."""
        document = to_dict(instance) if isinstance(instance, Object) else dict(instance)
        metadata = document["metadata"] = dict(document["metadata"])
        for field in ("labels", "annotations"):
            if field in metadata:
                metadata[field] = dict(metadata[field] or {})
        for mine in (OWNER, CONTROLLER):  # as read from the cluster; they are set below
            metadata.get("annotations", {}).pop(mine, None)
        metadata.get("labels", {}).pop(OWNER_UID, None)
        info = await self._client.informers.info(Unstructured(access.gvk(document)))
        if not info.namespaced:
            metadata.pop("namespace", None)
        elif not metadata.get("namespace"):
            metadata["namespace"] = access.namespace(owner) or self._client.live.namespace
        mark(owner, document, self._controller)
        if is_reachable(owner, document):
            return self._applier.complete(document, owner=owner)
        if not self._has_finalizer:
            raise OwnerError(
                f"cannot have an owner reference to {access.describe(owner)}, and nothing would delete it with its "
                "owner; put it into the owner's namespace, or use a controller with a finalizer"
            )
        return document

    def _check_foreign(self, owner: AnyObject, wanted: Json, live: Json, *, adopt: bool) -> None:
        """Raise unless the object in the cluster is one of the set, or may become one."""
        if is_member(owner, live, self._controller):
            return
        controller = controller_of(live)
        if is_member(owner, live):
            other = access.annotations(live).get(CONTROLLER)
            if adopt and not other:
                return
            raise OwnerError(
                f"belongs to {other or 'another controller'}, for the same owner; use another name, or, if that "
                f"controller is gone, set its annotation {CONTROLLER}={self._controller}"
            )
        if controller is not None:
            raise (StillOwned if is_earlier(controller, owner) else AlreadyOwned)(wanted, controller)
        if not adopt or OWNER_UID in access.labels(live):
            raise ForeignObject(wanted, owner)


def _checked(instance: AnyObject) -> ObjectRef:
    """Return the reference of an object. Raises ValueError if it is not one that can be applied."""
    document: object = to_dict(instance) if isinstance(instance, Object) else instance
    if not isinstance(document, dict):
        raise ValueError(f"expected an object, got {type(document).__name__}")
    metadata = document.get("metadata")
    for field, value in (("apiVersion", document.get("apiVersion")), ("kind", document.get("kind"))):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{field}: required")
    if not isinstance(metadata, dict):
        raise ValueError("metadata: required")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        generated = "; generateName would create another object each time" if "generateName" in metadata else ""
        raise ValueError(f"{document['kind']}: metadata.name: required{generated}")
    ref = ObjectRef(document["apiVersion"], document["kind"], namespace if isinstance(namespace, str) else "", name)
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, dict):
            raise ValueError(f"{ref}: metadata.{field}: expected a map")
    access.gvk(document)  # raises if the apiVersion is malformed
    return ref


def _defined(instance: AnyObject) -> GroupKind | None:
    """Return the kind that a CustomResourceDefinition defines."""
    document = to_dict(instance) if isinstance(instance, Object) else instance
    if not isinstance(document, dict) or document.get("kind") != _DEFINITION.kind:
        return None
    spec = document.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    return GroupKind(str(spec.get("group")), str(names.get("kind")))
