"""A keeper: the process that stays with one container from its start to its end. Part of the shim.

It holds a lock on its directory's `lock` for as long as it lives, does what `launch.json` says, and writes

- `state.json` once the container runs: the process ids of keeper and container, and when they started;
- `exit.json` once it has ended: its exit code, and when;
- what the container prints, to its log file, which is rotated when it gets large (`log`);
- to whoever connects to the socket `attach`, what it prints from then on (`attach`);
- and runs commands in the container for whoever connects to the socket `exec` (`execution`).

The directory is the node's own (0700); the container cannot see it. Both sockets serve the node's user alone.

On SIGTERM it passes the container's stop signal on, to its first process alone; on SIGUSR1 it kills all of it.
Whatever a container leaves behind is killed when its first process ends: by its process namespace, its control groups,
and, where it has neither, for the keeper is the parent of all orphans.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import Any, NoReturn

from shim import container, kernel, users  # type: ignore[import-not-found]
from shim.attach import Attaching  # type: ignore[import-not-found]
from shim.execution import Executions  # type: ignore[import-not-found]
from shim.log import Log  # type: ignore[import-not-found]

_START_FAILED = 128
_KILLED = 128 + signal.SIGKILL
_LOOK_MILLISECONDS = 5000.0  # between two looks at whether its directory is still there
_DRAIN_SECONDS = 2.0  # that are left for what is still in the pipes when the container has ended
_CHUNK = 65536


class Keeper:
    def __init__(self, directory: str, agent: socket.socket) -> None:
        """`agent`: the socket to answer on, which no container may have."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(directory)
        self.directory = directory
        self.agent: socket.socket | None = socket.socket(fileno=os.dup(agent.detach()))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(nowhere, each)
        os.close(nowhere)
        self.pid = 0
        self.first: int | None = None  # the pidfd of the container's first process
        self.code: int | None = None  # of that process
        self.inputs: dict[int, int] = {}  # descriptor and stream, 1 or 2
        self.stdin: int | None = None

    def keep(self) -> NoReturn:
        lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists("exit.json"):
            self._reply({"error": "it was given up before it began"})
            os._exit(0)
        with open("launch.json", "rb") as file:
            self.launch: dict[str, Any] = json.load(file)
        kernel.hide_from_debuggers()
        kernel.become_subreaper()
        kernel.set_name("ostinato-shim")
        waking = self._heed_signals()
        log = Log(self.launch["log"], self.launch["log_bytes"], self.launch["log_files"])
        if error := self._start():
            _write("exit.json", {"code": _START_FAILED, "at": time.time(), "reason": "StartError", "message": error})
            self._leave_groups()
            self._reply({"error": error})
            os._exit(0)
        terminal = next(iter(self.inputs))
        attaching = Attaching(self.stdin, self.launch["tty"], self.launch["stdin_once"], terminal)
        executions = Executions(self.launch, self.first)
        state = {"pid": self.pid, "born": _born(self.pid), "shim": os.getpid(), "started": time.time()}
        _write("state.json", state)
        self._reply(state)
        self._attend(waking, log, attaching, executions)
        at = time.time()
        self._kill_the_rest()
        log.close()
        ended = {"code": self.code, "at": at} | self._out_of_memory()
        self._leave_groups()
        _write("exit.json", ended)
        os._exit(0)

    def fail(self, error: Exception) -> None:
        """Tell of an error that is a defect of this program, or of the machine."""
        if self.agent is not None:
            self._reply({"error": f"the keeper failed: {type(error).__name__}: {error}"})

    def _reply(self, what: dict[str, Any]) -> None:
        assert self.agent is not None, "it is answered once"
        text = json.dumps({"directory": self.directory} | what)
        with suppress(OSError):
            self.agent.sendall(text.encode() + b"\n")
        self.agent.close()
        self.agent = None

    # Beginning

    def _start(self) -> str:
        """Start the container; why that cannot be, if so."""
        launch, plan = self.launch, self.launch["isolation"]
        try:
            if plan is not None:
                self._prepare(plan)
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        streams = None
        if not launch["tty"]:
            taken, stdin = os.pipe() if launch["stdin"] else (os.open(os.devnull, os.O_RDONLY), None)
            out, out_end = os.pipe()
            errors, errors_end = os.pipe()
            streams = (taken, out_end, errors_end)
            self.inputs = {out: 1, errors: 2}
            self.stdin = stdin
        child = container.start(launch, streams)
        self.pid = child.pid
        if plan is not None:
            _return_to_own_processes()
        for each in streams or ():
            os.close(each)
        if plan is not None:
            self.first = os.pidfd_open(child.pid)
        failure, terminal = child.outcome()
        if failure:
            os.waitpid(self.pid, 0)
        elif terminal is not None:
            self.inputs = {terminal: 1}
            self.stdin = os.dup(terminal) if launch["stdin"] else None
        return str(failure)

    def _prepare(self, plan: dict[str, Any]) -> None:
        """Make or find the namespaces that outlast a single process.

        `processes`: the next process that is started is in a namespace of its own ("own"), or of the machine ("host");
        else it names the directory of another container, `peer`, whose namespace it is to be in.
        """
        if plan["users"] is not None:
            plan["users"] = users.namespace(*plan["users"])
        if plan["processes"] == "own":
            kernel.unshare(kernel.NEW_PID, "process namespace")
        plan["peer"] = None if plan["processes"] in ("own", "host") else _first_process(plan["processes"])
        if plan["pod"] is not None:
            plan["pod"] = _first_process(plan["pod"])

    def _heed_signals(self) -> socket.socket:
        waking, woken = socket.socketpair()
        for each in (waking, woken):
            each.settimeout(0)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        self._woken = woken
        signal.signal(signal.SIGTERM, lambda *_: self._signal(self.launch["stop_signal"]))
        signal.signal(signal.SIGUSR1, lambda *_: self._kill())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each_signal in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(each_signal, signal.SIG_IGN)
        return waking

    # Attending

    def _attend(self, waking: socket.socket, log: Log, attaching: Attaching, executions: Executions) -> None:
        """Carry what the container prints, until it has ended and there is no more."""
        until: float | None = None
        while self.inputs or self.code is None:
            poll = select.poll()
            for descriptor in (*self.inputs, waking.fileno()):
                poll.register(descriptor, select.POLLIN)
            attaching.register(poll)
            executions.register(poll)
            left = _LOOK_MILLISECONDS if until is None else max(until - time.monotonic(), 0.0) * 1000
            for descriptor, _ in poll.poll(left):
                if descriptor in self.inputs:
                    self._carry(descriptor, log, attaching)
                elif descriptor == waking.fileno():
                    with suppress(BlockingIOError):
                        waking.recv(4096)
                elif not executions.handle(descriptor):
                    attaching.handle(descriptor)
            if self.code is None and not os.path.exists("lock"):
                os.kill(self.pid, signal.SIGKILL)  # its directory was removed: nobody could ever find it again
            if self.code is None:
                self._reap(executions)
            if self.code is not None and until is None:
                self._kill_the_rest()  # what else holds the pipes' ends
                until = time.monotonic() + _DRAIN_SECONDS
            if until is not None and time.monotonic() >= until:
                break
        executions.close()
        attaching.close()

    def _carry(self, descriptor: int, log: Log, attaching: Attaching) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except OSError:  # a terminal that nobody has open any more
            data = b""
        stream = self.inputs[descriptor]
        if data:
            log.write(stream, data)
            attaching.send(stream, data)
        else:
            log.end(stream)
            os.close(descriptor)
            del self.inputs[descriptor]

    def _reap(self, executions: Executions | None = None) -> bool:
        """Whether there is a child left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if pid == self.pid:
                self.code = code
            elif executions is not None:
                executions.ended(pid, code)

    # Ending

    def _signal(self, number: int) -> None:
        if self.pid and self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _kill(self) -> None:
        if self.pid and self.code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
        for pid in {*_children(), *self._in_groups()}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _in_groups(self) -> set[int]:
        """The processes of the container's control groups: also those that are nobody's children of ours."""
        found: set[int] = set()
        for path in self.launch["groups"]:
            with suppress(OSError), open(f"{path}/cgroup.procs") as file:
                found.update(int(each) for each in file.read().split())
        return found - {0, os.getpid()}

    def _kill_the_rest(self) -> None:
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            self._kill()
            if not self._reap() and not self._in_groups():
                return
            time.sleep(0.005)

    def _out_of_memory(self) -> dict[str, str]:
        for path in self.launch["memory_events"]:
            with suppress(OSError, ValueError), open(path) as file:
                said = dict(line.split() for line in file)
                if int(said.get("oom_kill", "0")) and self.code == _KILLED:
                    return {"reason": "OOMKilled"}
        return {}

    def _leave_groups(self) -> None:
        until = time.monotonic() + 1.0
        for path in self.launch["groups"]:
            while not _removed(path) and time.monotonic() < until:
                time.sleep(0.01)  # the last of its processes are still on their way out


def _return_to_own_processes() -> None:
    """Have processes that are started from now on in the namespace of this one."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    kernel.join(own, kernel.NEW_PID, "process namespace")
    os.close(own)


def _first_process(directory: str) -> int:
    """The pidfd of the first process of another keeper's container; an `OSError` if that has ended."""
    try:
        with open(f"{directory}/state.json", "rb") as file:
            first = os.pidfd_open(json.load(file)["pid"])
        lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CLOEXEC)
    except (OSError, ValueError, KeyError):
        raise ProcessLookupError(3, "it does not run", os.path.basename(os.path.dirname(directory))) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return first  # its keeper lives, so the number is still its own
    finally:
        os.close(lock)
    os.close(first)
    raise ProcessLookupError(3, "it does not run", os.path.basename(os.path.dirname(directory)))


def _born(pid: int) -> int:
    """When a process was started, in the kernel's count: with its number, it names one process for ever."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


def _children() -> list[int]:
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(each) for each in file.read().split()]
    except OSError:
        return []


def _removed(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write(name: str, what: dict[str, Any]) -> None:
    """All of it or nothing."""
    with open(f"{name}.part", "w") as file:
        json.dump(what, file)
    os.replace(f"{name}.part", name)
