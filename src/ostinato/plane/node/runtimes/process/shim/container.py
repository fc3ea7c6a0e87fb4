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
from contextlib import suppress
from typing import Any, NoReturn

from shim import kernel, privileges, root  # type: ignore[import-not-found]

_FAILED = 127
_HEEDED = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGINT),
    signal.SIGHUP,
)
_UNLOCK, _NUMBER = 0x40045431, 0x80045430  # TIOCSPTLCK and TIOCGPTN, of a terminal's own side
_LONGEST = 2000  # bytes of an error


class Child:
    """A process that is being started: what it reports before it becomes the program, and its terminal.

    `report` becomes readable when the program has begun, which leaves it empty, or when that failed.
    """

    def __init__(self, pid: int, report: socket.socket) -> None:
        self.pid = pid
        self.report = report

    def outcome(self) -> tuple[str, int | None]:
        """Wait for it: why it failed, empty if it did not; and the descriptor of its terminal, if it has one."""
        text, terminal = b"", None
        while True:
            data, ancillary, _, _ = self.report.recvmsg(_LONGEST, socket.CMSG_SPACE(array.array("i").itemsize))
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    terminal = array.array("i", content)[0]
            if not data:
                break
            text += data
        self.report.close()
        return text.strip(b"\0").decode(errors="replace"), terminal


def start(launch: dict[str, Any], streams: tuple[int, int, int] | None) -> Child:
    """Fork the container's first process. Without `streams`, it gets a terminal."""
    return _fork(launch, streams, launch["command"], {}, None)


def join(launch: dict[str, Any], streams: tuple[int, int, int] | None, command: list[str], first: int | None) -> Child:
    """Fork a command that runs in a container; `first`: the pidfd of its first process, if it is isolated.

    It has the container's namespaces, control groups, root, user, groups, capabilities, filter and variables.
    """
    return _fork(launch, streams, command, {"TERM": "xterm"} if streams is None else {}, first)


def _fork(
    launch: dict[str, Any],
    streams: tuple[int, int, int] | None,
    command: list[str],
    variables: dict[str, str],
    first: int | None,
) -> Child:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid != 0:
        theirs.close()
        return Child(pid, ours)
    try:
        ours.close()
        _become(launch, streams, command, variables, first, theirs)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _report(theirs, f"{where}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - reported to whoever asked for the start
        _report(theirs, str(error))
    finally:
        os._exit(_FAILED)


def _report(to: socket.socket, text: str) -> None:
    with suppress(OSError):
        to.sendall(text.encode(errors="replace")[:_LONGEST])


def _become(
    launch: dict[str, Any],
    streams: tuple[int, int, int] | None,
    command: list[str],
    variables: dict[str, str],
    first: int | None,
    report: socket.socket,
) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for each in _HEEDED:
        signal.signal(each, signal.SIG_DFL)
    if launch["reaps"]:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the orphans that it becomes the parent of
    kernel.hide_from_debuggers()
    os.setsid()
    for number, stream in enumerate(streams or ()):
        os.dup2(stream, number)
    kernel.close_all_but([report.fileno(), *([] if first is None else [first]), *_of(launch)])
    os.umask(0o022)
    for path in launch["groups"]:
        with open(f"{path}/cgroup.procs", "w") as file:
            file.write("0")
    for name, amount in launch["limits"].items():
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (amount, amount))
    plan = launch["isolation"]
    if plan is not None:
        kernel.leave_session_keyring()
        if first is None:
            if plan["pod"] is not None:
                kernel.join(plan["pod"], plan["of_pod"], "the Pod's namespaces")
            root.enter(plan, launch["binds"])
            if plan["users"] is not None:
                kernel.join(plan["users"], kernel.NEW_USER, "hostUsers")
        else:
            kernel.join(first, plan["join"], "the container's namespaces")
        if plan["users"] is not None:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)  # of the namespace
    if streams is None:
        _open_terminal(report, isolated=plan is not None, owner=launch["security"]["user"])
    privileges.drop(launch["security"])
    _die_with_parent(report)
    _change_directory(launch["directory"])  # as its user, in its root
    kernel.close_all_but([report.fileno()])
    _execute(command, {**variables, **launch["environment"]})


def _of(launch: dict[str, Any]) -> list[int]:
    """Descriptors that a launch refers to."""
    plan = launch["isolation"]
    return [] if plan is None else [each for each in (plan["users"], plan["pod"]) if each is not None]


def _open_terminal(report: socket.socket, *, isolated: bool, owner: int | None) -> None:
    """Make a terminal that has a name in the container, hand its other side to the keeper, and use it."""
    if isolated:
        mine = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(mine, _UNLOCK, array.array("i", [0]))
        number = array.array("I", [0])
        fcntl.ioctl(mine, _NUMBER, number)
        theirs = os.open(f"/dev/pts/{number[0]}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        if owner is not None:
            os.fchown(theirs, owner, -1)
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
