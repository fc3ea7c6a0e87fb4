"""The agent's record of each container of a Pod, and the rules for restarting it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import (
    Container,
    ContainerStateTerminated,
    ContainerStatus,
    EphemeralContainer,
    Pod,
    ResourceRequirements,
)
from ostinato.plane.node.runtimes import Exit, RuntimeContainer

Role = Literal["init", "sidecar", "main", "ephemeral"]

START_RETRY: Final = 10.0  # seconds between a failed start and the next
FIRST_BACKOFF: Final = 10.0
MAX_BACKOFF: Final = 300.0
_RESTART_ALL_REASON: Final = "RestartingAllContainers"
_RESTART_ALL_MESSAGE: Final = "The container is removed because RestartAllContainers in place"
_BACKOFF_RESET_AFTER: Final = 2 * MAX_BACKOFF  # seconds of running after which the back-off starts over


class Waiting(msgspec.Struct, frozen=True):
    """Reason and message of a container that waits to be started."""

    reason: str
    message: str = ""


class ContainerRecord(msgspec.Struct, eq=False):
    """One container of a Pod.

    - `instance`: the container that was started last, running or exited; None before the first start.
    - `last_termination`: how the instance before it ended.
    - `waiting`: why the container is not running, if it should be.
    """

    name: str
    role: Role
    spec: Container
    instance: RuntimeContainer | None = None
    last_termination: ContainerStateTerminated | None = None
    restart_count: int = 0
    waiting: Waiting | None = None
    backoff: float = 0.0  # seconds between the exit and the next start
    start_failed_at: Time | None = None  # since the last successful start
    start_retry_after: float = START_RETRY  # seconds between a failed start and the next
    in_post_start: bool = False  # running, but its postStart hook has not finished
    passed_readiness: bool = True  # result of the readiness probe
    passed_startup: bool = True  # result of the startup probe
    is_reset: bool = False  # to be started as if it had never run (RestartAllContainers)
    is_replaced: bool = False  # being stopped because its image changed: restarted regardless of its policy
    stays_ready: bool = False  # while it is replaced: until its successor has started, or has failed to
    termination_message: str = ""  # of the exited instance
    resources: ResourceRequirements | None = None  # of the running instance
    resize_error: str = ""  # why the last resize failed

    @property
    def is_running(self) -> bool:
        return self.instance is not None and self.instance.exit is None

    @property
    def exit(self) -> Exit | None:
        """How the instance ended; None if it is running or was never started."""
        return None if self.instance is None else self.instance.exit

    @property
    def is_ready(self) -> bool:
        instance = self.instance
        if instance is None:
            return False
        if instance.exit is not None:
            return self.stays_ready
        return instance.ready and self.passed_readiness and self.is_started

    @property
    def is_started(self) -> bool:
        """Whether it is running and its startup probe and postStart hook have succeeded."""
        return self.is_running and self.passed_startup and not self.in_post_start

    @property
    def needs_resize(self) -> bool:
        """Whether the running instance has other resources than the Pod's spec says."""
        actual, desired = self.resources or ResourceRequirements(), self.spec.resources or ResourceRequirements()
        return self.is_running and not self.is_replaced and actual != desired

    def replace(self) -> None:
        """Record that it is going to be stopped, and started again whatever its restart policy is.

        Without a readiness probe it stays ready meanwhile: kubelet reports the successor next.
        """
        self.is_replaced = True
        self.stays_ready = self.is_ready and self.spec.readiness_probe is None

    def next_start(self) -> Time | None:
        """Return when it may be started; None if immediately."""
        if self.start_failed_at is not None:
            return self.start_failed_at + timedelta(seconds=self.start_retry_after)
        ended = self.exit
        return None if ended is None or self.backoff == 0 else ended.at + timedelta(seconds=self.backoff)

    def record_start_failure(self, waiting: Waiting, now: Time, retry_after: float | None = None) -> None:
        """Record a failed start. `retry_after`: seconds until the next try. Defaults to `START_RETRY`."""
        self.waiting = waiting
        self.stays_ready = False
        self.start_failed_at = now
        self.start_retry_after = START_RETRY if retry_after is None else retry_after

    def record_start(self, instance: RuntimeContainer) -> None:
        """Record a successful start or restart."""
        ended = self.exit
        if self.instance is not None:
            self.restart_count += 1
            assert ended is not None, "a container is restarted after its exit"
            self.last_termination = terminated(self.instance, ended, self.termination_message)
            ran = (ended.at - self.instance.started_at).total_seconds()
            resets = ran >= _BACKOFF_RESET_AFTER
            self.backoff = FIRST_BACKOFF if resets or not self.backoff else min(2 * self.backoff, MAX_BACKOFF)
        self.instance = instance
        self.resources = self.spec.resources
        self.waiting = self.start_failed_at = None
        self.is_replaced = self.stays_ready = self.is_reset = False
        self.termination_message = ""

    def reset(self) -> None:
        """Prepare the restart of all containers of the Pod: clear the instance and the back-off."""
        if self.instance is not None:
            self.restart_count += 1
            self.last_termination = ContainerStateTerminated(
                exit_code=137, reason=_RESTART_ALL_REASON, message=_RESTART_ALL_MESSAGE
            )
        self.instance = self.waiting = self.start_failed_at = None
        self.backoff, self.termination_message, self.is_reset = 0.0, "", True


def terminated(instance: RuntimeContainer, ended: Exit, message: str) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        container_id=instance.id,
        exit_code=ended.code,
        finished_at=ended.at,
        message=message or ended.message or None,
        reason=ended.reason or ("Completed" if ended.code == 0 else "Error"),
        started_at=instance.started_at,
    )


def records_of(pod: Pod) -> dict[str, ContainerRecord]:
    """Return a record per container in start order, with restart counts and last terminations from the status."""
    spec, status = pod.spec, pod.status
    statuses = {
        each.name: each
        for group in (status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses)
        for each in group
    }
    records = {}
    for container in spec.init_containers:
        role: Role = "sidecar" if container.restart_policy == "Always" else "init"
        records[container.name] = ContainerRecord(container.name, role, container)
    for container in spec.containers:
        records[container.name] = ContainerRecord(container.name, "main", container)
    for ephemeral in spec.ephemeral_containers:
        records[ephemeral.name] = ephemeral_record(ephemeral)
    for record in records.values():
        known = statuses.get(record.name)
        if known is not None:
            _restore(record, known)
    return records


def ephemeral_record(container: EphemeralContainer) -> ContainerRecord:
    ordinary = Container(**{name: getattr(container, name) for name in Container.__struct_fields__})
    return ContainerRecord(container.name, "ephemeral", ordinary)


def _restore(record: ContainerRecord, known: ContainerStatus) -> None:
    record.restart_count = known.restart_count
    record.resources = known.resources
    if known.last_state is not None:
        record.last_termination = known.last_state.terminated


def requests_restart_of_all(record: ContainerRecord) -> bool:
    """Return whether the container's exit matches a rule with the action RestartAllContainers."""
    return record.exit is not None and _action(record, record.exit) == "RestartAllContainers"


def should_restart(record: ContainerRecord, policy: str) -> bool:
    """Return whether an exited container is restarted. `policy`: restartPolicy of the Pod."""
    ended = record.exit
    assert ended is not None, "only exited containers are restarted"
    if record.role == "ephemeral":
        return False
    if record.is_replaced:
        return True
    if record.role == "sidecar":
        return True
    if action := _action(record, ended):
        return action == "Restart"
    policy = record.spec.restart_policy or policy
    if record.role == "init" and ended.code == 0:
        return False
    return policy == "Always" or (policy == "OnFailure" and ended.code != 0)


def _action(record: ContainerRecord, ended: Exit) -> str:
    """Return the action of the first restart rule that matches the exit code; empty if none matches."""
    for rule in record.spec.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and (ended.code in codes.values) == (codes.operator == "In"):
            return rule.action
    return ""
