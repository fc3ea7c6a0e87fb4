"""The status of a Pod, made of what its node knows of its containers. Pure functions; see `generated`."""

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
from ostinato.plane.node.containers.container_state import Record, Waiting, restarts, terminated

_CREATING: Final = Waiting("ContainerCreating")
_INITIALIZING: Final = Waiting("PodInitializing")


class Knowledge(msgspec.Struct, kw_only=True, eq=False):
    """What a node knows of a Pod, beside its containers.

    - `end`: phase, reason and message of a Pod that the node has given up; they win over what containers say.
    - `has_sandbox`: whether the Pod has what its containers run in.
    - `is_gone`: all of it has ended, and nothing of it will be started again.
    - `restarting_all`: whether all its containers are being restarted together; None if they never were.
    - `details`: whether resources and mounts of containers are told.
    """

    host_ip: str
    started_at: Time
    pod_ip: str = ""
    has_sandbox: bool = False
    is_gone: bool = False
    restarting_all: bool | None = None
    details: bool = False
    end: tuple[str, str, str] | None = None


def generated(pod: Pod, records: Mapping[str, Record], known: Knowledge, now: Time) -> PodStatus:
    """The status to be written. Conditions that are others' are left out; `merged` keeps them."""
    init = [_status(each, pod, known) for each in records.values() if each.role in ("init", "sidecar")]
    main = [_status(each, pod, known) for each in records.values() if each.role == "main"]
    ephemeral = [_status(each, pod, known) for each in records.values() if each.role == "ephemeral"]
    phase = lasting = phase_of(pod, records.values(), known.is_gone)
    reason = message = None
    if known.end is not None:
        phase, reason, message = known.end[0], known.end[1] or None, known.end[2] or None
        lasting = phase
    elif known.is_gone and phase not in ("Succeeded", "Failed"):
        phase = "Failed"
    if known.is_gone:
        _mark_unknown(pod, records.values(), init, main)
    status = PodStatus(
        phase=phase,
        reason=reason,
        message=message,
        host_ip=known.host_ip or None,
        host_ips=[HostIP(ip=known.host_ip)] if known.host_ip else [],
        pod_ip=known.pod_ip or None,
        pod_ips=[PodIP(ip=known.pod_ip)] if known.pod_ip else [],
        start_time=known.started_at,
        observed_generation=pod.metadata.generation or None,
        qos_class=pod.status.qos_class,
        init_container_statuses=init,
        container_statuses=main,
        ephemeral_container_statuses=ephemeral,
    )
    status.conditions = _conditions(pod, records, lasting, known, now)
    return status


def phase_of(pod: Pod, records: Iterable[Record], is_gone: bool = False) -> str:
    """The phase, by what has become of the containers; of a Pod that is gone, none of them comes back."""
    policy = pod.spec.restart_policy or "Always"
    records = list(records)
    initialised = has_begun(records)
    pending = waiting = running = ended = succeeded = 0
    for record in records:
        if record.role == "init" and not initialised:
            if record.exit is None or record.exit.code != 0:
                if record.exit is not None and not restarts(record, policy):
                    return "Failed"
                pending += 1
        elif record.role == "sidecar":
            running += record.is_running
            pending += not record.is_started and record.exit is None and not initialised
        elif record.role == "main":
            if record.hooking:
                waiting += record.before is None
                ended += record.before is not None
            elif record.is_running:
                running += 1
            elif record.exit is not None:
                ended += 1
                succeeded += record.exit.code == 0
            elif record.before is not None:
                ended += 1
            else:
                waiting += 1
    if pending or waiting:
        return "Pending"
    if running:
        return "Running"
    if not is_gone and any(_comes_back(record, policy) for record in records):
        return "Running"
    return "Succeeded" if ended == succeeded else "Failed"


def has_begun(records: Iterable[Record]) -> bool:
    """Whether one of the containers proper has been started."""
    return any(
        each.role == "main" and (each.running is not None or (each.before is not None and not each.anew))
        for each in records
    )


def _comes_back(record: Record, policy: str) -> bool:
    if record.role != "main":
        return False
    if record.exit is None:
        return record.before is not None
    return restarts(record, policy)


def _mark_unknown(
    pod: Pod, records: Iterable[Record], init: list[ContainerStatus], main: list[ContainerStatus]
) -> None:
    """What never ended must have an end, once the Pod is gone."""
    records = list(records)
    last = next((each for each in reversed(records) if each.role in ("init", "sidecar")), None)
    initialised = (
        not pod.spec.init_containers
        or has_begun(records)
        or (last is not None and last.exit is not None and last.exit.code == 0)
    )
    tried = max((number for number, each in enumerate(init) if each.state and not each.state.waiting), default=0)
    for status in [*(main if initialised else ()), *init[: tried + 1]]:
        if status.state is None or status.state.terminated is None:
            status.state = ContainerState(
                terminated=ContainerStateTerminated(
                    exit_code=137,
                    reason="ContainerStatusUnknown",
                    message="The container could not be located when the pod was terminated",
                )
            )


def _status(record: Record, pod: Pod, known: Knowledge) -> ContainerStatus:
    running = None if record.hooking else record.running
    before = record.before
    state = ContainerState()
    if running is not None and (running.exit is None or (record.replaced and not known.is_gone)):
        # One that makes room for another has not ended for good: the server would let no other take its place.
        state.running = ContainerStateRunning(started_at=running.started_at)
    elif record.hooking and before is not None:
        state.terminated = before
    elif running is None or (record.waiting is not None and not known.is_gone):
        waiting = record.waiting or _waiting(pod)
        state.waiting = ContainerStateWaiting(reason=waiting.reason, message=waiting.message or None)
    else:
        assert running.exit is not None
        state.terminated = terminated(running, running.exit, record.words)
    if state.waiting is not None and running is not None and running.exit is not None:
        before = terminated(running, running.exit, record.words)
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
        restart_count=record.restarts,
        state=state,
        last_state=ContainerState(terminated=before),
        user=running.user if running is not None else None,
    )
    if known.details and record.role != "ephemeral":
        _add_details(status, record)
    return status


def _add_details(status: ContainerStatus, record: Record) -> None:
    """What the container was given of the node's resources and volumes."""
    resources = record.spec.resources
    status.resources = ResourceRequirements() if resources is None else resources
    status.allocated_resources = {} if resources is None else dict(resources.requests)
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
    """What a container that nobody has started yet waits for."""
    return _INITIALIZING if pod.spec.init_containers else _CREATING


def _conditions(pod: Pod, records: Mapping[str, Record], phase: str, known: Knowledge, now: Time) -> list[PodCondition]:
    ready = _containers_ready(records.values(), phase)
    found = {
        "PodReadyToStartContainers": _TRUE if known.has_sandbox else _Condition("False"),
        "Initialized": _initialized(records.values(), phase),
        "Ready": _with_gates(pod, ready),
        "ContainersReady": ready,
        "PodScheduled": _TRUE,
    }
    if known.restarting_all is not None:
        found["AllContainersRestarting"] = _Condition(str(known.restarting_all))
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
    return conditions


class _Condition(msgspec.Struct, frozen=True):
    status: str
    reason: str = ""
    message: str = ""


_TRUE: Final = _Condition("True")


def _containers_ready(records: Iterable[Record], phase: str) -> _Condition:
    if phase == "Succeeded":
        return _Condition("False", "PodCompleted")
    if phase == "Failed":
        return _Condition("False", "PodFailed")
    unready = [each.name for each in records if each.role in ("main", "sidecar") and not each.is_ready]
    if unready:
        return _Condition("False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return _TRUE


def _initialized(records: Iterable[Record], phase: str) -> _Condition:
    if phase == "Succeeded":
        return _Condition("True", "PodCompleted")
    records = list(records)
    if has_begun(records):
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
    """Ready is more than ready containers where a Pod asks for further conditions."""
    if ready.status != "True":
        return ready
    said = {each.type: each.status for each in pod.status.conditions}
    messages = []
    for gate in pod.spec.readiness_gates:
        status = said.get(gate.condition_type)
        if status is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            messages.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    return _Condition("False", "ReadinessGatesNotReady", ", ".join(messages)) if messages else ready


def merged(old: PodStatus, new: PodStatus) -> PodStatus:
    """The new status with what the old one says beside it: conditions and fields of others."""
    own = {each.type for each in new.conditions}
    kept = [each for each in old.conditions if each.type not in own]
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
