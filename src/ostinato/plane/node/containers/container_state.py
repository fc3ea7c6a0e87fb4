"""What an agent remembers of each container of a Pod, and when it is to be started again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, ContainerStateTerminated, ContainerStatus, EphemeralContainer, Pod
from ostinato.plane.node.runtimes import Exit, RuntimeContainer

Role = Literal["init", "sidecar", "main", "ephemeral"]

RETRY_AFTER: Final = 10.0  # seconds, of a start that failed
FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 300.0
_ALL: Final = "RestartingAllContainers"
_REMOVED: Final = "The container is removed because RestartAllContainers in place"
_FORGIVEN_AFTER: Final = 2 * LONGEST_BACKOFF  # seconds of a good run after which earlier failures do not count


class Waiting(msgspec.Struct, frozen=True):
    """Why a container does not run."""

    reason: str
    message: str = ""


class Record(msgspec.Struct, eq=False):
    """One container of one Pod.

    - `running` is the container that was started last, whether it runs or has ended; None before the first.
    - `before` is how the one before it ended.
    - `waiting` says why it is not running, where it is to run.
    """

    name: str
    role: Role
    spec: Container
    running: RuntimeContainer | None = None
    before: ContainerStateTerminated | None = None
    restarts: int = 0
    waiting: Waiting | None = None
    backoff: float = 0.0  # seconds that the next start waits, counted from the end
    failed_at: Time | None = None  # when a start failed, since the last that did not
    again: float = RETRY_AFTER  # seconds that the next start waits, counted from one that failed
    hooking: bool = False  # it runs, but what is to be done after its start is not
    probed_ready: bool = True  # as far as its probes know
    probed_started: bool = True
    anew: bool = False  # it is to run as if it never had
    replaced: bool = False  # it is being ended for it is to be another: it comes back, whatever its policy
    words: str = ""  # the last, of the one that has ended

    @property
    def is_running(self) -> bool:
        return self.running is not None and self.running.exit is None

    @property
    def exit(self) -> Exit | None:
        """How it ended; None if it runs, or never ran."""
        return None if self.running is None else self.running.exit

    @property
    def is_ready(self) -> bool:
        running = self.running
        return running is not None and running.exit is None and running.ready and self.probed_ready and self.is_started

    @property
    def is_started(self) -> bool:
        """Whether it has got past its start."""
        return self.is_running and self.probed_started and not self.hooking

    def due(self) -> Time | None:
        """When it may be started; None if it may now."""
        if self.failed_at is not None:
            return self.failed_at + timedelta(seconds=self.again)
        ended = self.exit
        return None if ended is None or self.backoff == 0 else ended.at + timedelta(seconds=self.backoff)

    def failed(self, waiting: Waiting, now: Time, again: float | None = None) -> None:
        """It could not be started. `again`: the seconds after which that is tried again."""
        self.waiting = waiting
        self.failed_at = now
        self.again = RETRY_AFTER if again is None else again

    def started(self, running: RuntimeContainer) -> None:
        """It was started, for the first time or again."""
        ended = self.exit
        if self.running is not None:
            self.restarts += 1
            assert ended is not None, "a container is started when the one before it has ended"
            self.before = terminated(self.running, ended, self.words)
            ran = (ended.at - self.running.started_at).total_seconds()
            forgiven = ran >= _FORGIVEN_AFTER
            self.backoff = FIRST_BACKOFF if forgiven or not self.backoff else min(2 * self.backoff, LONGEST_BACKOFF)
        self.running = running
        self.waiting = self.failed_at = None
        self.replaced = self.anew = False
        self.words = ""

    def begin_anew(self) -> None:
        """All of the Pod begins anew: what has run counts no more."""
        if self.running is not None:
            self.restarts += 1
            self.before = ContainerStateTerminated(exit_code=137, reason=_ALL, message=_REMOVED)
        self.running = self.waiting = self.failed_at = None
        self.backoff, self.words, self.anew = 0.0, "", True


def terminated(running: RuntimeContainer, ended: Exit, words: str) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        container_id=running.id,
        exit_code=ended.code,
        finished_at=ended.at,
        message=words or ended.message or None,
        reason=ended.reason or ("Completed" if ended.code == 0 else "Error"),
        started_at=running.started_at,
    )


def records_of(pod: Pod) -> dict[str, Record]:
    """A record for each container, in the order in which they are started. What a status says of them is remembered."""
    spec, status = pod.spec, pod.status
    told = {
        each.name: each
        for group in (status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses)
        for each in group
    }
    records = {}
    for container in spec.init_containers:
        role: Role = "sidecar" if container.restart_policy == "Always" else "init"
        records[container.name] = Record(container.name, role, container)
    for container in spec.containers:
        records[container.name] = Record(container.name, "main", container)
    for ephemeral in spec.ephemeral_containers:
        records[ephemeral.name] = ephemeral_record(ephemeral)
    for record in records.values():
        known = told.get(record.name)
        if known is not None:
            _remember(record, known)
    return records


def ephemeral_record(container: EphemeralContainer) -> Record:
    ordinary = Container(**{name: getattr(container, name) for name in Container.__struct_fields__})
    return Record(container.name, "ephemeral", ordinary)


def _remember(record: Record, known: ContainerStatus) -> None:
    record.restarts = known.restart_count
    if known.last_state is not None:
        record.before = known.last_state.terminated


def asks_for_all(record: Record) -> bool:
    """Whether a container has ended in a way that has all of its Pod begin anew."""
    return record.exit is not None and _action(record, record.exit) == "RestartAllContainers"


def restarts(record: Record, policy: str) -> bool:
    """Whether a container that has ended is to run again, by the policy of its Pod and its own."""
    ended = record.exit
    assert ended is not None, "only what has ended can be started again"
    if record.role == "ephemeral":
        return False
    if record.replaced:
        return True
    if record.role == "sidecar":
        return True
    if action := _action(record, ended):
        return action == "Restart"
    policy = record.spec.restart_policy or policy
    if record.role == "init" and ended.code == 0:
        return False
    return policy == "Always" or (policy == "OnFailure" and ended.code != 0)


def _action(record: Record, ended: Exit) -> str:
    """What the first of the container's own rules that is about this end says, "" if none is."""
    for rule in record.spec.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and (ended.code in codes.values) == (codes.operator == "In"):
            return rule.action
    return ""
