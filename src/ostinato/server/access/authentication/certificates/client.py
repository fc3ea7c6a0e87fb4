"""X.509 client certificate authenticator: common name is the user, organizations are the groups."""

from __future__ import annotations

from functools import lru_cache

from ostinato.server.access.authentication.identity import authenticated
from ostinato.server.request import Peer, User

CREDENTIAL = "authentication.kubernetes.io/credential-id"


@lru_cache(maxsize=512)  # one certificate per connection, many requests
def certificate_user(peer: Peer) -> User:
    """The user of a verified client certificate."""
    extra = {CREDENTIAL: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
    return authenticated(User(peer.name, peer.uid, peer.groups, extra))
