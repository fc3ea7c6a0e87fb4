"""securityContext of the process runtime: applied and rejected fields, and the seccomp filter call by call."""

from __future__ import annotations

import os
import struct
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.runtimes import StartError
from ostinato.plane.node.runtimes.process import security
from ostinato.plane.node.runtimes.process.seccomp import default_filter
from ostinato.plane.node.runtimes.process.security import Security, identity, security_of, unsupported_fields

EPERM, ENOSYS, ALLOWED = 1, 38, 0


@pytest.fixture(autouse=True)
def _capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests run as."""
    monkeypatch.setattr(security, "node_capabilities", lambda: security.ALL_CAPABILITIES)


def a_pod(own: Any = None, whole: Any = None, **spec: Any) -> Pod:
    known = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}}
    container = {"name": "c", "image": "i", "securityContext": own or {}}
    return from_dict(Pod, known | {"spec": {"containers": [container], "securityContext": whole or {}} | spec})


def secured(pod: Pod, container: Container, *, isolated: bool, insecure: bool) -> Security:
    runs_as, _ = identity(pod, container, None)
    return security_of(pod, container, runs_as, isolated=isolated, insecure=insecure)


def refused(pod: Pod, *, isolated: bool) -> list[str]:
    return [field for field, _ in unsupported_fields(pod, pod.spec.containers[0], isolated=isolated)]


OWN, WHOLE = "spec.containers[c].securityContext.", "spec.securityContext."


@pytest.mark.parametrize(
    ("pod", "with_root", "without"),
    [
        (a_pod(), [], []),
        (a_pod({"runAsUser": 12345}), [], [OWN + "runAsUser"]),
        (a_pod(whole={"runAsUser": 12345, "runAsGroup": 12345}), [], [OWN + "runAsUser", OWN + "runAsGroup"]),
        (a_pod({"runAsUser": os.geteuid(), "runAsGroup": os.getegid()}), [], []),
        (a_pod(whole={"fsGroup": 12345}), [], [WHOLE + "fsGroup"]),
        (a_pod(whole={"supplementalGroups": [12345]}), [], [WHOLE + "supplementalGroups"]),
        (a_pod({"readOnlyRootFilesystem": True}), [], [OWN + "readOnlyRootFilesystem"]),
        (a_pod({"readOnlyRootFilesystem": False}), [], []),
        (a_pod({"privileged": True}), [], [OWN + "privileged"]),
        (a_pod({"capabilities": {"add": ["NET_ADMIN"]}}), [], [OWN + "capabilities.add"]),
        (a_pod({"capabilities": {"drop": ["ALL"]}}), [], []),
        (a_pod({"capabilities": {"add": ["NONSENSE"]}}), [OWN + "capabilities.add"], [OWN + "capabilities.add"] * 2),
        (a_pod({"allowPrivilegeEscalation": False}), [], []),
        (a_pod({"seccompProfile": {"type": "RuntimeDefault"}}), [], []),
        (a_pod({"seccompProfile": {"type": "Unconfined"}}), [], []),
        *(
            (made({"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}), [field], [field])
            for made, field in ((a_pod, OWN + "seccompProfile"), (lambda it: a_pod(whole=it), WHOLE + "seccompProfile"))
        ),
        (a_pod({"appArmorProfile": {"type": "RuntimeDefault"}}), [OWN + "appArmorProfile"], [OWN + "appArmorProfile"]),
        (a_pod({"appArmorProfile": {"type": "Unconfined"}}), [], []),
        (a_pod({"seLinuxOptions": {"level": "s0"}}), [OWN + "seLinuxOptions"], [OWN + "seLinuxOptions"]),
        (a_pod({"seLinuxOptions": {}}), [], []),
        (a_pod({"windowsOptions": {}}), [OWN + "windowsOptions"], [OWN + "windowsOptions"]),
        (a_pod(hostUsers=False), [], ["spec.hostUsers"]),
        (a_pod(hostUsers=True, hostPID=True, hostIPC=True, hostNetwork=True), [], []),
        (
            a_pod(
                whole={
                    "sysctls": [{"name": "kernel.shmmax", "value": "1"}, {"name": "net.core.somaxconn", "value": "1"}]
                }
            ),
            [WHOLE + "sysctls[net.core.somaxconn]"],
            [WHOLE + "sysctls[kernel.shmmax]", WHOLE + "sysctls[net.core.somaxconn]"],
        ),
    ],
)
def test_unsupported_fields_are_named(pod: Pod, with_root: list[str], without: list[str]) -> None:
    assert refused(pod, isolated=True) == with_root
    assert refused(pod, isolated=False) == without


def test_a_rejection_names_the_field_and_the_remedy() -> None:
    pod = a_pod({"readOnlyRootFilesystem": True})
    container = pod.spec.containers[0]
    with pytest.raises(StartError) as caught:
        secured(pod, container, isolated=False, insecure=False)
    assert caught.value.reason == "CreateContainerConfigError"
    assert str(caught.value).startswith("spec.containers[c].securityContext.readOnlyRootFilesystem: ")
    assert "--insecure-processes" in str(caught.value)
    assert secured(pod, container, isolated=False, insecure=True).no_new_privileges is False


@pytest.mark.parametrize(
    ("own", "no_new_privileges", "filtered"),
    [
        ({}, False, False),
        ({"allowPrivilegeEscalation": False}, True, False),
        ({"capabilities": {"drop": ["ALL"]}}, True, False),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, True, True),
        ({"seccompProfile": {"type": "Unconfined"}}, False, False),
    ],
)
def test_without_root_filters_and_dropped_capabilities_are_held_by_no_new_privs(
    own: Any, no_new_privileges: bool, filtered: bool
) -> None:
    pod = a_pod(own)
    found = secured(pod, pod.spec.containers[0], isolated=False, insecure=False)
    assert (found.no_new_privileges, found.seccomp is not None) == (no_new_privileges, filtered)
    assert (found.user, found.group, found.groups, found.capabilities) == (None, None, None, None)


def test_the_profile_of_the_container_goes_before_that_of_its_pod_and_the_privileged_have_none() -> None:
    whole = {"seccompProfile": {"type": "RuntimeDefault"}}
    for own, filtered in (
        ({}, True),
        ({"seccompProfile": {"type": "Unconfined"}}, False),
        ({"privileged": True}, False),
    ):
        pod = a_pod(own, whole)
        found = secured(pod, pod.spec.containers[0], isolated=True, insecure=False)
        assert (found.seccomp is not None) == filtered


@pytest.mark.parametrize(
    ("own", "whole", "message"),
    [
        ({"runAsNonRoot": True, "runAsUser": 0}, {}, "container's runAsUser breaks non-root policy"),
        ({"runAsUser": 0}, {"runAsNonRoot": True}, "container's runAsUser breaks non-root policy"),
        *([({"runAsNonRoot": True}, {}, "image will run as root")] if os.geteuid() == 0 else []),
    ],
)
def test_run_as_non_root_holds_on_an_insecure_node(own: Any, whole: Any, message: str) -> None:
    pod = a_pod(own, whole)
    with pytest.raises(StartError, match=message):
        secured(pod, pod.spec.containers[0], isolated=True, insecure=True)


# The filter


def answer(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel would do with a call: 0 if it is allowed, else its error."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            if value == 0x7FFF0000:
                return ALLOWED
            assert value & 0xFFFF0000 == 0x00050000, "it denies with an error"
            return value & 0xFFFF
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false


MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# By name: numbers on both machines, arguments, and what a container without capabilities gets.
CALLS: list[tuple[str, tuple[int, int], tuple[int, ...], int]] = [
    ("read", (0, 63), (), ALLOWED),
    ("execve", (59, 221), (), ALLOWED),
    ("openat", (257, 56), (), ALLOWED),
    ("openat2", (437, 437), (), ALLOWED),
    ("ptrace", (101, 117), (), ALLOWED),
    ("chroot", (161, 51), (), ALLOWED),
    ("mseal", (462, 462), (), ALLOWED),
    ("mount", (165, 40), (), EPERM),
    ("umount2", (166, 39), (), EPERM),
    ("pivot_root", (155, 41), (), EPERM),
    ("unshare", (272, 97), (), EPERM),
    ("setns", (308, 268), (), EPERM),
    ("keyctl", (250, 219), (), EPERM),
    ("bpf", (321, 280), (), EPERM),
    ("perf_event_open", (298, 241), (), EPERM),
    ("init_module", (175, 105), (), EPERM),
    ("kexec_load", (246, 104), (), EPERM),
    ("reboot", (169, 142), (), EPERM),
    ("settimeofday", (164, 170), (), EPERM),
    ("io_uring_setup", (425, 425), (), EPERM),
    ("open_by_handle_at", (304, 265), (), EPERM),
    ("open_tree", (428, 428), (), EPERM),
    ("userfaultfd", (323, 282), (), EPERM),
    ("clone", (56, 220), (0x11,), ALLOWED),
    ("clone of a thread", (56, 220), (0x3D0F00,), ALLOWED),
    ("clone of a user namespace", (56, 220), (0x10000011,), EPERM),
    ("clone of a mount namespace", (56, 220), (0x00020011,), EPERM),
    ("clone of a network namespace", (56, 220), (0x40000011,), EPERM),
    ("clone3", (435, 435), (), ENOSYS),
    ("socket of the internet", (41, 198), (2,), ALLOWED),
    ("socket of vsock", (41, 198), (40,), EPERM),
    ("personality that asks", (135, 92), (0xFFFFFFFF,), ALLOWED),
    ("personality without randomization", (135, 92), (0x0040000,), EPERM),
    ("a call of the future", (500, 500), (), ENOSYS),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "numbers", "arguments", "wanted"), CALLS, ids=[each[0] for each in CALLS])
def test_the_filter_denies_what_default_profiles_deny(
    machine: str, name: str, numbers: tuple[int, int], arguments: tuple[int, ...], wanted: int
) -> None:
    program = default_filter((), machine)
    assert program is not None
    assert answer(program, MACHINES[machine], numbers[machine == "aarch64"], *arguments) == wanted


@pytest.mark.parametrize(
    ("capability", "number", "arguments"),
    [
        ("SYS_ADMIN", 165, ()),
        ("SYS_ADMIN", 56, (0x10000011,)),
        ("SYS_ADMIN", 435, ()),
        ("BPF", 321, ()),
        ("SYS_TIME", 164, ()),
        ("SYS_BOOT", 169, ()),
        ("DAC_READ_SEARCH", 304, ()),
    ],
)
def test_a_capability_opens_the_calls_that_ask_for_it(capability: str, number: int, arguments: tuple[int, ...]) -> None:
    closed, opened = default_filter((), "x86_64"), default_filter((capability,), "x86_64")
    assert closed is not None
    assert opened is not None
    assert answer(closed, MACHINES["x86_64"], number, *arguments) != ALLOWED
    assert answer(opened, MACHINES["x86_64"], number, *arguments) == ALLOWED


def test_calls_of_other_architectures_are_denied_and_unknown_machines_have_no_filter() -> None:
    program = default_filter((), "x86_64")
    assert program is not None
    assert answer(program, 0x40000003, 0) == EPERM  # i386
    assert answer(program, MACHINES["x86_64"], 0x40000000) == EPERM  # x32
    assert default_filter((), "riscv64") is None
