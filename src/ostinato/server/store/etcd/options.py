"""Options of the store on etcd."""

from __future__ import annotations

from typing import Final

import msgspec

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JSON: Final = "application/json"


class EtcdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a server uses its etcd."""

    media_type: str = PROTOBUF  # in which built-in kinds are written; the other one is read too
    event_ttl: float = 3600.0  # seconds that Events are kept
    compaction_interval: float = 300.0  # seconds; 0: never
