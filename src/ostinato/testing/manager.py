"""Manager of a test: runs controllers on the test's cluster, and keeps their errors.

    await manager.start(widgets)

- `start` installs the CustomResourceDefinitions of the controllers' kinds, grants the permissions that
  `ostinato manifests` derives to the user of the controllers, and returns when their caches have synced.
- An error of a reconcile that no later reconcile of the object resolved fails the test, unless it reads `errors`. So do
  missing permissions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.cache.informers import InformerSettings
from ostinato.cache.sync_tracker import SyncError
from ostinato.client.config.config import Config
from ostinato.client.transport.protocol import Transport
from ostinato.controllers.runnable import Dependencies, Runnable, Span
from ostinato.crd.program import access_of_managers, controllers_of, definitions_of_managers, webhooks_of
from ostinato.crd.rbac import roles_of
from ostinato.manager.connecting import Purpose
from ostinato.manager.connections import CacheOptions
from ostinato.manager.election.settings import LeaderElection
from ostinato.manager.lifecycle import ShutdownTimedOut
from ostinato.manager.manager import Manager
from ostinato.manager.sharding.settings import Sharding
from ostinato.testing.transport import ClusterTransport, Identity
from ostinato.world import Simulation

if TYPE_CHECKING:
    from ostinato.testing.cluster import Cluster

_POLL: Final = 0.002  # seconds between checks whether controllers have synced
_GRACE: Final = 1.0  # seconds for running reconciles at the end of a test
_LOOPBACK: Final = "127.0.0.1"
_FIELD_MANAGER: Final = "ostinato-testing"


class ReconcileError(NamedTuple):
    """A failed reconcile. `resolved`: a later reconcile of the same object succeeded."""

    controller: str
    object: str  # namespace/name
    error: Exception
    resolved: bool = False

    def __str__(self) -> str:
        return f"controller {self.controller} failed on {self.object}: {type(self.error).__name__}: {self.error}"


class ClusterManager(Manager):
    """A manager that is connected to the test's cluster. Create it with `Cluster.manager`."""

    def __init__(self, cluster: Cluster, name: str, *, rbac: bool = True, **options: Any) -> None:
        if cluster.is_real and "caches" not in options:  # others use the cluster too
            options["caches"] = CacheOptions(defaults=InformerSettings(namespaces=(cluster.namespace,)))
        options.setdefault("graceful_shutdown", _GRACE)
        self._outcomes = _Outcomes()
        self._cluster = cluster
        self._account = NamespacedName(cluster.namespace, name)
        self._rbac = rbac
        self._granted: list[dict[str, Any]] = []
        self._serving: asyncio.Task[None] | None = None
        config = Config(namespace=cluster.namespace)
        super().__init__(config, connect=self._open, world=cluster.world, **options)

    @property
    def errors(self) -> list[ReconcileError]:
        """The failed reconciles so far. Reading them tells that the test expects them, repeated ones too."""
        return self._outcomes.read()

    def unread_errors(self) -> list[str]:
        """Return the errors that fail the test."""
        return self._outcomes.unread()

    async def start(self, *runnables: Any) -> Self:  # Any: as in Manager.add
        """Add controllers, and start. Returns when their caches have synced.

        Can be called again for further controllers. Raises the error of a controller that cannot start.
        """
        running = self._serving is not None
        if not running:
            self.add(*runnables)
        await self._prepare(self if not running else _Added(self, runnables))
        if running:
            super().add(*runnables)
        else:
            self._serving = asyncio.get_running_loop().create_task(self.serve(), name=self._account.name)
        await self._wait_ready(runnables)
        return self

    def add(self, *runnables: Any) -> Self:
        if self._serving is not None:
            raise RuntimeError(
                "add(): the manager runs; use `await manager.start(...)`, which prepares the cluster too"
            )
        return super().add(*runnables)

    async def end(self) -> None:
        """Stop, and wait until everything has stopped; errors are kept. No effect if it was not started."""
        if self._serving is None:
            return
        self.stop()
        await asyncio.wait([self._serving])
        with suppress(ShutdownTimedOut, asyncio.CancelledError):
            try:
                self._serving.result()
            except ShutdownTimedOut:  # a reconcile that takes longer than the test is no error
                raise
            except Exception as error:  # noqa: BLE001 - reported at the end of the test
                self._outcomes.ended(error)
        await self._revoke()

    # Preparation

    async def _prepare(self, manager: Any) -> None:
        await self._cluster.start()
        webhooks = webhooks_of([manager])
        for each in webhooks:
            self._check_webhooks()
            each.serve_at(_LOOPBACK, _free_port())
        await self._cluster.install(*definitions_of_managers([manager], all_kinds=True))
        for configuration in (one for each in webhooks for one in each.configurations()):
            await self._cluster.client.apply(configuration, force=True, field_manager=_FIELD_MANAGER)
        if self._rbac:
            await self._grant(manager)

    def _check_webhooks(self) -> None:
        if self._cluster.is_real:
            raise RuntimeError("start(): a real cluster cannot call webhooks of this process; call their functions")
        if isinstance(self.world, Simulation):
            raise RuntimeError("start(): webhooks are called over HTTPS, which virtual time excludes; omit `clock`")

    async def _grant(self, manager: Any) -> None:
        rules = access_of_managers([manager], namespace=self._cluster.namespace)
        suffix = f"-{len(self._granted)}" if self._granted else ""
        name = f"{self._cluster.namespace}-{self._account.name}{suffix}"
        for role in roles_of(rules, name=name, service_account=self._account):
            self._granted.append(role)
            await self._cluster.client.apply(role, force=True, field_manager=_FIELD_MANAGER)

    async def _revoke(self) -> None:
        """Delete the roles that the deletion of the namespace leaves."""
        if self._cluster.is_real:
            for role in self._granted:
                await self._cluster.client.delete(role, missing_ok=True)

    async def _wait_ready(self, runnables: tuple[Any, ...]) -> None:
        assert self._serving is not None
        waits = [each for each in controllers_of(self) if not runnables or each in runnables]
        end = self.world.clock.monotonic() + self._cluster.patience
        ready = asyncio.get_running_loop().create_task(self.synced())
        try:
            await asyncio.wait([ready, self._serving], return_when=asyncio.FIRST_COMPLETED)
            while self.leader_election is None and not all(each.has_synced for each in waits):
                if self._serving.done() or self._outcomes.denied:
                    break
                if self.world.clock.monotonic() > end:
                    await self._report_late()
                await self.world.clock.sleep(_POLL)
        finally:
            ready.cancel()
        if self._serving.done():
            self._serving.result()
            raise RuntimeError("the manager ended while it started")

    async def _report_late(self) -> None:
        try:
            await self.check_caches()
        except (SyncError, APIError) as error:
            raise RuntimeError(f"start(): the caches do not sync: {error}") from None
        raise RuntimeError(f"start(): the controllers have not started after {self._cluster.patience:g} s")

    # Hooks of Manager

    def _open(self, purpose: Purpose) -> Transport:
        account = self._account
        identity = Identity(
            f"system:serviceaccount:{account.namespace}:{account.name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"),
        )
        return ClusterTransport(
            self._cluster.opener(identity if self._rbac else None),
            faults=self._cluster.faults,
            denied=self._outcomes.deny,
            deadline=purpose.deadline,
        )

    def _dependencies(self, runnable: Runnable) -> Dependencies:
        found = super()._dependencies(runnable)
        return replace(found, span=self._outcomes.observing(found.span))

    def _completed(self, given: str | LeaderElection | None) -> LeaderElection | None:
        found = super()._completed(given)  # a server in this process must not be called from another thread
        return None if found is None else msgspec.structs.replace(found, own_thread=self._cluster.is_real)

    def _completed_sharding(self, given: str | Sharding | None) -> Sharding | None:
        found = super()._completed_sharding(given)
        return None if found is None else msgspec.structs.replace(found, own_thread=self._cluster.is_real)


class _Added:
    """What is added to a running manager, as far as kinds and permissions depend on it."""

    leader_election = None
    sharding = None
    reviews_access = False

    def __init__(self, manager: Manager, runnables: tuple[Any, ...]) -> None:
        self.runnables = runnables
        self.caches, self.reporting = manager.caches, manager.reporting


class _Outcomes:
    """The outcomes of reconciles, and the permissions that were missing."""

    def __init__(self) -> None:
        self.denied: list[str] = []
        self._errors: list[ReconcileError] = []
        self._unresolved: dict[tuple[str, Hashable], int] = {}  # by controller and key: index in _errors
        self._others: list[str] = []
        self._expected: set[tuple[str, Hashable, type[Exception]]] = set()  # that the test has read

    def deny(self, text: str) -> None:
        if text not in self.denied:
            self.denied.append(text)

    def ended(self, error: Exception) -> None:
        self._others.append(f"the manager failed: {type(error).__name__}: {error}")

    def read(self) -> list[ReconcileError]:
        self._expected.update(map(_identity, self._errors))
        self.denied.clear()
        return list(self._errors)

    def unread(self) -> list[str]:
        texts = [str(each) for each in self._errors if not each.resolved and _identity(each) not in self._expected]
        in_errors = "\n".join(texts)
        return [*dict.fromkeys(texts), *(each for each in self.denied if each not in in_errors), *self._others]

    def observing(self, inner: Span) -> Span:
        @contextmanager
        def span(name: str, attributes: Mapping[str, str]) -> Iterator[object]:
            key = attributes["controller"], attributes["request"]
            try:
                with inner(name, attributes) as made:
                    yield made
            except Exception as error:
                self._unresolved[key] = len(self._errors)
                self._errors.append(ReconcileError(*key, error))
                raise
            self._resolve(key)

        return span

    def _resolve(self, key: tuple[str, Hashable]) -> None:
        at = self._unresolved.pop(key, None)
        if at is None:
            return
        for index, each in enumerate(self._errors):
            if (each.controller, each.object) == key:
                self._errors[index] = each._replace(resolved=True)


def _identity(error: ReconcileError) -> tuple[str, Hashable, type[Exception]]:
    """Return what repeated errors have in common."""
    return error.controller, error.object, type(error.error)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port
