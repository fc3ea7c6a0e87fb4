"""Client of etcd."""

from __future__ import annotations

from ostinato.etcd.settings import EtcdSettings

__all__ = ["EtcdSettings"]
