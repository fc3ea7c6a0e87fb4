"""Sync of one parent: observe its children, call the decider, act on its answer.

1. Add the finalizer before anything else, if there is a finalize hook; remove it if there is none.
2. Observe: claim the children, collect related objects.
3. Decide: one call of the hook, or with rolling updates one for each revision.
4. Act: delete the children that are not desired any more, create and update the others. The children of a parent that
   is being deleted are left alone, unless it waits for the finalize hook.
5. Write the parent: labels and annotations (decorators), status, finalizer.

A parent that was selected and is not any more is finalized like one that is deleted.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ostinato.api import accessors as access
from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import GroupKind
from ostinato.api.selectors.labels import Selector, everything
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.request import Request
from ostinato.controllers.result import Result, TemporaryError, Unsettled
from ostinato.frontends.composite.meta import revisions as rolling
from ostinato.frontends.composite.meta.claims import CONTROLLER_UID, Claims, selector_of
from ostinato.frontends.composite.meta.contract import CHILDREN, Form, RelatedRule
from ostinato.frontends.composite.meta.definitions import GROUP
from ostinato.frontends.composite.meta.history import History
from ostinato.frontends.composite.meta.hooks import Busy
from ostinato.frontends.composite.meta.related import selections
from ostinato.frontends.composite.meta.revisions import RollingKind
from ostinato.frontends.composite.meta.writing import ChildWriter, Method
from ostinato.frontends.kernel.parents import ParentWriter
from ostinato.frontends.kernel.related import RelatedObjects
from ostinato.frontends.kernel.sync import Decider, DeciderError, Json, Objects, SyncRequest, SyncResult, Trigger

DECORATOR: Final = f"{GROUP}/decorator-controller"
_OF_COLLECTOR: Final = ("foregroundDeletion", "orphan")  # finalizers of the garbage collector


class Hooks(Protocol):
    """What decides: HTTP hooks, or functions."""

    @property
    def finalizes(self) -> bool: ...

    @property
    def customizes(self) -> bool: ...

    @property
    def sees_all_namespaces(self) -> bool: ...

    async def rules(self, parent: Json, /) -> list[RelatedRule]: ...


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a definition says about parents and children.

    - `labels`, `annotations`: select the parents.
    - `generated`: children are selected by a label with the uid of the parent, which is added to them.
    - `methods`: how existing children are updated, by kind; `default` for other kinds.
    - `rolling`: kinds whose children are updated one at a time.
    - `paths`: fields of the parent that a revision has.
    """

    form: Form
    name: str
    finalizer: str
    view: Unstructured
    kinds: Sequence[Unstructured]
    labels: Selector = field(default_factory=everything)
    annotations: Selector = field(default_factory=everything)
    generated: bool = False
    methods: Mapping[GroupKind, Method] = field(default_factory=dict)
    default: Method = "OnDelete"
    rolling: Mapping[GroupKind, RollingKind] = field(default_factory=dict)
    paths: Sequence[str] = ("spec",)

    def selects(self, parent: Json) -> bool:
        return self.labels.matches(access.labels(parent)) and self.annotations.matches(access.annotations(parent))

    def concerns(self, parent: Json) -> bool:
        """Whether the parent is selected, or was and still has the finalizer."""
        return access.has_finalizer(parent, self.finalizer) or self.selects(parent)


@dataclass(frozen=True)
class Parts:
    """What a reconciler works with."""

    claims: Claims
    related: RelatedObjects
    history: History
    children: ChildWriter
    parents: ParentWriter


class ParentReconciler:
    def __init__(self, policy: Policy, hooks: Hooks, decide: Decider, parts: Parts) -> None:
        self._policy = policy
        self._hooks = hooks
        self._decide = decide
        self._parts = parts

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        parent = await ctx.client.get(self._policy.view, request, missing=None)
        if parent is None:
            await self._parts.related.forget(request)
            return None
        ctx.object = parent
        try:
            later = await self._sync(parent, ctx)
        except Busy as busy:
            ctx.logger.info("hook is busy, called again later object=%s error=%s", access.describe(parent), busy)
            return Unsettled(retry=True) if busy.retry_after is None else Unsettled(requeue_after=busy.retry_after)
        except (Conflict, NotFound):
            raise
        except DeciderError as error:
            self._report(parent, ctx, error)
            raise TemporaryError(str(error), delay=error.retry_after) from None
        except Exception as error:
            self._report(parent, ctx, error)
            raise
        return None if later is None else Result(requeue_after=later)

    def _report(self, parent: Json, ctx: Context, error: Exception) -> None:
        ctx.event(parent, "SyncError", f"Sync error: {error}", kind="Warning", action="Sync")

    async def _sync(self, parent: Json, ctx: Context) -> float | None:
        policy, finalizes = self._policy, self._hooks.finalizes
        if not policy.concerns(parent):
            await self._parts.related.forget(ctx.request)
            return None
        deleting = access.is_being_deleted(parent)
        if finalizes != access.has_finalizer(parent, policy.finalizer) and not (finalizes and deleting):
            await self._parts.parents.finalizer(parent, policy.finalizer, present=finalizes)
            if not policy.concerns(parent):
                return None
        selector = selector_of(parent, generated=policy.generated) if policy.form == "composite" else everything()
        observed = await self._observed(parent, selector)
        related: Objects = {}
        if self._hooks.customizes:
            chosen = await selections(
                ctx.client.live.mapper,
                parent,
                await self._hooks.rules(parent),
                sees_all=self._hooks.sees_all_namespaces,
            )
            related = await self._parts.related.collect(ctx.request, chosen, ctx.client)
        request = SyncRequest(
            controller=policy.name,
            trigger=Trigger(reasons=list(ctx.reconcile.why.reasons)),
            parent=parent,
            children=observed,
            related=related,
            finalizing=finalizes and (deleting or not policy.selects(parent)),
            attempt=ctx.reconcile.attempt,
        )
        result = await self._decided(request, selector)
        await self._act(parent, request, result, selector)
        return result.resync_after

    async def _observed(self, parent: Json, selector: Selector) -> Objects:
        claims = self._parts.claims
        if self._policy.form == "composite":
            return await claims.selected(parent, selector)
        return await claims.annotated(parent, DECORATOR, self._policy.name)

    async def _decided(self, request: SyncRequest, selector: Selector) -> SyncResult:
        policy, parent = self._policy, request.parent
        assert parent is not None
        if not policy.rolling or (access.is_being_deleted(parent) and not self._manages(parent)):
            return await self._decide(request)
        history, info = self._parts.history, policy.view.info
        assert info is not None
        stored = await history.claimed(parent, selector)
        revisions = rolling.revisions_of(parent, info, policy.paths, stored)
        await rolling.decide_all(revisions, request, self._decide)
        observed = rolling.by_key(parent, request.children)

        async def is_updated(_found: Json, desired: Json) -> bool:
            return await self._parts.children.is_updated(self._completed(parent, desired), parent)

        condition = await rolling.roll(revisions, observed, policy.rolling, is_updated)
        await history.store(revisions, stored, parent, generated=policy.generated)
        result = rolling.combined(revisions)
        result.status = copy.deepcopy(result.status or {})
        rolling.set_condition(result.status, condition)
        return result

    async def _act(self, parent: Json, request: SyncRequest, result: SyncResult, selector: Selector) -> None:
        desired = None
        if result.children is not None:
            desired = [self._completed(parent, child) for child in result.children]
            self._check_labels(parent, desired, selector)
        writer = self._parts.parents
        with suppress(NotFound):  # deleted meanwhile
            if self._policy.form == "decorator":
                await writer.status(parent, result.status, observed_generation=False)
                await writer.metadata(parent, result.labels, result.annotations)
            if request.finalizing and result.finalized:
                await writer.finalizer(parent, self._policy.finalizer, present=False)
        errors: list[Exception] = []
        if desired is not None and (not access.is_being_deleted(parent) or self._manages(parent)):
            errors = await self._parts.children.write(parent, request.children, desired, self._method)
        if self._policy.form == "composite":
            with suppress(NotFound):
                await writer.status(parent, result.status)
        if errors:
            raise DeciderError("; ".join(str(each) for each in errors))

    def _method(self, kind: GroupKind) -> Method:
        return self._policy.methods.get(kind, self._policy.default)

    def _manages(self, parent: Json) -> bool:
        """Whether the children of a parent that is being deleted are managed: it waits for the finalize hook."""
        finalizers = access.finalizers(parent)
        if any(each in finalizers for each in _OF_COLLECTOR):
            return False  # the garbage collector deletes or orphans them
        return self._hooks.finalizes and self._policy.finalizer in finalizers

    def _completed(self, parent: Json, child: Json) -> Json:
        """Return a desired child with the label or annotation by which it is found again."""
        policy = self._policy
        if policy.form == "composite" and not policy.generated:
            return child
        metadata: dict[str, Any] = dict(child["metadata"])
        if policy.form == "decorator":
            metadata["annotations"] = {**(metadata.get("annotations") or {}), DECORATOR: policy.name}
        else:
            metadata["labels"] = {CONTROLLER_UID: access.uid(parent), **(metadata.get("labels") or {})}
        return {**child, "metadata": metadata}

    def _check_labels(self, parent: Json, desired: Sequence[Json], selector: Selector) -> None:
        if self._policy.form == "decorator":
            return
        for child in desired:
            if not selector.matches(access.labels(child)):
                raise DeciderError(
                    f"answer of the hook: {CHILDREN[self._policy.form]}: labels of {access.describe(child)} do not "
                    f"match the selector of {access.describe(parent)}; it would be orphaned at once"
                )
