"""Faults of requests: errors, lost answers, delays. All of them are legal: any server may answer so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ostinato.api.errors import (
    APIError,
    Conflict,
    InternalError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from ostinato.api.status import StatusDetails
from ostinato.server.faults import AnswerLost, Operation
from ostinato.server.request import Answer
from ostinato.server.request.present import error_response
from ostinato.server.webhooks.target import CallError
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.points import Point, PointKind
from ostinato.testing.explore.world.external import ExternalUnavailable

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run

_SLOW: Final = 9.5  # seconds: a webhook may take ten
_NEARLY: Final = 0.95  # of its timeout
_RENEWED: Final = 15.0  # seconds
_REQUESTS: Final = frozenset({PointKind.WRITE, PointKind.READ})


class LostAnswer(FaultKind):
    """A write is done, and its answer is lost; an external call or the review of a webhook likewise."""

    name = "lost-answer"
    late = True
    points = frozenset({PointKind.WRITE, PointKind.EXTERNAL, PointKind.WEBHOOK})
    rank = 1

    async def after(self, run: Run, replica: Replica, operation: Operation, answer: Answer) -> Answer:  # noqa: ARG002
        raise AnswerLost("connection reset by peer")

    def after_call(self, run: Run, replica: Replica) -> None:  # noqa: ARG002
        raise ExternalUnavailable("connection reset by peer")

    async def after_review(self, run: Run, replica: Replica) -> None:  # noqa: ARG002
        raise CallError("read: connection reset by peer")


class ExternalFails(FaultKind):
    """A call of an external system is not done."""

    name = "external-fails"
    points = frozenset({PointKind.EXTERNAL})
    rank = 2

    def before_call(self, run: Run, replica: Replica) -> None:  # noqa: ARG002
        raise ExternalUnavailable("connection refused")


class _ErrorFault(FaultKind):
    """An error in the place of an answer; the request is not processed."""

    error: type[APIError]
    message = ""
    points = _REQUESTS
    rank = 4

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        return error_answer(self.error, operation, self.message)


class ConflictFault(_ErrorFault):
    """The object has been modified."""

    name = "conflict"
    error = Conflict
    message = "the object has been modified; please apply your changes to the latest version and try again"
    points = frozenset({PointKind.WRITE})
    rank = 2

    @classmethod
    def applies(cls, point: Point) -> bool:
        return super().applies(point) and point.text.split(" ")[0] in ("update", "patch", "apply", "delete")


class TooManyFault(_ErrorFault):
    """429 with Retry-After."""

    name = "too-many-requests"
    error = TooManyRequests

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        return error_answer(self.error, operation, "too many requests, please try again later").with_headers(
            [("Retry-After", "1")]
        )


class InternalFault(_ErrorFault):
    name = "internal-error"
    error = InternalError


class UnavailableFault(_ErrorFault):
    """The server is about to stop."""

    name = "unavailable"
    error = ServiceUnavailable


class TimeoutFault(_ErrorFault):
    """504: the server gave up; the write is done nevertheless."""

    name = "timeout"
    late = True
    error = Timeout
    points = frozenset({PointKind.WRITE})

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        return None

    async def after(self, run: Run, replica: Replica, operation: Operation, answer: Answer) -> Answer:  # noqa: ARG002
        return error_answer(self.error, operation, "request did not complete within the allotted timeout")


class CredentialsFault(_ErrorFault):
    """401: a token or certificate has expired; the next request has a new one."""

    name = "credentials-expired"
    error = Unauthorized
    rank = 6


class CertificateFault(CredentialsFault):
    """401 to every request of the process until its certificate is renewed; watches continue."""

    name = "certificate-expired"
    message = "the certificate has expired"
    points = frozenset({PointKind.WRITE})

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:
        replica.unauthorized = True
        run.later(_RENEWED, replica.renew_certificate)
        return error_answer(self.error, operation, self.message)


class WebhookFault(_ErrorFault):
    """A webhook is not reachable: that of others for a write of the operator, or the operator's own."""

    name = "webhook-fails"
    error = InternalError
    message = 'failed calling webhook "policy.example.com": connect: connection refused'
    points = frozenset({PointKind.WRITE, PointKind.WEBHOOK})
    rank = 6

    async def before_review(self, run: Run, replica: Replica, seconds: int) -> None:  # noqa: ARG002
        raise CallError("connect: connection refused")


class WebhookSlow(FaultKind):
    """A webhook takes nearly as long as it may: that of others, or the operator's own."""

    name = "webhook-slow"
    points = frozenset({PointKind.WRITE, PointKind.WEBHOOK})
    rank = 6

    async def before_review(self, run: Run, replica: Replica, seconds: int) -> None:  # noqa: ARG002
        await run.clock.sleep(seconds * _NEARLY)

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        await run.clock.sleep(_SLOW)
        return None


def error_answer(error: type[APIError], operation: Operation, message: str = "") -> Answer:
    """Return the answer of a server that reports an error about an object."""
    details = StatusDetails(name=operation.name, group=operation.group, kind=operation.resource)
    return error_response(error._make(message or f"{operation}: injected fault", details))


KINDS = (
    LostAnswer,
    ExternalFails,
    ConflictFault,
    TooManyFault,
    InternalFault,
    UnavailableFault,
    TimeoutFault,
    CredentialsFault,
    CertificateFault,
    WebhookFault,
    WebhookSlow,
)
