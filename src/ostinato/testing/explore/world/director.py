"""Director of one replica: reports each of its requests and events to the run, and deals the planned faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.api.errors import Expired, Unauthorized
from ostinato.client.transport.protocol import Deadline
from ostinato.controllers.current import current_reconcile
from ostinato.server.faults import AnswerLost, Operation, Proceed
from ostinato.server.request import Answer
from ostinato.server.request.present import error_response
from ostinato.testing.explore.faults.kind import EventHead
from ostinato.testing.explore.points import PointKind

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run

_UNTOUCHED: Final = ("events", "leases", "selfsubjectaccessreviews", "selfsubjectrulesreviews")


STALE: Final = "(any version)"  # marks reads that an older state may answer


class _EventMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = "0"


class _EventObject(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _EventMetadata = msgspec.field(default_factory=_EventMetadata)


class _Event(msgspec.Struct):
    type: str
    object: _EventObject


_decoder: Final = msgspec.json.Decoder(_Event)


class ReplicaDirector:
    def __init__(self, run: Run, replica: Replica, deadline: Deadline | None) -> None:
        """`deadline`: after which the replica sends nothing, as it may no longer be the leader."""
        self._run = run
        self._replica = replica
        self._deadline = deadline
        self._announced: dict[tuple[int, bytes], list[FaultKind]] = {}  # by watch and event that follows its bookmark

    async def request(self, operation: Operation, proceed: Proceed) -> Answer:
        run, replica = self._run, self._replica
        if operation.resource in _UNTOUCHED:
            if operation.resource == "leases" and operation.is_write:
                return await run.renewing(replica, proceed)
            return await proceed()
        if replica.unauthorized and operation.verb != "watch":
            run.requested(replica, operation, 401, _reconcile())
            return error_response(Unauthorized._make("the certificate has expired"))
        kind = _kind(operation)
        point = run.arrive(kind, f"{operation} {STALE}" if operation.stale else str(operation))
        faults = run.due(point)
        reconcile = _reconcile()
        if operation.is_write:
            run.writing += 1
        try:
            answer: Answer | None = None
            for fault in faults:
                answer = answer or await fault.before(run, replica, operation)
            await replica.gate()
            self._check_deadline()
            if answer is None:
                answer = await self._answer(operation, proceed)
                await replica.gate()
            if operation.verb != "watch":
                run.requested(replica, operation, answer.status, reconcile)
            for fault in faults:
                if fault.late:
                    run.show(fault)
                answer = await fault.after(run, replica, operation, answer)
        finally:
            if operation.is_write:
                run.writing -= 1
        return answer

    async def _answer(self, operation: Operation, proceed: Proceed) -> Answer:
        run = self._run
        if operation.verb == "watch":
            await run.lagging(operation)
            if operation.kind in run.expired:
                run.expired.discard(operation.kind)
                return error_response(Expired.of("too old resource version"))
        if operation.stale and run.reads_stale:
            run.reads_stale = False
            return await proceed(await run.server_behind())
        return await proceed()

    def _check_deadline(self) -> None:
        """A process that was paused checks the deadline before it sends."""
        at = None if self._deadline is None else self._deadline()
        if at is not None and self._replica.monotonic() > at:
            raise AnswerLost("not sent: the deadline has passed")

    async def event(self, operation: Operation, line: bytes) -> bytes:
        run, replica = self._run, self._replica
        if replica.dead:
            raise AnswerLost("the process was killed")
        await replica.gate()
        await run.lagging(operation)
        if operation.resource in _UNTOUCHED or not line.startswith(b"{"):
            return b""
        event = _decoder.decode(line)
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            return b""
        metadata = event.object.metadata
        version = int(metadata.resource_version)
        if version <= run.subject.image.version:  # not a change: it was there before
            return b""
        key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        text = f"event {event.type} {operation.kind} {run.objects.stable(key)}"
        faults = self._announced.pop((id(operation), line), None)
        if faults is None:
            faults = run.due(run.arrive(PointKind.EVENT, text))
            head = EventHead(event.object.api_version, event.object.kind, version)
            if first := b"".join([fault.ahead(operation, head) for fault in faults]):
                self._announced[id(operation), line] = faults
                return first
        for fault in faults:
            await fault.event(run, replica, operation)
        run.note(replica.name, "event", text.removeprefix("event "))
        return b""


def _kind(operation: Operation) -> PointKind:
    if operation.is_write:
        return PointKind.WRITE
    return PointKind.LIST if operation.verb == "watch" else PointKind.READ


def _reconcile() -> str:
    found = current_reconcile()
    return "" if found is None else f"{found.controller} {found.request}"
