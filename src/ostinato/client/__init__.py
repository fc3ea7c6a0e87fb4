"""Client of the Kubernetes API: configuration, transports, typed and untyped access to objects.

    from ostinato.client import Client, Config, HttpTransport

    config = Config.load()
    async with Client(HttpTransport(config, world), world=world, namespace=config.namespace) as client:
        async for pod in client.list(Pod):
            ...

Names are imported on first use, so that importing this package is cheap, and a client in the process of its server does
not load an HTTP library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.lazy import lazy_names

if TYPE_CHECKING:
    from ostinato.client.client import Client
    from ostinato.client.config.config import Config
    from ostinato.client.config.error import ConfigError
    from ostinato.client.discovery.mapping import AmbiguousResource, Mapper, NoSuchResource
    from ostinato.client.http.transport import HttpTransport
    from ostinato.client.list_watch import EventStream, ListOptions, ListWatch, RawEvent, WatchOptions, WatchStalled
    from ostinato.client.listing import Items, Listing
    from ostinato.client.patching import JsonPatch, MergePatch, Patch, StrategicMergePatch
    from ostinato.client.subresources.port_forward import PortForward, PortForwardError
    from ostinato.client.subresources.process import Completed, Output, Process
    from ostinato.client.transport.backoff import CONFLICTS, CONTENDED, Backoff
    from ostinato.client.transport.exchange import NoSuchKind
    from ostinato.client.transport.protocol import (
        ConnectionLost,
        Deadline,
        DeadlinePassed,
        RequestTimedOut,
        Transport,
        TransportError,
        Unreachable,
    )
    from ostinato.client.transport.retry import retry_on
    from ostinato.client.views import MetadataOf, PartialObjectMetadata, Unstructured, View
    from ostinato.client.waiting import WaitTimedOut, exists, is_deleted
    from ostinato.client.watch import Watch, WatchEvent

__all__ = [
    "CONFLICTS",
    "CONTENDED",
    "AmbiguousResource",
    "Backoff",
    "Client",
    "Completed",
    "Config",
    "ConfigError",
    "ConnectionLost",
    "Deadline",
    "DeadlinePassed",
    "EventStream",
    "HttpTransport",
    "Items",
    "JsonPatch",
    "ListOptions",
    "ListWatch",
    "Listing",
    "Mapper",
    "MergePatch",
    "MetadataOf",
    "NoSuchKind",
    "NoSuchResource",
    "Output",
    "PartialObjectMetadata",
    "Patch",
    "PortForward",
    "PortForwardError",
    "Process",
    "RawEvent",
    "RequestTimedOut",
    "StrategicMergePatch",
    "Transport",
    "TransportError",
    "Unreachable",
    "Unstructured",
    "View",
    "WaitTimedOut",
    "Watch",
    "WatchEvent",
    "WatchOptions",
    "WatchStalled",
    "exists",
    "is_deleted",
    "retry_on",
]

_HOME = {
    "CONFLICTS": "transport.backoff",
    "CONTENDED": "transport.backoff",
    "AmbiguousResource": "discovery.mapping",
    "Backoff": "transport.backoff",
    "Client": "client",
    "Completed": "subresources.process",
    "Config": "config.config",
    "ConfigError": "config.error",
    "ConnectionLost": "transport.protocol",
    "Deadline": "transport.protocol",
    "DeadlinePassed": "transport.protocol",
    "EventStream": "list_watch",
    "HttpTransport": "http.transport",
    "Items": "listing",
    "JsonPatch": "patching",
    "ListOptions": "list_watch",
    "ListWatch": "list_watch",
    "Listing": "listing",
    "Mapper": "discovery.mapping",
    "MergePatch": "patching",
    "MetadataOf": "views",
    "NoSuchKind": "transport.exchange",
    "NoSuchResource": "discovery.mapping",
    "Output": "subresources.process",
    "PartialObjectMetadata": "views",
    "Patch": "patching",
    "PortForward": "subresources.port_forward",
    "PortForwardError": "subresources.port_forward",
    "Process": "subresources.process",
    "RawEvent": "list_watch",
    "RequestTimedOut": "transport.protocol",
    "StrategicMergePatch": "patching",
    "Transport": "transport.protocol",
    "TransportError": "transport.protocol",
    "Unreachable": "transport.protocol",
    "Unstructured": "views",
    "View": "views",
    "WaitTimedOut": "waiting",
    "Watch": "watch",
    "WatchEvent": "watch",
    "WatchOptions": "list_watch",
    "WatchStalled": "list_watch",
    "exists": "waiting",
    "is_deleted": "waiting",
    "retry_on": "transport.retry",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
