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
_HANDLED_SIGNALS = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGINT),
    signal.SIGHUP,
)
_UNLOCK, _NUMBER = 0x40045431, 0x80045430  # TIOCSPTLCK and TIOCGPTN
_GO = b"g"  # sent by the keeper once the process is its child
_LONGEST = 2000  # bytes of an error message

Streams = tuple[int, int, int] | None


class Child:
    """A process that is being started.

    - `pid`: 0 if the start failed before the process was forked.
    - `report`: socket that carries an error message and the terminal; it is closed when the program is executed.
    """

    def __init__(self, pid: int, report: socket.socket) -> None:
        self.pid = pid
        self.report = report

    def outcome(self) -> tuple[str, int | None]:
        """Wait for the start; return the error (empty on success) and the terminal's descriptor, if any."""
        text, terminal = b"", None
        while True:
            try:
                data, ancillary, _, _ = self.report.recvmsg(_LONGEST, socket.CMSG_SPACE(array.array("i").itemsize))
            except ConnectionResetError:  # it exited before reading the go-ahead
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
    """Fork the container's first process, with a terminal if `streams` is None."""
    plan = launch["isolation"]
    if plan is not None and plan["peer"] is not None:  # it joins the PID namespace of another container
        return _fork_into(launch, streams, launch["command"], _descriptors_of(plan), lambda: _enter_new(launch))
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _report_failure(theirs, lambda: _become(launch, streams, theirs))
    theirs.close()
    with suppress(OSError):  # it may have exited already
        ours.sendall(_GO)
    return Child(pid, ours)


def join(launch: dict[str, Any], streams: Streams, command: list[str], first: int | None) -> Child:
    """Fork a command into a container.

    It gets the container's namespaces, control groups, root, user, capabilities, seccomp filter and environment.
    `first`: pidfd of the container's first process; None if it is not isolated.
    """
    held = [] if first is None else [first]
    return _fork_into(launch, streams, command, held, lambda: _enter_existing(launch, first))


def _fork_into(
    launch: dict[str, Any], streams: Streams, command: list[str], held: list[int], enter: Callable[[], None]
) -> Child:
    """Fork a process into a PID namespace with other processes, after it has dropped its privileges.

    A helper outside of the namespace closes descriptors and drops privileges first, and then forks the process that
    the others can see (CVE-2016-9962).
    """
    ours, theirs = socket.socketpair()
    pid_reader, pid_writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        ours.close()
        os.close(pid_reader)
        held = [*held, theirs.fileno(), pid_writer, *(streams or ())]
        _report_failure(theirs, lambda: _become_joined(launch, streams, command, theirs, pid_writer, (held, enter)))
    theirs.close()
    os.close(pid_writer)
    with open(pid_reader, "rb") as file:
        pid = file.read()
    os.waitpid(helper, 0)  # the process is reparented to the keeper
    with suppress(OSError):
        ours.sendall(_GO)
    return Child(int(pid or 0), ours)


def _report_failure(to: socket.socket, become: Callable[[], NoReturn]) -> NoReturn:
    try:
        become()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _report(to, f"{where}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - reported to the caller of the start
        _report(to, str(error))
    finally:
        os._exit(_FAILED)


def _report(to: socket.socket, text: str) -> None:
    with suppress(OSError):
        to.sendall(text.encode(errors="replace")[:_LONGEST])


def _become(launch: dict[str, Any], streams: Streams, report: socket.socket) -> NoReturn:
    _leave_keeper(launch, [report.fileno(), *(streams or ()), *_descriptors_of(launch["isolation"])])
    _enter_new(launch)
    privileges.drop(launch["security"])
    _run(launch, streams, launch["command"], report)


def _become_joined(
    launch: dict[str, Any],
    streams: Streams,
    command: list[str],
    report: socket.socket,
    pid_writer: int,
    how: tuple[list[int], Callable[[], None]],
) -> NoReturn:
    held, enter = how
    _leave_keeper(launch, held)
    enter()
    privileges.drop(launch["security"])
    pid = os.fork()
    if pid != 0:
        os.write(pid_writer, str(pid).encode())
        os._exit(0)
    os.close(pid_writer)
    _run(launch, streams, command, report)


def _enter_new(launch: dict[str, Any]) -> None:
    """Create and enter the container's namespaces and root file system."""
    plan = launch["isolation"]
    if plan is None:
        return
    processes = None if plan["peer"] is None else _processes_of(plan["peer"])
    if plan["pod"] is not None:
        kernel.join(plan["pod"], plan["of_pod"], "the Pod's namespaces")
    if plan["network"] is not None:
        kernel.join(plan["network"], kernel.NEW_NETWORK, "the Pod's network")
    root.enter(plan, launch["binds"], processes)
    if plan["peer"] is not None:
        kernel.join(plan["peer"], kernel.NEW_PID, "process namespace")
    if plan["users"] is not None:
        kernel.join(plan["users"], kernel.NEW_USER, "hostUsers")
        _be_root_of_namespace()


def _enter_existing(launch: dict[str, Any], first: int | None) -> None:
    """Enter the namespaces of a running container."""
    plan = launch["isolation"]
    if plan is None or first is None:
        return
    kernel.join(first, plan["join"] | kernel.NEW_PID, "the container's namespaces")
    if plan["users"] is not None:
        _be_root_of_namespace()


def _processes_of(peer: int) -> int:
    """Return a copy of another container's /proc; only a process in its namespace could mount a new one."""
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    kernel.join(peer, kernel.NEW_MOUNT, "process namespace")
    tree: int = kernel.clone_tree("/proc", recursive=False)
    kernel.join(own, kernel.NEW_MOUNT, "process namespace")
    os.close(own)
    return tree


def _leave_keeper(launch: dict[str, Any], held: list[int]) -> None:
    """Reset signals, close all but the `held` descriptors, and join the container's control groups."""
    signal.set_wakeup_fd(-1)
    for each in _HANDLED_SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    if launch["reaps"]:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps orphans that are reparented to it
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


def _descriptors_of(plan: dict[str, Any] | None) -> list[int]:
    """Return the namespace descriptors of a plan."""
    names = ("users", "pod", "peer", "memory_peer", "network")
    return [] if plan is None else [plan[each] for each in names if plan[each] is not None]


def _run(launch: dict[str, Any], streams: Streams, command: list[str], report: socket.socket) -> NoReturn:
    """Execute the program, after namespaces and privileges have been set."""
    os.setsid()
    environment = dict(launch["environment"])
    if streams is None:
        _open_terminal(report, isolated=launch["isolation"] is not None)
        environment.setdefault("TERM", "xterm")
    else:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    if report.recv(1) != _GO:  # the keeper exited
        os._exit(_FAILED)
    _die_with_parent(report)
    _change_directory(launch["directory"])
    kernel.close_all_but([report.fileno()])
    _execute(command, environment)


def _open_terminal(report: socket.socket, *, isolated: bool) -> None:
    """Open a terminal of the container's devpts, pass its master to the keeper, and use its slave."""
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
    kernel.prctl(kernel.PARENT_DEATH_SIGNAL, signal.SIGKILL)  # after setresuid, which resets it
    poll = select.poll()
    poll.register(report.fileno(), select.POLLHUP)
    if any(events & select.POLLHUP for _, events in poll.poll(0)):  # the keeper had already exited
        os._exit(_FAILED)


def _change_directory(path: str) -> None:
    try:
        os.chdir(path)
    except OSError as error:
        raise RuntimeError(f'workingDir "{path}": {(error.strerror or str(error)).lower()}') from None


def _execute(command: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - executes the container's command
    except FileNotFoundError:
        where = "no such file or directory" if "/" in command[0] else "executable file not found in $PATH"
        raise RuntimeError(f'exec: "{command[0]}": {where}') from None
    except OSError as error:
        raise RuntimeError(f'exec: "{command[0]}": {(error.strerror or str(error)).lower()}') from None
