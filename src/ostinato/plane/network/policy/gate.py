"""Policy gate: the current policy table, as those ask it who connect on behalf of others."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.plane.network.policy.table import PolicyTable

IsMachine = Callable[[str], bool]
"""Whether an address is one of this machine's own."""


class PolicyGate:
    """The relays of Services and host ports connect to Pods from the machine, whose packets no rule stops: they ask."""

    def __init__(self, is_machine: IsMachine) -> None:
        self._is_machine = is_machine
        self._known: dict[str, bool] = {}  # addresses that were asked about, and whether they are the machine's
        self._table = PolicyTable()

    @property
    def table(self) -> PolicyTable:
        return self._table

    def replace(self, table: PolicyTable) -> None:
        self._table = table
        self._known.clear()

    def permits(self, client: str, endpoint: str, protocol: str, port: int) -> bool:
        """Whether a client may be connected to an endpoint. A Pod and its machine may always connect."""
        table = self._table
        if client not in table.egress and endpoint not in table.ingress:
            return True
        if self._is_of_machine(client) or self._is_of_machine(endpoint):
            return True
        return table.permits(client, endpoint, protocol, port)

    def _is_of_machine(self, address: str) -> bool:
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._is_machine(address)
        return found
