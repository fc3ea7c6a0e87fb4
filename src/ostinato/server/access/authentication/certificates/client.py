"""Client certificates: the common name is the user, the organisations are the groups."""

from __future__ import annotations

from functools import lru_cache

from ostinato.server.access.authentication.identity import authenticated
from ostinato.server.request import Peer, User

CREDENTIAL = "authentication.kubernetes.io/credential-id"


@lru_cache(maxsize=512)  # a client shows its certificate once, and asks many times
def certificate_user(peer: Peer) -> User:
    """The user that a valid certificate names."""
    extra = {CREDENTIAL: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
    return authenticated(User(peer.name, peer.uid, peer.groups, extra))
