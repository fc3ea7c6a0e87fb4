"""Auditor: called by the server at each stage of a request.

The policy is evaluated when the user is known, before impersonation and authorization; a request at level None has no
record and no further cost.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.api.errors import InternalError
from ostinato.server.audit import policy
from ostinato.server.audit.backends import Call, Delivery, LogBackend, WebhookBackend
from ostinato.server.audit.counters import AuditCounters
from ostinato.server.audit.event import event_of, user_info
from ostinato.server.audit.masking import is_sensitive
from ostinato.server.audit.record import AuditRecord
from ostinato.server.audit.settings import AuditSettings
from ostinato.server.request import Answer, Request, Response, Stream, User
from ostinato.streams.upgrade import Socket, Upgrade
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.access.attributes import RequestAttributes
    from ostinato.server.request.audit_trail import AuditTrail
    from ostinato.server.request.route import Route

_LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_LONGEST_AGENT: Final = 1024
_TRUNCATED_AGENT: Final = "...TRUNCATED"
_STATUSES: Final = frozenset(
    {"create", "delete", "deletecollection"}
)  # verbs whose successful response may be a Status
_STATUS: Final = ("status", "message", "reason", "details", "code")
_CLOSED_EARLY: Final = {"status": "Success", "message": "Connection closed early", "code": 200}


class Auditor:
    """PolicyError for an invalid policy, StateError if the log cannot be opened."""

    def __init__(self, settings: AuditSettings, world: World, call: Call) -> None:
        assert settings.policy_file is not None
        self._world = world
        self._policy = policy.load(settings.policy_file)
        self.counters = AuditCounters()
        self._deliveries: list[Delivery] = []
        if settings.log is not None:
            log = settings.log
            self._deliveries.append(
                Delivery(LogBackend(log, world), log.mode, log.batching, world.clock, self.counters)
            )
        if settings.webhook is not None:
            hook = settings.webhook
            backend = WebhookBackend(hook, world, call)
            self._deliveries.append(Delivery(backend, hook.mode, hook.batching, world.clock, self.counters))

    async def received(
        self,
        request: Request,
        user: User,
        attributes: RequestAttributes,
        route: Route | None,
        annotations: Mapping[str, str],
    ) -> None:
        """Stage RequestReceived: start the record; InternalError if a blocking-strict backend fails.

        `annotations`: of authentication.
        """
        record = self._begin(request, user, attributes, route)
        if record is None:
            return
        record.annotations.update(annotations)
        if not await self._write(record, "RequestReceived", None, None):
            self.counters.rejected += 1
            raise InternalError.of("failed to store audit event")
        request.audit = record

    def unauthenticated(self, request: Request, attributes: RequestAttributes, route: Route | None) -> None:
        """Start the record of a request that failed authentication: only its response is written."""
        record = self._begin(request, None, attributes, route)
        if record is not None:
            record.head["refused"] = True
            request.audit = record

    def decided(self, request: Request, reason: str, *, allowed: bool) -> None:
        request.annotate("authorization.k8s.io/decision", "allow" if allowed else "forbid")
        request.annotate("authorization.k8s.io/reason", reason)

    async def answered(self, request: Request, answer: Answer) -> Answer:
        """Stages ResponseStarted, ResponseComplete and Panic; returns the response, wrapped if it is a stream."""
        record = request.audit
        assert isinstance(record, AuditRecord)
        response = answer if isinstance(answer, Response) else None
        status = _status_of(record, answer)
        wanted = response if record.wants_response else None
        if "refused" in record.head:
            await self._write(record, "ResponseStarted", status, wanted)
            return answer
        if record.panic:
            await self._write(record, "Panic", status, None)
            return answer
        if record.long_running:
            await self._write(record, "ResponseStarted", status, wanted)
        if isinstance(answer, Stream):
            answer.chunks = _AuditedStream(answer.chunks, lambda: self._write(record, "ResponseComplete", status, None))
        elif isinstance(answer, Upgrade):
            self._at_end(record, answer, status)
        else:
            await self._write(record, "ResponseComplete", status, wanted)
        return answer

    async def abandoned(self, record: AuditTrail) -> None:
        """The client has gone before there was an answer."""
        assert isinstance(record, AuditRecord)
        if record.long_running:
            await self._write(record, "ResponseStarted", _CLOSED_EARLY, None)
        await self._write(record, "ResponseComplete", _CLOSED_EARLY, None)

    async def close(self) -> None:
        """Flush and close the backends."""
        for delivery in self._deliveries:
            await delivery.close()

    def _at_end(self, record: AuditRecord, answer: Upgrade, status: dict[str, Any]) -> None:
        serve = answer.serve

        async def audited(socket: Socket) -> None:
            try:
                await serve(socket)
            finally:
                await self._write(record, "ResponseComplete", status, None)

        answer.serve = audited

    async def _write(
        self, record: AuditRecord, stage: str, status: dict[str, Any] | None, response: Response | None
    ) -> bool:
        """Send an event to every backend; False if a blocking-strict backend failed."""
        if stage in record.config.omitted_stages:
            return True
        at = record.received if stage == "RequestReceived" else self._now()
        self.counters.events += 1
        event = event_of(record, stage, at, status, response)
        written = [await delivery.process(event) for delivery in self._deliveries]
        return all(written)

    def _now(self) -> str:
        return micro_time(self._world.clock.wall())

    def _begin(
        self, request: Request, user: User | None, attributes: RequestAttributes, route: Route | None
    ) -> AuditRecord | None:
        config = self._policy.evaluate(user, attributes)
        self.counters.levels[config.level] += 1
        if not config.level:
            return None
        query = f"?{request.query_string}" if request.query_string else ""
        agent = request.headers.get("user-agent", "")
        head: dict[str, Any] = {
            "auditID": request.headers.get("audit-id") or self._world.ids.uid(),
            "requestURI": request.path + query,
            "verb": attributes.verb,
            "user": user_info(user),
            "sourceIPs": source_addresses(request),
            "userAgent": agent[:_LONGEST_AGENT] + _TRUNCATED_AGENT if len(agent) > _LONGEST_AGENT else agent,
        }
        reference = None
        if route is not None:
            reference = {
                "resource": attributes.resource,
                "namespace": attributes.namespace,
                "name": attributes.name,
                "apiGroup": attributes.group,
                "apiVersion": route.version,
                "subresource": attributes.subresource,
            }
        record = AuditRecord(config, head, reference, self._now())
        record.sensitive = is_sensitive(attributes.group, attributes.resource, attributes.subresource)
        record.long_running = attributes.verb == "watch" or attributes.subresource in _LONG_RUNNING
        return record


class _AuditedStream:
    """A response stream that calls `end` once when it ends, fails or is closed unread."""

    def __init__(self, chunks: AsyncIterator[bytes], end: Callable[[], Awaitable[bool]]) -> None:
        self._chunks = chunks
        self._end: Callable[[], Awaitable[bool]] | None = end

    def __aiter__(self) -> _AuditedStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except BaseException:
            await self._ended()
            raise

    async def aclose(self) -> None:
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()
        await self._ended()

    async def _ended(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            await end()


def micro_time(seconds: float) -> str:
    """Format a time as MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def source_addresses(request: Request) -> list[str]:
    """sourceIPs: X-Forwarded-For and X-Real-Ip, then the address of the connection, which cannot be forged."""
    found: list[str] = []
    for part in request.headers.get("x-forwarded-for", "").split(","):
        address = _address(part.strip())
        if address:
            found.append(address)
    real = _address(request.headers.get("x-real-ip", ""))
    if real and real not in found:
        found.append(real)
    remote = _address(request.remote)
    if remote and (not found or found[-1] != remote):
        found.append(remote)
    return found


def _address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _status_of(record: AuditRecord, answer: Answer) -> dict[str, Any]:
    """The responseStatus: the Status in the response, if it is one, with its code."""
    if record.panic:
        why = f"APIServer panic'd: {record.panic}"
        return {"status": "Failure", "message": why, "reason": "InternalError", "code": 500}
    fields: dict[str, Any] = {}
    if isinstance(answer, Response) and (answer.status >= 400 or record.head["verb"] in _STATUSES):
        value = _decoded(answer)
        if value.get("kind") == "Status":
            fields = {field: value[field] for field in _STATUS if field in value}
    return {**fields, "code": answer.status}


def _decoded(answer: Response) -> dict[str, Any]:
    media = answer.content_type.partition(";")[0]
    try:
        if media == "application/json":
            value = msgspec.json.decode(answer.body)
        elif media == "application/vnd.kubernetes.protobuf":
            from ostinato.api import protobuf  # noqa: PLC0415 - seldom needed

            value = protobuf.decode(answer.body)
        elif media == "application/yaml":
            from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415

            value = decode_yaml(answer.body)
        else:
            return {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
