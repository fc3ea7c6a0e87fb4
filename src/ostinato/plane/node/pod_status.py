"""The API status of a Pod, computed from the records of its containers. Pure functions; see `pod_status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
    ResourceRequirements,
    VolumeMountStatus,
)
from ostinato.plane.node.containers.allocation import PENDING, PendingResize
from ostinato.plane.node.containers.container_record import ContainerRecord, Waiting, should_restart, terminated
from ostinato.plane.node.pod_sandbox import PodSandbox

_CREATING: Final = Waiting("ContainerCreating")
_INITIALIZING: Final = Waiting("PodInitializing")
_RESIZING: Final = "PodResizeInProgress"  # condition that exists only while a container is being resized
_TEMPORARY: Final = (_RESIZING, PENDING)


class PodWorkerState(msgspec.Struct, kw_only=True, eq=False):
    """State of a Pod beside its containers; owned by its pod worker.

    - `is_terminated`: all containers have ended and none will be restarted.
    - `restarting_all`: whether all containers are being restarted in place; None if they never were.
    - `details`: whether container statuses include resources and volume mounts.
    - `pending_resize`: why the resources of the spec are not allocated.
    - `failure`: phase, reason and message set by the node (eviction, deadline); overrides the containers' phase.
    """

    sandbox: PodSandbox
    started_at: Time
    is_terminated: bool = False
    restarting_all: bool | None = None
    details: bool = False
    pending_resize: PendingResize | None = None
    failure: tuple[str, str, str] | None = None


def pod_status(pod: Pod, records: Mapping[str, ContainerRecord], state: PodWorkerState, now: Time) -> PodStatus:
    """Return the status that the node reports, without the conditions of other writers; `merged` adds these."""
    init = [_container_status(each, pod, state) for each in records.values() if each.role in ("init", "sidecar")]
    main = [_container_status(each, pod, state) for each in records.values() if each.role == "main"]
    ephemeral = [_container_status(each, pod, state) for each in records.values() if each.role == "ephemeral"]
    phase = final_phase = phase_of(pod, records.values(), state.is_terminated)
    reason = message = None
    if state.failure is not None:
        phase, reason, message = state.failure[0], state.failure[1] or None, state.failure[2] or None
        final_phase = phase
    elif state.is_terminated and phase not in ("Succeeded", "Failed"):
        phase = "Failed"
    if state.is_terminated:
        _mark_unknown(pod, records.values(), init, main)
    sandbox = state.sandbox
    status = PodStatus(
        phase=phase,
        reason=reason,
        message=message,
        host_ip=next(iter(sandbox.host_ips), None),
        host_ips=[HostIP(ip=each) for each in sandbox.host_ips],
        pod_ip=next(iter(sandbox.ips), None),
        pod_ips=[PodIP(ip=each) for each in sandbox.ips],
        start_time=state.started_at,
        observed_generation=pod.metadata.generation or None,
        qos_class=pod.status.qos_class,
        init_container_statuses=init,
        container_statuses=main,
        ephemeral_container_statuses=ephemeral,
    )
    status.conditions = _conditions(pod, records, final_phase, state, now)
    return status


def phase_of(pod: Pod, records: Iterable[ContainerRecord], is_terminated: bool = False) -> str:
    """Return the phase of a Pod. `is_terminated`: no container will be restarted."""
    policy = pod.spec.restart_policy or "Always"
    records = list(records)
    initialized = has_started(records)
    pending = waiting = running = ended = succeeded = 0
    for record in records:
        if record.role == "init" and not initialized:
            if record.exit is None or record.exit.code != 0:
                if record.exit is not None and not should_restart(record, policy):
                    return "Failed"
                pending += 1
        elif record.role == "sidecar":
            running += record.is_running
            pending += not record.is_started and record.exit is None and not initialized
        elif record.role == "main":
            if record.in_post_start:
                waiting += record.last_termination is None
                ended += record.last_termination is not None
            elif record.is_running:
                running += 1
            elif record.exit is not None:
                ended += 1
                succeeded += record.exit.code == 0
            elif record.last_termination is not None:
                ended += 1
            else:
                waiting += 1
    if pending or waiting:
        return "Pending"
    if running:
        return "Running"
    if not is_terminated and any(_will_restart(record, policy) for record in records):
        return "Running"
    return "Succeeded" if ended == succeeded else "Failed"


def has_started(records: Iterable[ContainerRecord]) -> bool:
    """Return whether a main container has been started."""
    return any(
        each.role == "main" and (each.instance is not None or (each.last_termination is not None and not each.is_reset))
        for each in records
    )


def _will_restart(record: ContainerRecord, policy: str) -> bool:
    if record.role != "main":
        return False
    if record.exit is None:
        return record.last_termination is not None
    return should_restart(record, policy)


def _mark_unknown(
    pod: Pod, records: Iterable[ContainerRecord], init: list[ContainerStatus], main: list[ContainerStatus]
) -> None:
    """Give containers of a terminated Pod without a known exit the state ContainerStatusUnknown."""
    records = list(records)
    last = next((each for each in reversed(records) if each.role in ("init", "sidecar")), None)
    initialized = (
        not pod.spec.init_containers
        or has_started(records)
        or (last is not None and last.exit is not None and last.exit.code == 0)
    )
    tried = max((number for number, each in enumerate(init) if each.state and not each.state.waiting), default=0)
    for status in [*(main if initialized else ()), *init[: tried + 1]]:
        if status.state is None or status.state.terminated is None:
            status.state = ContainerState(
                terminated=ContainerStateTerminated(
                    exit_code=137,
                    reason="ContainerStatusUnknown",
                    message="The container could not be located when the pod was terminated",
                )
            )


def _container_status(record: ContainerRecord, pod: Pod, pod_state: PodWorkerState) -> ContainerStatus:
    running = None if record.in_post_start else record.instance
    before = record.last_termination
    state = ContainerState()
    is_between = record.is_replaced and record.waiting is None and not pod_state.is_terminated
    if running is not None and (running.exit is None or is_between):
        # A replaced container stays `running`: the server rejects the update of a terminated container.
        state.running = ContainerStateRunning(started_at=running.started_at)
    elif record.in_post_start and before is not None:
        state.terminated = before
    elif running is None or (record.waiting is not None and not pod_state.is_terminated):
        waiting = record.waiting or _waiting(pod)
        state.waiting = ContainerStateWaiting(reason=waiting.reason, message=waiting.message or None)
    else:
        assert running.exit is not None
        state.terminated = terminated(running, running.exit, record.termination_message)
    if state.waiting is not None and running is not None and running.exit is not None:
        before = terminated(running, running.exit, record.termination_message)
    ready = record.is_ready
    if record.role == "init":
        ready = record.exit is not None and record.exit.code == 0
    elif record.role == "ephemeral":
        ready = False
    status = ContainerStatus(
        name=record.name,
        image=(running.image if running is not None else "") or record.spec.image or "",
        image_id=running.image_id if running is not None else "",
        container_id=running.id if running is not None else None,
        ready=ready,
        started=None if record.role == "ephemeral" else record.is_started,
        restart_count=record.restart_count,
        state=state,
        last_state=ContainerState(terminated=before),
        user=running.user if running is not None else None,
    )
    if pod_state.details and record.role != "ephemeral":
        _add_details(status, record)
    return status


def _add_details(status: ContainerStatus, record: ContainerRecord) -> None:
    """Add allocated resources and volume mounts."""
    desired = record.spec.resources
    actual = record.resources if record.is_running else desired
    status.resources = ResourceRequirements() if actual is None else actual
    status.allocated_resources = {} if desired is None else dict(desired.requests)
    status.volume_mounts = [
        VolumeMountStatus(
            name=each.name,
            mount_path=each.mount_path,
            read_only=each.read_only,
            recursive_read_only=(each.recursive_read_only or "Disabled") if each.read_only else None,
        )
        for each in record.spec.volume_mounts
    ]


def _waiting(pod: Pod) -> Waiting:
    """Return the waiting reason of a container that was never started."""
    return _INITIALIZING if pod.spec.init_containers else _CREATING


def _conditions(
    pod: Pod, records: Mapping[str, ContainerRecord], phase: str, state: PodWorkerState, now: Time
) -> list[PodCondition]:
    ready = _containers_ready(records.values(), phase)
    found = {
        "PodReadyToStartContainers": _TRUE if state.sandbox.is_ready else _Condition("False"),
        "Initialized": _initialized(records.values(), phase),
        "Ready": _with_gates(pod, ready),
        "ContainersReady": ready,
        "PodScheduled": _TRUE,
    }
    if state.details and any(record.needs_resize for record in records.values()):
        error = next((record.resize_error for record in records.values() if record.resize_error), "")
        found[_RESIZING] = _Condition("True", "Error" if error else "", error)
    if state.restarting_all is not None:
        found["AllContainersRestarting"] = _Condition(str(state.restarting_all))
    before = {each.type: each for each in pod.status.conditions}
    generation = pod.metadata.generation or None
    conditions = []
    for name, new in found.items():
        old = before.get(name)
        stays = old is not None and old.status == new.status
        conditions.append(
            PodCondition(
                type=name,
                status=new.status,
                reason=new.reason or None,
                message=new.message or None,
                observed_generation=generation,
                last_transition_time=old.last_transition_time if stays and old is not None else now,
            )
        )
    if state.pending_resize is not None and not state.is_terminated:
        conditions.append(_pending(state.pending_resize))
    return conditions


def _pending(resize: PendingResize) -> PodCondition:
    return PodCondition(
        type=PENDING,
        status="True",
        reason=resize.reason,
        message=resize.message,
        observed_generation=resize.generation or None,
        last_probe_time=resize.evaluated,
        last_transition_time=resize.since,
    )


class _Condition(msgspec.Struct, frozen=True):
    status: str
    reason: str = ""
    message: str = ""


_TRUE: Final = _Condition("True")


def _containers_ready(records: Iterable[ContainerRecord], phase: str) -> _Condition:
    if phase == "Succeeded":
        return _Condition("False", "PodCompleted")
    if phase == "Failed":
        return _Condition("False", "PodFailed")
    unready = [each.name for each in records if each.role in ("main", "sidecar") and not each.is_ready]
    if unready:
        return _Condition("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return _TRUE


def _initialized(records: Iterable[ContainerRecord], phase: str) -> _Condition:
    if phase == "Succeeded":
        return _Condition("True", "PodCompleted")
    records = list(records)
    if has_started(records):
        return _TRUE
    incomplete = [
        each.name
        for each in records
        if (each.role == "init" and (each.exit is None or each.exit.code != 0))
        or (each.role == "sidecar" and not each.is_started)
    ]
    if incomplete:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        return _Condition("False", "ContainersNotInitialized", message)
    return _TRUE


def _with_gates(pod: Pod, ready: _Condition) -> _Condition:
    """Apply readiness gates to the Ready condition."""
    if ready.status != "True":
        return ready
    statuses = {each.type: each.status for each in pod.status.conditions}
    messages = []
    for gate in pod.spec.readiness_gates:
        status = statuses.get(gate.condition_type)
        if status is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            messages.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    return _Condition("False", "ReadinessGatesNotReady", ", ".join(messages)) if messages else ready


def merged(old: PodStatus, new: PodStatus) -> PodStatus:
    """Return the new status with the conditions and fields of other writers from the old one."""
    own = {each.type for each in new.conditions}
    kept = [each for each in old.conditions if each.type not in own and each.type not in _TEMPORARY]
    return msgspec.structs.replace(
        new,
        conditions=[*new.conditions, *kept],
        nominated_node_name=old.nominated_node_name,
        resize=old.resize,
        resource_claim_statuses=old.resource_claim_statuses,
        extended_resource_claim_status=old.extended_resource_claim_status,
        resources=old.resources,
        allocated_resources=old.allocated_resources,
    )
