"""Audit trail: the part of a request's audit event that the stages of the request fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ostinato.server.request.messages import User
    from ostinato.server.resources.resource import Resource


class AuditTrail(Protocol):
    """Implemented by `audit.record.AuditRecord`."""

    impersonated: User | None
    constraint: str  # the verb that allowed constrained impersonation
    panic: str  # the error of a request that failed with an internal error
    sensitive: bool  # bodies are masked

    @property
    def wants_request(self) -> bool:
        """Whether the event includes the request body."""

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation. The first value of a key is kept."""

    def note_object(self, resource: Resource, obj: dict[str, Any]) -> None:
        """Record the object that the client sent, defaulted."""

    def note_patch(self, data: bytes) -> None:
        """Record a patch."""

    def note_options(self, options: dict[str, Any]) -> None:
        """Record DeleteOptions."""
