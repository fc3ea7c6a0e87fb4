"""Policy enforcer: derives the rules from the current objects, installs them, and answers the service proxy.

- Every change of a policy, Pod, namespace or Service leads to the same computation of everything.
- A Pod that starts is held back (`admit`) until the rules have its address, so that it is isolated from its first
  instant. If the rules cannot be installed, a Pod that a policy isolates does not start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Event
from ostinato.controllers import ChannelSource, Context, Dependencies, ForEvent, Request, Result
from ostinato.controllers.sources.channel import Channel
from ostinato.kinds.core_v1 import Namespace, Pod
from ostinato.kinds.networking_v1 import NetworkPolicy
from ostinato.manager import Manager
from ostinato.plane.network.policy.gate import PolicyGate
from ostinato.plane.network.policy.peers import PodView, PolicyPod, peer_of, shares_machine
from ostinato.plane.network.policy.ruleset import DeniedClients, Ruleset, RulesetInstaller
from ostinato.plane.network.policy.table import PolicyTable, policy_table
from ostinato.plane.objects.pod_state import PodState

_logger = logging.getLogger("ostinato.plane.policies")

_ALL: Final = NamespacedName("", "all")  # the one key: everything is computed together
_RETRY: Final = 20.0  # seconds until a ruleset that the kernel refused, or that was removed, is installed again

Frontends = Mapping[tuple[str, str, int], Sequence[tuple[str, int]]]
"""Addresses and ports of endpoints, by protocol, address and port of a Service."""


class PolicyNotEnforced(Exception):  # noqa: N818 - what is the case
    """The kernel refuses the rules; the message is the reason."""


class ServiceView(Protocol):
    """What the enforcer needs to know of the Services on this machine; the service proxy is one."""

    @property
    def changes(self) -> Channel: ...

    def addresses(self) -> frozenset[str]:
        """The addresses that are served."""

    def frontends(self) -> Frontends: ...


class PolicyEnforcer:
    """A runnable of a manager, which removes the rules in the end."""

    name = "network-policy-rules"
    needs_leader_election = False

    def __init__(self, manager: Manager, gate: PolicyGate, installer: RulesetInstaller, services: ServiceView) -> None:
        """`gate`: gets each new table."""
        self._world = manager.world
        self._gate = gate
        self._installer = installer
        self._services = services
        self._policies = manager.informers.of(NetworkPolicy)
        self._pods = manager.informers.of(PodState)
        self._namespaces = manager.informers.of(Namespace)
        self._known: dict[str, tuple[str, PolicyPod | None]] = {}  # by uid: (resourceVersion, Pod)
        self._admitted: dict[str, PolicyPod] = {}  # Pods that start; by uid
        self._installed: Ruleset | None = None
        self._failure = ""
        self._warned = False  # that Pods use the network of the machine
        self._lock = asyncio.Lock()

    async def admit(self, pod: Pod, addresses: Sequence[str]) -> None:
        """Return when the rules apply to a Pod that is about to start. Raises `PolicyNotEnforced`."""
        peer = peer_of(pod, addresses)
        if peer is None:
            return
        await self._policies.synced()
        await self._namespaces.synced()
        self._admitted[peer.uid] = peer
        await self.sync()
        table = self._gate.table
        if self._failure and any(each in table.ingress or each in table.egress for each in addresses):
            raise PolicyNotEnforced(f"network policies cannot be enforced: {self._failure}")

    async def sync(self) -> None:
        """Compute the rules, and install them if they have changed."""
        async with self._lock:
            table = self._compute()
            self._gate.replace(table)
            ruleset = Ruleset(table, self._services.addresses(), tuple(self._denied(table)))
            if ruleset == self._installed:
                return
            try:
                await self._world.executor.run(self._installer.install, ruleset)
            except OSError as error:
                reason = error.strerror or str(error)
                if reason != self._failure:
                    _logger.warning("network policies are not enforced error=%s", reason)
                self._failure, self._installed = reason, None
                return
            self._failure, self._installed = "", ruleset

    async def run(self, dependencies: Dependencies) -> None:
        try:
            while True:
                await dependencies.world.clock.sleep(_RETRY)
                if self._failure or not await self._is_intact():
                    self._installed = None
                    await self.sync()
        finally:  # Pods keep running: those that are isolated stay so
            if not self._gate.table.ingress and not self._gate.table.egress:
                self._installer.remove()

    async def _is_intact(self) -> bool:
        try:
            return await self._world.executor.run(self._installer.is_intact)
        except OSError:  # without CAP_NET_ADMIN; then nothing was installed
            return True

    # Everything

    def _compute(self) -> PolicyTable:
        policies = self._policies.lister(NetworkPolicy).list()
        if not policies:
            self._admitted.clear()
            self._known.clear()
            return PolicyTable()
        namespaces = {entry.key.name: entry.labels for entry in self._namespaces.store.entries()}
        return policy_table(policies, self._peers(), namespaces)

    def _peers(self) -> list[PolicyPod]:
        known: dict[str, tuple[str, PolicyPod | None]] = {}
        for entry in self._pods.store.entries():
            seen = self._known.get(entry.uid)
            if seen is None or seen[0] != entry.resource_version:
                view = entry.read(PodView)
                seen = entry.resource_version, peer_of(view)
                if shares_machine(view) and not self._warned:
                    self._warned = True
                    _logger.warning("network policies are not enforced for pods on the network of the machine")
            known[entry.uid] = seen
        self._known = known
        found = {uid: pod for uid, (_, pod) in known.items() if pod is not None}
        for uid, pod in list(self._admitted.items()):
            current = found.get(uid)
            if uid not in known or (current is None and known[uid][1] is None and not pod.addresses):
                del self._admitted[uid]
            elif current is None or not current.addresses:
                found[uid] = pod
            else:
                del self._admitted[uid]
        return list(found.values())

    def _denied(self, table: PolicyTable) -> Iterable[DeniedClients]:
        """The Pods that may connect to no endpoint of a Service, by its frontends."""
        if not table.ingress and not table.egress:
            return
        everybody = {address for _, pod in self._known.values() if pod for address in pod.addresses}
        everybody.update(address for pod in self._admitted.values() for address in pod.addresses)
        for (protocol, address, port), endpoints in sorted(self._services.frontends().items()):
            isolated = any(endpoint in table.ingress for endpoint, _ in endpoints)
            clients = frozenset(
                client
                for client in (everybody if isolated else everybody & table.egress.keys())
                if not any(self._gate.permits(client, endpoint, protocol, number) for endpoint, number in endpoints)
            )
            if endpoints and clients:
                yield DeniedClients(protocol, address, port, clients)


class _Reconciler:
    def __init__(self, enforcer: PolicyEnforcer) -> None:
        self._enforcer = enforcer

    async def reconcile(self, request: Request, ctx: Context) -> Result:  # noqa: ARG002
        await self._enforcer.sync()
        return Result()


def add_to(manager: Manager, state: Path, gate: PolicyGate, services: ServiceView) -> PolicyEnforcer:
    """Add the enforcer to a manager. `state`: the state directory, which identifies the rules."""
    enforcer = PolicyEnforcer(manager, gate, RulesetInstaller(state), services)
    manager.add(enforcer)
    every: Callable[[Event], Iterable[NamespacedName]] = lambda _: (_ALL,)  # noqa: E731
    (
        manager.build("network-policies")
        .watches(NetworkPolicy, handler=ForEvent(every))
        .watches(PodState, handler=ForEvent(every))
        .watches(Namespace, handler=ForEvent(every))
        .watches_source(ChannelSource(services.changes, keys=lambda _: (_ALL,)))
        .with_options(needs_leader_election=False)
        .complete(_Reconciler(enforcer))
    )
    return enforcer
