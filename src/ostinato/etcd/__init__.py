"""Client of etcd: calls with failover, typed errors, and watches that survive the loss of members."""

from __future__ import annotations

from ostinato.etcd import compare, op
from ostinato.etcd.client import Alarm, EtcdClient, Lease, Member, Status
from ostinato.etcd.errors import (
    Compacted,
    DeadlineExceeded,
    EtcdError,
    FutureRevision,
    InvalidRequest,
    LeaseExists,
    LeaseNotFound,
    NoLeader,
    NoSpace,
    PermissionDenied,
    ProtocolError,
    RequestTooLarge,
    TlsError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    WatchCancelled,
)
from ostinato.etcd.messages import Compare, DeleteResult, KeyValue, Op, PutResult, RangeResult, TxnResult, prefix_end
from ostinato.etcd.settings import EtcdSettings
from ostinato.etcd.watch import Event, Watch, WatchBatch
from ostinato.etcd.watch_stream import WatchStream

__all__ = [
    "Alarm",
    "Compacted",
    "Compare",
    "DeadlineExceeded",
    "DeleteResult",
    "EtcdClient",
    "EtcdError",
    "EtcdSettings",
    "Event",
    "FutureRevision",
    "InvalidRequest",
    "KeyValue",
    "Lease",
    "LeaseExists",
    "LeaseNotFound",
    "Member",
    "NoLeader",
    "NoSpace",
    "Op",
    "PermissionDenied",
    "ProtocolError",
    "PutResult",
    "RangeResult",
    "RequestTooLarge",
    "Status",
    "TlsError",
    "TooManyRequests",
    "TxnResult",
    "Unauthenticated",
    "Unavailable",
    "Watch",
    "WatchBatch",
    "WatchCancelled",
    "WatchStream",
    "compare",
    "op",
    "prefix_end",
]
