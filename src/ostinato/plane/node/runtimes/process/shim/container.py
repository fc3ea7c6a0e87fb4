"""Turn a forked process into a container, or into a command that joins one. Part of the shim."""

from __future__ import annotations

import array
import fcntl
import os
import resource
import select
import signal
import socket
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from shim import kernel, privileges, root  # type: ignore[import-not-found]

_FAILED = 127
_HEEDED = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGINT),
    signal.SIGHUP,
)
_UNLOCK, _NUMBER = 0x40045431, 0x80045430  # TIOCSPTLCK and TIOCGPTN, of a terminal's own side
_GO = b"g"  # what the keeper sends to a process that is its child
_LONGEST = 2000  # bytes of an error

Streams = tuple[int, int, int] | None


class Child:
    """A process that is being started: what it reports before it becomes the program, and its terminal.

    - `pid` is 0 if it failed before there was a process.
    - `report` becomes readable when the program has begun, which leaves it empty, or when that failed.
    """

    def __init__(self, pid: int, report: socket.socket) -> None:
        self.pid = pid
        self.report = report

    def outcome(self) -> tuple[str, int | None]:
        """Wait for it: why it failed, empty if it did not; and the descriptor of its terminal, if it has one."""
        text, terminal = b"", None
        while True:
            try:
                data, ancillary, _, _ = self.report.recvmsg(_LONGEST, socket.CMSG_SPACE(array.array("i").itemsize))
            except ConnectionResetError:  # it ended without having read what was sent to it
                break
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    terminal = array.array("i", content)[0]
            if not data:
                break
            text += data
        self.report.close()
        return text.strip(b"\0").decode(errors="replace"), terminal


def start(launch: dict[str, Any], streams: Streams) -> Child:
    """Fork the container's first process. Without `streams`, it gets a terminal."""
    plan = launch["isolation"]
    if plan is not None and plan["peer"] is not None:  # it is not alone among the processes that it is to see
        return _fork_beside(launch, streams, launch["command"], _of(plan), lambda: _enter_new(launch))
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _report_failure(theirs, lambda: _become(launch, streams, theirs))
    theirs.close()
    with suppress(OSError):  # it may have failed already
        ours.sendall(_GO)
    return Child(pid, ours)


def join(launch: dict[str, Any], streams: Streams, command: list[str], first: int | None) -> Child:
    """Fork a command that runs in a container; `first`: the pidfd of its first process, if it is isolated.

    It has the container's namespaces, control groups, root, user, groups, capabilities, filter and variables.
    """
    held = [] if first is None else [first]
    return _fork_beside(launch, streams, command, held, lambda: _enter_existing(launch, first))


def _fork_beside(
    launch: dict[str, Any], streams: Streams, command: list[str], held: list[int], enter: Callable[[], None]
) -> Child:
    """Fork a process among others of a container, to which it appears only when it has no more rights than they.

    A process outside of their sight enters first, gives up what they must not get hold of, and then forks it
    (CVE-2016-9962).
    """
    ours, theirs = socket.socketpair()
    told, telling = os.pipe()
    helper = os.fork()
    if helper == 0:
        ours.close()
        os.close(told)
        held = [*held, theirs.fileno(), telling, *(streams or ())]
        _report_failure(theirs, lambda: _become_beside(launch, streams, command, theirs, telling, (held, enter)))
    theirs.close()
    os.close(telling)
    with open(told, "rb") as file:
        pid = file.read()
    os.waitpid(helper, 0)  # so that the process is a child of this one now
    with suppress(OSError):
        ours.sendall(_GO)
    return Child(int(pid or 0), ours)


def _report_failure(to: socket.socket, become: Callable[[], NoReturn]) -> NoReturn:
    try:
        become()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _report(to, f"{where}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - reported to whoever asked for the start
        _report(to, str(error))
    finally:
        os._exit(_FAILED)


def _report(to: socket.socket, text: str) -> None:
    with suppress(OSError):
        to.sendall(text.encode(errors="replace")[:_LONGEST])


def _become(launch: dict[str, Any], streams: Streams, report: socket.socket) -> NoReturn:
    _forget_the_keeper(launch, [report.fileno(), *(streams or ()), *_of(launch["isolation"])])
    _enter_new(launch)
    privileges.drop(launch["security"])
    _run(launch, streams, launch["command"], report)


def _become_beside(
    launch: dict[str, Any],
    streams: Streams,
    command: list[str],
    report: socket.socket,
    telling: int,
    how: tuple[list[int], Callable[[], None]],
) -> NoReturn:
    held, enter = how
    _forget_the_keeper(launch, held)
    enter()
    privileges.drop(launch["security"])
    pid = os.fork()
    if pid != 0:
        os.write(telling, str(pid).encode())
        os._exit(0)
    os.close(telling)
    _run(launch, streams, command, report)


def _enter_new(launch: dict[str, Any]) -> None:
    """Make the container's namespaces and root, and enter them."""
    plan = launch["isolation"]
    if plan is None:
        return
    processes = None if plan["peer"] is None else _processes_of(plan["peer"])
    if plan["pod"] is not None:
        kernel.join(plan["pod"], plan["of_pod"], "the Pod's namespaces")
    root.enter(plan, launch["binds"], processes)
    if plan["peer"] is not None:
        kernel.join(plan["peer"], kernel.NEW_PID, "process namespace")
    if plan["users"] is not None:
        kernel.join(plan["users"], kernel.NEW_USER, "hostUsers")
        _be_root_of_namespace()


def _enter_existing(launch: dict[str, Any], first: int | None) -> None:
    """Enter those of a container that runs."""
    plan = launch["isolation"]
    if plan is None or first is None:
        return
    kernel.join(first, plan["join"] | kernel.NEW_PID, "the container's namespaces")
    if plan["users"] is not None:
        _be_root_of_namespace()


def _processes_of(peer: int) -> int:
    """A copy of another container's /proc: only a process of its namespace could mount one anew."""
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    kernel.join(peer, kernel.NEW_MOUNT, "process namespace")
    tree: int = kernel.clone_tree("/proc", recursive=False)
    kernel.join(own, kernel.NEW_MOUNT, "process namespace")
    os.close(own)
    return tree


def _forget_the_keeper(launch: dict[str, Any], held: list[int]) -> None:
    """Have nothing of the keeper but some descriptors, and be in the container's control groups."""
    signal.set_wakeup_fd(-1)
    for each in _HEEDED:
        signal.signal(each, signal.SIG_DFL)
    if launch["reaps"]:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the orphans that it becomes the parent of
    kernel.close_all_but(held)
    os.umask(0o022)
    for path in launch["groups"]:
        with open(f"{path}/cgroup.procs", "w") as file:
            file.write("0")
    for name, amount in launch["limits"].items():
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (amount, amount))
    if launch["isolation"] is not None:
        kernel.leave_session_keyring()


def _be_root_of_namespace() -> None:
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _of(plan: dict[str, Any] | None) -> list[int]:
    """Descriptors that a plan refers to."""
    return [] if plan is None else [each for each in (plan["users"], plan["pod"], plan["peer"]) if each is not None]


def _run(launch: dict[str, Any], streams: Streams, command: list[str], report: socket.socket) -> NoReturn:
    """Execute the program, in the container and with its rights."""
    os.setsid()
    environment = dict(launch["environment"])
    if streams is None:
        _open_terminal(report, isolated=launch["isolation"] is not None)
        environment.setdefault("TERM", "xterm")
    else:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    if report.recv(1) != _GO:  # the keeper is gone
        os._exit(_FAILED)
    _die_with_parent(report)
    _change_directory(launch["directory"])
    kernel.close_all_but([report.fileno()])
    _execute(command, environment)


def _open_terminal(report: socket.socket, *, isolated: bool) -> None:
    """Make a terminal that has a name in the container, hand its other side to the keeper, and use it."""
    if isolated:
        mine = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(mine, _UNLOCK, array.array("i", [0]))
        number = array.array("I", [0])
        fcntl.ioctl(mine, _NUMBER, number)
        theirs = os.open(f"/dev/pts/{number[0]}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    else:
        mine, theirs = os.openpty()
    socket.send_fds(report, [b"\0"], [mine])
    os.close(mine)
    for number_of_stream in range(3):
        os.dup2(theirs, number_of_stream)
    os.close(theirs)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _die_with_parent(report: socket.socket) -> None:
    kernel.prctl(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)  # after the change of user, which would reset it
    poll = select.poll()
    poll.register(report.fileno(), select.POLLHUP)
    if any(events & select.POLLHUP for _, events in poll.poll(0)):  # the keeper was gone already
        os._exit(_FAILED)


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except OSError as error:
        raise RuntimeError(f'workingDir "{path}": {(error.strerror or str(error)).lower()}') from None


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - that is what it is for
    except FileNotFoundError:
        where = "no such file or directory" if "/" in command[0] else "executable file not found in $PATH"
        raise RuntimeError(f'exec: "{command[0]}": {where}') from None
    except OSError as error:
        raise RuntimeError(f'exec: "{command[0]}": {(error.strerror or str(error)).lower()}') from None
