"""Errors of etcd calls: what happened, and whether a write may have taken effect."""

from __future__ import annotations

from typing import Final

from ostinato.grpc import Code, RpcError


class EtcdError(Exception):
    """A failed call. `may_have_happened`: a write may have taken effect; read its key to find out."""

    def __init__(self, message: str, *, may_have_happened: bool = False) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class Unavailable(EtcdError):  # noqa: N818 - named after the condition
    """No member could answer: no connection, a lost one, or a member without its majority."""


class NoLeader(Unavailable):
    """The member has no leader. The call had no effect."""


class TlsError(Unavailable):
    """A certificate is not accepted, or only one side uses TLS. The call had no effect."""


class DeadlineExceeded(Unavailable):
    """No answer in time."""


class Compacted(EtcdError):  # noqa: N818 - named after the condition
    """The revision has been compacted. `revision`: the oldest one that is readable; 0 if etcd did not say."""

    def __init__(self, message: str, revision: int = 0) -> None:
        super().__init__(message)
        self.revision = revision


class FutureRevision(EtcdError):  # noqa: N818 - named after the condition
    """The revision does not exist yet."""


class Unauthenticated(EtcdError):  # noqa: N818 - named after the condition
    """User or password are wrong or missing, or the token stays invalid."""


class PermissionDenied(EtcdError):  # noqa: N818 - named after the condition
    """The user may not do this."""


class TooManyRequests(EtcdError):  # noqa: N818 - named after the condition
    """etcd has too many requests in progress. The call had no effect."""


class NoSpace(EtcdError):  # noqa: N818 - named after the condition
    """etcd's space quota is exceeded. The call had no effect."""


class RequestTooLarge(EtcdError):  # noqa: N818 - named after the condition
    """The request has too many bytes or operations for etcd."""


class LeaseNotFound(EtcdError):  # noqa: N818 - named after the condition
    """There is no such lease, or it has expired."""


class LeaseExists(EtcdError):  # noqa: N818 - named after the condition
    """A lease has this id already."""


class InvalidRequest(EtcdError):  # noqa: N818 - named after the condition
    """etcd does not accept the request."""


class ProtocolError(EtcdError):
    """The peer's bytes are not those of etcd."""


class WatchCancelled(EtcdError):  # noqa: N818 - named after the condition
    """etcd ended a watch."""


_BY_MESSAGE: Final[dict[str, type[EtcdError]]] = {
    "etcdserver: no leader": NoLeader,
    "etcdserver: mvcc: required revision has been compacted": Compacted,
    "etcdserver: mvcc: required revision is a future revision": FutureRevision,
    "etcdserver: mvcc: database space exceeded": NoSpace,
    "etcdserver: too many requests": TooManyRequests,
    "etcdserver: request is too large": RequestTooLarge,
    "etcdserver: too many operations in txn request": RequestTooLarge,
    "etcdserver: requested lease not found": LeaseNotFound,
    "etcdserver: lease already exists": LeaseExists,
    "etcdserver: invalid auth token": Unauthenticated,
    "etcdserver: user name is empty": Unauthenticated,
    "etcdserver: authentication failed, invalid user ID or password": Unauthenticated,
    "etcdserver: authentication is not enabled": Unauthenticated,
    "etcdserver: permission denied": PermissionDenied,
    "etcdserver: not capable": Unavailable,  # a member that is starting
    "etcdserver: rpc not supported for learner": Unavailable,
}
_BY_CODE: Final[dict[int, type[EtcdError]]] = {
    Code.UNAUTHENTICATED: Unauthenticated,
    Code.PERMISSION_DENIED: PermissionDenied,
    Code.UNAVAILABLE: Unavailable,
    Code.DEADLINE_EXCEEDED: DeadlineExceeded,
    Code.CANCELED: Unavailable,
    Code.UNKNOWN: Unavailable,
    Code.INTERNAL: ProtocolError,
    Code.DATA_LOSS: Unavailable,
}
_UNKNOWN_OUTCOME: Final = frozenset(
    {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELED, Code.UNKNOWN, Code.INTERNAL, Code.ABORTED, Code.DATA_LOSS}
)
_STALE_TOKENS: Final = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")


def etcd_error(error: RpcError, *, is_write: bool) -> EtcdError:
    """Return the error of a failed call."""
    message = str(error)
    kind = _BY_MESSAGE.get(message) if error.is_of_server else None
    if kind is None:
        unknown = error.code in _UNKNOWN_OUTCOME and error.may_have_run
        kind = _BY_CODE.get(error.code, InvalidRequest)
    else:
        unknown = False
    if kind is Compacted:
        return Compacted(message)
    return kind(message, may_have_happened=is_write and unknown)


def is_stale_token(error: RpcError) -> bool:
    """Whether a new token may help."""
    return error.is_of_server and str(error) in _STALE_TOKENS
