"""Audit record: data collected of one request while it is served."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.server.audit.policy import LEVELS, RequestAuditConfig

if TYPE_CHECKING:
    from ostinato.server.request import User
    from ostinato.server.resources.resource import Resource

METADATA: Final = LEVELS.index("Metadata")
REQUEST: Final = LEVELS.index("Request")
REQUEST_RESPONSE: Final = LEVELS.index("RequestResponse")
_logger = logging.getLogger(__name__)


class AuditRecord:
    """Bodies are kept encoded, or as values that are not mutated any more."""

    __slots__ = (
        "annotations",
        "config",
        "constraint",
        "head",
        "impersonated",
        "long_running",
        "object_ref",
        "panic",
        "received",
        "request_object",
        "sensitive",
    )

    def __init__(
        self, config: RequestAuditConfig, head: dict[str, Any], object_ref: dict[str, str] | None, received: str
    ) -> None:
        self.config = config
        self.head = head  # known from the start: id, URI, verb, user, addresses
        self.object_ref = object_ref
        self.received = received
        self.sensitive = False  # bodies are masked
        self.long_running = False
        self.annotations: dict[str, str] = {}
        self.impersonated: User | None = None
        self.constraint = ""  # verb of constrained impersonation
        self.request_object: bytes | None = None
        self.panic = ""  # the exception, for stage Panic

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation. The first value of a key is kept."""
        if self.annotations.setdefault(key, value) != value:
            _logger.warning("audit annotation already set, new value ignored key=%s", key)

    @property
    def wants_request(self) -> bool:
        return self.config.level >= REQUEST

    @property
    def wants_response(self) -> bool:
        return self.config.level >= REQUEST_RESPONSE

    def note_object(self, resource: Resource, obj: dict[str, Any]) -> None:
        """Record the requestObject: decoded and defaulted, encoded here before admission mutates it."""
        reference, metadata = self.object_ref, obj.get("metadata") or {}
        if reference is not None:
            for field in ("namespace", "name", "uid", "resourceVersion"):
                if not reference.get(field) and metadata.get(field):
                    reference[field] = metadata[field]
        if self.wants_request:
            named = {"kind": resource.gvk.kind, "apiVersion": resource.gvk.api_version}
            self.request_object = msgspec.json.encode({**named, **obj, **named})

    def note_patch(self, data: bytes) -> None:
        """Record a patch; one that is neither JSON nor YAML is omitted."""
        if not self.wants_request:
            return
        try:
            self.request_object = msgspec.json.encode(msgspec.json.decode(data))
        except msgspec.DecodeError:
            from ostinato.api.wire import DecodeError  # noqa: PLC0415 - seldom needed
            from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415

            try:
                self.request_object = msgspec.json.encode(decode_yaml(data))
            except DecodeError:
                _logger.info("patch is neither JSON nor YAML, omitted from audit event id=%s", self.head["auditID"])

    def note_options(self, options: dict[str, Any]) -> None:
        """Record DeleteOptions as the requestObject, as kube-apiserver does."""
        if self.wants_request:
            named = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
            self.request_object = msgspec.json.encode({**named, **options, **named})
