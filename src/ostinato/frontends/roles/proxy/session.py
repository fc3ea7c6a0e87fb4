"""Sessions: the right of one run to use the proxy, and the kubeconfig that carries it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.object import KindInfo
from ostinato.world import Ids

Json = dict[str, Any]


class Session(msgspec.Struct, frozen=True, eq=False):
    """One run. `owner`: the object that is reconciled."""

    owner: Json
    kind: KindInfo
    token: str

    def kubeconfig(self, server: str) -> str:
        """Return a kubeconfig with the token, whose default namespace is the owner's."""
        context: Json = {"cluster": "proxy", "user": "run"}
        if access.namespace(self.owner):
            context["namespace"] = access.namespace(self.owner)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "run", "user": {"token": self.token}}],
            "contexts": [{"name": "proxy", "context": context}],
            "current-context": "proxy",
        }
        return msgspec.json.encode(config).decode()  # JSON is YAML


class Sessions:
    """The current sessions. A token is valid until its run has ended."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._by_digest: dict[bytes, Session] = {}

    def open(self, owner: Json, kind: KindInfo) -> Session:
        session = Session(owner, kind, self._ids.token().hex())
        self._by_digest[_digest(session.token)] = session
        return session

    def close(self, session: Session) -> None:
        self._by_digest.pop(_digest(session.token), None)

    def find(self, authorization: str) -> Session | None:
        """Return the session of an Authorization header. Tokens are looked up by digest: no timing tells them."""
        scheme, _, token = authorization.partition(" ")
        return self._by_digest.get(_digest(token.strip())) if scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    return blake2b(token.encode(), digest_size=32).digest()
