"""gRPC client: calls and streams over HTTP/2, without dependencies."""

from __future__ import annotations

from ostinato.grpc.calls import Stream
from ostinato.grpc.channel import Channel, request_head
from ostinato.grpc.connection import Connection, Limits
from ostinato.grpc.status import Code, RpcError, go_error

__all__ = ["Channel", "Code", "Connection", "Limits", "RpcError", "Stream", "go_error", "request_head"]
