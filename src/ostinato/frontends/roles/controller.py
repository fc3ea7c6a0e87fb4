"""Controllers of roles and playbooks, for `Manager.add` and `ostinato run`.

memcached = Role("roles/memcached").for_kind("Memcached", group="cache.example.com", version="v1alpha1")
backups = Playbook("backup.yml").for_kind("Backup", group="example.com", workers=4)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.api.selectors.labels import from_label_selector
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import ForObject
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.controllers.sources.predicates import (
    EventFunction,
    annotation_changed,
    generation_changed,
    having_labels,
    on_update,
)
from ostinato.crd.rbac import Access
from ostinato.frontends.roles.inputs import RunnerDirectory
from ostinato.frontends.roles.options import Content, RoleOptions
from ostinato.frontends.roles.proxy.cached import CachedReads
from ostinato.frontends.roles.proxy.proxy import Proxy
from ostinato.frontends.roles.proxy.session import Session
from ostinato.frontends.roles.reconciler import RoleReconciler
from ostinato.frontends.roles.runner import AnsibleRunner, Runner
from ostinato.frontends.watches.dependents import Dependents
from ostinato.queue import ExponentialBackoff

Json = dict[str, Any]

_FIRST_RETRY: Final = 1.0  # seconds; a run takes about as long
_NO_GENERATION = on_update(
    lambda old, new: not new.generation and old.resource_version != new.resource_version, "changed without generation"
)


class RoleController(Controller):
    def __init__(
        self,
        gvk: GroupVersionKind,
        content: Content,
        options: RoleOptions,
        *,
        access: Iterable[Access] = (),
        artifacts: Path | None = None,
        runner: Runner | None = None,
        definitions: Sequence[Json] = (),
    ) -> None:
        """
        - `access`: permissions that the role's tasks need; for manifests.
        - `artifacts`: directory for the input and the artifacts of runs, of this user alone. Defaults to None: a
          temporary one, removed at the end.
        - `runner`: plays the content. Defaults to ansible-runner in a process for each run.
        - `definitions`: CustomResourceDefinitions that it brings. Defaults to none: the kind exists.
        """
        content.check()
        finalizing = None if options.finalizer is None else options.finalizer.content
        if finalizing is not None:
            finalizing.check()
        view = Unstructured(gvk)
        self.content = content
        self.role_options = options
        self.definitions = tuple(definitions)
        self._artifacts = artifacts
        self._runner = runner
        self._dependents: Dependents | None = None  # set by `run`, as the runner
        super().__init__(
            f"{gvk.kind.lower()}-controller",
            RoleReconciler(view, content, options, self._current),
            view=view,
            sources=[KindSource(view, ForObject(), KindOptions(predicates=_predicates(options)))],
            options=ControllerOptions(max_concurrent=options.workers, error_conditions=False, limiter=_backoff),
            access=tuple(access),
        )

    async def run(self, dependencies: Dependencies) -> None:
        if self._runner is not None:
            await super().run(dependencies)
            return
        AnsibleRunner.check()
        assert self.view is not None
        self._dependents = Dependents(self, self.view.gvk)
        live = dependencies.client.live
        proxy = Proxy(live, CachedReads(dependencies.informers), self._watch_dependent)
        directory = RunnerDirectory(self._artifacts)
        try:
            await proxy.start()
            self._runner = AnsibleRunner(dependencies.world, proxy, directory)
            await super().run(dependencies)
        finally:
            await proxy.stop()
            directory.close()

    def _current(self, _: Context) -> Runner:
        assert self._runner is not None, "no reconcile before run()"
        return self._runner

    def _watch_dependent(self, session: Session, kind: KindInfo) -> None:
        """Watch the kind of a dependent, if the options ask for it."""
        options = self.role_options
        if not options.watch_dependents or kind.gvk in options.blacklist:
            return
        if session.kind.namespaced and not kind.namespaced and not options.watch_cluster_scoped:
            return
        assert self._dependents is not None
        self._dependents.watch(kind, namespaced_owner=session.kind.namespaced)


def _backoff() -> ExponentialBackoff[Hashable]:
    return ExponentialBackoff(_FIRST_RETRY)


class _Content:
    def __init__(self, path: str | Path) -> None:
        self._path = path

    def _content(self) -> Content:
        raise AssertionError

    def for_kind(
        self,
        kind: str,
        *,
        group: str,
        version: str = "v1",
        access: Iterable[Access] = (),
        artifacts: str | Path | None = None,
        runner: Runner | None = None,
        definitions: Sequence[Json | str | Path] = (),
        **options: Any,
    ) -> RoleController:
        """Return a controller that plays this for each object of a kind. Options are those of `RoleOptions`.

        - `definitions`: CustomResourceDefinitions that it brings, as objects or YAML files. Defaults to none.
        """
        unknown = set(options).difference(RoleOptions.__struct_fields__)
        if unknown:
            known = ", ".join(RoleOptions.__struct_fields__)
            raise TypeError(f"for_kind() has no option {min(unknown)!r}; options are {known}")
        gvk = GroupVersionKind(group, version, kind)
        place = None if artifacts is None else Path(artifacts)
        brought = [one for each in definitions for one in _definitions(each)]
        return RoleController(
            gvk,
            self._content(),
            RoleOptions(**options),
            access=access,
            artifacts=place,
            runner=runner,
            definitions=brought,
        )


def _definitions(given: Json | str | Path) -> list[Json]:
    return [given] if isinstance(given, dict) else decode_yaml_documents(Path(given).read_bytes())


class Role(_Content):
    """A role directory."""

    def _content(self) -> Content:
        return Content.role(self._path)


class Playbook(_Content):
    """A playbook file."""

    def _content(self) -> Content:
        return Content.playbook(self._path)


def _predicates(options: RoleOptions) -> tuple[EventFunction, ...]:
    changed = generation_changed | _NO_GENERATION
    if options.watch_annotations:
        changed = changed | annotation_changed
    found: list[EventFunction] = [changed]
    if options.selector:
        found.append(having_labels(from_label_selector(options.selector)))
    return tuple(found)
