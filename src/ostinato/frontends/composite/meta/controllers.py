"""Controllers of CompositeController and DecoratorController objects, with HTTP hooks.

- A CompositeController is one controller; a DecoratorController is one for each kind that it decorates.
- Kinds are looked up when the controller starts; it waits for those that are not served yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.codec import ObjectError, from_json, to_dict
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind
from ostinato.api.meta import LabelSelector
from ostinato.api.selectors.labels import Selector, SelectorError, everything, from_label_selector
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.request import Request
from ostinato.controllers.result import Result
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import ForObject
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.tasks import run_together
from ostinato.frontends.composite.meta.claims import Claims
from ostinato.frontends.composite.meta.definitions import (
    ROLLING,
    AnyController,
    ChildRule,
    CompositeController,
    DecoratorController,
    ParentRule,
    TargetRule,
)
from ostinato.frontends.composite.meta.endpoints import Endpoints, Resolve
from ostinato.frontends.composite.meta.history import REVISIONS, History
from ostinato.frontends.composite.meta.hooks import HttpHooks
from ostinato.frontends.composite.meta.kinds import NoSuchResource, resolve
from ostinato.frontends.composite.meta.reconciler import ParentReconciler, Parts, Policy
from ostinato.frontends.composite.meta.revisions import RollingKind, check_paths
from ostinato.frontends.composite.meta.sources import ForParentOf, concerned, more_than_status
from ostinato.frontends.composite.meta.writing import ChildWriter, Method
from ostinato.frontends.kernel.parents import ParentWriter
from ostinato.frontends.kernel.recording import recorded
from ostinato.frontends.kernel.related import RelatedObjects
from ostinato.frontends.kernel.sync import DeciderError, Json

FIELD_MANAGER: Final = "metacontroller"
_MIN_RESYNC: Final = 1.0  # seconds
_RETRY: Final = 2.0  # seconds between lookups of kinds that are not served yet


class MetaSettings(NamedTuple):
    """
    - `workers`: parents of a controller that are synced concurrently.
    - `resolve`: addresses of hooks that replace those of their URLs.
    """

    workers: int = 5
    resolve: Resolve = {}


class MetaController:
    """The controllers of one object; run once."""

    def __init__(self, definition: AnyController, document: Json, settings: MetaSettings) -> None:
        """`document`: the object as the hooks get it."""
        self.definition = definition
        self._document = document
        self._settings = settings
        form = "composite" if isinstance(definition, CompositeController) else "decorator"
        self.name = f"{form}.{definition.metadata.name}"
        self.kinds: list[Unstructured] = []  # that it watches
        self._controllers: list[Controller] = []
        self._is_waiting = False  # for kinds that are not served

    @property
    def has_synced(self) -> bool:
        """Whether its caches have synced, or it waits for its kinds."""
        return self._is_waiting or (bool(self._controllers) and all(each.has_synced for each in self._controllers))

    async def run(self, dependencies: Dependencies) -> None:
        """Run until cancelled. Raises DeciderError if the definition cannot be run."""
        endpoints = Endpoints(dependencies.client, self._settings.resolve)
        spec = self.definition.spec
        form: Any = self.name.partition(".")[0]
        hooks = HttpHooks(form, self._document, spec.hooks, spec.endpoint_configs, endpoints, dependencies.world)
        try:
            policies = await self._policies(dependencies)
            made = [self._controller(each, hooks, dependencies) for each in policies]
            self._controllers = [controller for controller, _ in made]
            self._is_waiting = False
            try:
                await run_together([each.run for each in self._controllers], dependencies)
            finally:
                for _, related in made:
                    await related.kinds.stop()
        finally:
            await hooks.close()

    async def _policies(self, dependencies: Dependencies) -> list[_Planned]:
        reported = ""
        while True:
            try:
                return await self._resolved(dependencies)
            except (NoSuchResource, APIError, TransportError) as error:
                self._is_waiting = True
                if str(error) != reported:
                    reported = str(error)
                    dependencies.logger.warning(
                        "controller waits for its kinds controller=%s error=%s", self.name, error
                    )
            await dependencies.world.clock.sleep(_RETRY)

    async def _resolved(self, dependencies: Dependencies) -> list[_Planned]:
        mapper, definition = dependencies.client.live.mapper, self.definition
        rules: Sequence[ChildRule]
        targets: Sequence[ParentRule | TargetRule]
        if isinstance(definition, CompositeController):
            rules, targets = definition.spec.child_resources, [definition.spec.parent_resource]
        else:
            rules, targets = definition.spec.attachments, definition.spec.resources
        children = [await resolve(mapper, rule.api_version, rule.resource) for rule in rules]
        planned = []
        for target in targets:
            view = await resolve(mapper, target.api_version, target.resource)
            policy = _policy(definition, target, view, list(zip(rules, children, strict=True)))
            planned.append(_Planned(policy, target))
            self.kinds.append(view)
        self.kinds += children
        return planned

    def _controller(
        self, planned: _Planned, hooks: HttpHooks, dependencies: Dependencies
    ) -> tuple[Controller, RelatedObjects]:
        policy, rule = planned
        client, info = dependencies.client, policy.view.info
        assert info is not None
        period = self.definition.spec.resync_period_seconds
        predicates = [concerned(policy)]
        if rule.ignore_status_changes:
            predicates.append(more_than_status)
        parents = KindOptions(
            predicates=tuple(predicates), resync=0.0 if period is None else max(float(period), _MIN_RESYNC)
        )
        sources = [KindSource(policy.view, ForObject(), parents)]
        sources += [KindSource(view, ForParentOf(policy)) for view in policy.kinds]
        if policy.rolling:
            sources.append(KindSource(REVISIONS, ForParentOf(policy), KindOptions(predicates=(_never,))))
        name = self.name
        if policy.form == "decorator":
            name = f"{name}.{info.plural}.{info.gvk.group}".rstrip(".")
        reconciler: ParentReconciler

        async def reconcile(request: Request, ctx: Context) -> Result | None:
            return await reconciler.reconcile(request, ctx)

        controller = Controller(
            name,
            reconcile,
            view=policy.view,
            owned=policy.kinds,
            sources=sources,
            options=ControllerOptions(
                max_concurrent=self._settings.workers, error_events=False, error_conditions=False
            ),
        )
        related = RelatedObjects(controller)
        related.kinds.start(dependencies)
        parts = Parts(
            claims=Claims(client, FIELD_MANAGER, policy.kinds),
            related=related,
            history=History(client, FIELD_MANAGER, info),
            children=ChildWriter(client, FIELD_MANAGER, policy.kinds),
            parents=ParentWriter(client, FIELD_MANAGER),
        )
        reconciler = ParentReconciler(policy, hooks, recorded(hooks.decide), parts)
        return controller, related


class _Planned(NamedTuple):
    policy: Policy
    rule: ParentRule | TargetRule


def _never(_event: object) -> bool:
    """Predicate: the kind is cached, and its events enqueue nothing."""
    return False


def _policy(
    definition: AnyController,
    rule: ParentRule | TargetRule,
    view: Unstructured,
    children: Sequence[tuple[ChildRule, Unstructured]],
) -> Policy:
    methods: dict[GroupKind, Method] = {}
    rolling: dict[GroupKind, RollingKind] = {}
    is_composite = isinstance(definition, CompositeController)
    for child, found in children:
        strategy = child.update_strategy
        method = (strategy.method if strategy is not None else None) or "OnDelete"
        kind = found.gvk.group_kind
        if method in ROLLING and strategy is not None and is_composite:
            rolling[kind] = RollingKind(method == "RollingInPlace", strategy.status_checks)
        methods[kind] = _plain(method)
    form = "composite" if is_composite else "decorator"
    name = definition.metadata.name
    paths: Sequence[str] = ("spec",)
    if isinstance(rule, ParentRule) and rule.revision_history is not None and rule.revision_history.field_paths:
        paths = rule.revision_history.field_paths
        check_paths(paths)
    annotations: Selector = everything()
    if isinstance(rule, TargetRule) and rule.annotation_selector is not None:
        chosen = rule.annotation_selector
        expressions = [to_dict(each) for each in chosen.match_expressions]
        annotations = _selector(
            "annotationSelector", {"matchLabels": chosen.match_annotations, "matchExpressions": expressions}
        )
    return Policy(
        form=form,  # type: ignore[arg-type]  # one of its values
        name=name,
        finalizer=f"metacontroller.io/{form}controller-{name}",
        view=view,
        kinds=[found for _, found in children],
        labels=_selector("labelSelector", _plain_selector(rule.label_selector)),
        annotations=annotations,
        generated=isinstance(definition, CompositeController) and bool(definition.spec.generate_selector),
        methods=methods,
        rolling=rolling,
        paths=paths,
    )


def _plain(method: str) -> Method:
    if method in ("InPlace", "RollingInPlace"):
        return "InPlace"
    return "Recreate" if method in ("Recreate", "RollingRecreate") else "OnDelete"


def _plain_selector(selector: LabelSelector | None) -> Mapping[str, Any]:
    return {} if selector is None else to_dict(selector)


def _selector(field: str, selector: Mapping[str, Any]) -> Selector:
    try:
        return from_label_selector(selector)
    except SelectorError as error:
        raise DeciderError(f"{field}: {error}", permanent=True) from None


def controller_of(document: Json) -> AnyController:
    """Decode a CompositeController or DecoratorController. Raises DeciderError."""
    kind: Any = CompositeController if document.get("kind") == "CompositeController" else DecoratorController
    try:
        found: AnyController = from_json(kind, msgspec.json.encode(document))
    except ObjectError as error:
        raise DeciderError(str(error), permanent=True) from None
    return found
