"""The Unix sockets of a control plane in several processes, and whom the API server sees behind its own.

- `apiserver.sock`: the components connect to the API server. Each request names the identity of its component, from
  which the server derives user and groups, as a client certificate would have them. No identity is an administrator's.
- `nodes.sock`: the API server connects to the agents of the nodes, for logs, exec, attach, port-forward and usage.

Only processes of the server's user can open them (`http.unix_sockets`). Such a process can also read the keys in the
state directory, so the sockets give it nothing more.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ostinato.plane.access import identities
from ostinato.server.request import Peer


def apiserver_socket(state: Path) -> Path:
    return state / "apiserver.sock"


def nodes_socket(state: Path) -> Path:
    return state / "nodes.sock"


def node_names(count: int) -> list[str]:
    """Return the names of the nodes on this machine."""
    return [f"node-{number}" for number in range(1, count + 1)]


@lru_cache(maxsize=8192)  # one lookup for each request
def identify(identity: str) -> Peer:
    """Return the user of an identity; see `server.http.server.Identify`."""
    if not identities.is_known(identity):
        return Peer("", fault="unknown identity")
    return Peer(*identities.user_and_groups(identity))
