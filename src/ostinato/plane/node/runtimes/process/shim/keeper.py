"""The keeper: the parent process of one container, from its start to its exit. Part of the shim.

- Holds the lock file `lock` of its directory while it runs, and starts the container as `launch.json` describes.
- Writes `state.json` once the container runs (process ids, start time) and `exit.json` once it has exited.
- Writes the container's output to its log file, with rotation (`log`), and to attached clients (`attach`).
- Runs commands in the container for clients of the socket `exec` (`execution`).
- On SIGTERM, sends the stop signal to the container's first process; on SIGUSR1, kills all its processes.
- Kills remaining processes when the first one exits: through the PID namespace, the control groups or, without either,
  as the subreaper of all orphans.

The directory has mode 0700 and is not visible in the container. Both sockets accept the node's user only.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any, NoReturn

from machine_time import monotonic, sleep, wall  # type: ignore[import-not-found]
from shim import container, kernel, users  # type: ignore[import-not-found]
from shim.attach import AttachServer  # type: ignore[import-not-found]
from shim.execution import ExecServer  # type: ignore[import-not-found]
from shim.log import Log  # type: ignore[import-not-found]

_START_FAILED = 128
_KILLED = 128 + signal.SIGKILL
_POLL_MILLISECONDS = 5000.0  # interval of the check that the directory still exists
_DRAIN_SECONDS = 2.0  # to read remaining output after the container's exit
_CHUNK = 65536


class Keeper:
    def __init__(self, directory: str, agent: socket.socket) -> None:
        """`agent`: socket for the reply; not inherited by the container."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(directory)
        self.directory = directory
        self.agent: socket.socket | None = socket.socket(fileno=os.dup(agent.detach()))
        null = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(null, each)
        os.close(null)
        self.pid = 0
        self.first: int | None = None  # pidfd of the container's first process
        self.code: int | None = None  # exit code of that process
        self.inputs: dict[int, int] = {}  # output descriptors to stream numbers (1 or 2)
        self.stdin: int | None = None

    def keep(self) -> NoReturn:
        lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists("exit.json"):
            self._reply({"error": "start timed out before the keeper ran"})
            os._exit(0)
        with open("launch.json", "rb") as file:
            self.launch: dict[str, Any] = json.load(file)
        kernel.hide_from_debuggers()
        kernel.become_subreaper()
        kernel.set_name("ostinato-shim")
        waking = self._install_signal_handlers()
        log = Log(self.launch["log"], self.launch["log_bytes"], self.launch["log_files"])
        if error := self._start():
            _write("exit.json", {"code": _START_FAILED, "at": wall(), "reason": "StartError", "message": error})
            self._remove_cgroups()
            self._reply({"error": error})
            os._exit(0)
        terminal = next(iter(self.inputs))
        attach_server = AttachServer(self.stdin, self.launch["tty"], self.launch["stdin_once"], terminal)
        exec_server = ExecServer(self.launch, self.first)
        state = {"pid": self.pid, "start_ticks": _start_ticks(self.pid), "shim": os.getpid(), "started": wall()}
        _write("state.json", state)
        self._reply(state)
        self._serve_until_exit(waking, log, attach_server, exec_server)
        at = wall()
        self._kill_remaining()
        log.close()
        ended = {"code": self.code, "at": at} | self._out_of_memory()
        self._remove_cgroups()
        _write("exit.json", ended)
        os._exit(0)

    def fail(self, error: Exception) -> None:
        """Report an unexpected error to the agent."""
        if self.agent is not None:
            self._reply({"error": f"keeper failed: {type(error).__name__}: {error}"})

    def _reply(self, what: dict[str, Any]) -> None:
        assert self.agent is not None, "replies once"
        text = json.dumps({"directory": self.directory} | what)
        with suppress(OSError):
            self.agent.sendall(text.encode() + b"\n")
        self.agent.close()
        self.agent = None

    # Start

    def _start(self) -> str:
        """Start the container; return the error, empty on success."""
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
        """Create or open the namespaces that the container joins.

        `processes`: PID namespace of the container: "own", "host", or the directory of another container, whose first
        process becomes `peer`. `memory_peer`: another container whose /dev/shm it shares.
        """
        if plan["users"] is not None:
            plan["users"] = users.namespace(*plan["users"])
        if plan["processes"] == "own":
            kernel.unshare(kernel.NEW_PID, "process namespace")
        plan["peer"] = None if plan["processes"] in ("own", "host") else _first_process(plan["processes"])
        for key in ("pod", "memory_peer"):
            if plan[key] is not None:
                plan[key] = _first_process(plan[key])
        if plan["network"] is not None:
            plan["network"] = _open_network(**plan["network"])

    def _install_signal_handlers(self) -> socket.socket:
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

    # Serve

    def _serve_until_exit(
        self, waking: socket.socket, log: Log, attach_server: AttachServer, exec_server: ExecServer
    ) -> None:
        """Forward output and serve both sockets until the container has exited and its output is drained."""
        until: float | None = None
        while self.inputs or self.code is None:
            poll = select.poll()
            for descriptor in (*self.inputs, waking.fileno()):
                poll.register(descriptor, select.POLLIN)
            attach_server.register(poll)
            exec_server.register(poll)
            left = _POLL_MILLISECONDS if until is None else max(until - monotonic(), 0.0) * 1000
            for descriptor, _ in poll.poll(left):
                if descriptor in self.inputs:
                    self._forward_output(descriptor, log, attach_server)
                elif descriptor == waking.fileno():
                    with suppress(BlockingIOError):
                        waking.recv(4096)
                elif not exec_server.handle(descriptor):
                    attach_server.handle(descriptor)
            if self.code is None and not os.path.exists("lock"):
                os.kill(self.pid, signal.SIGKILL)  # its directory was removed: no agent could recover it
            if self.code is None:
                self._reap(exec_server)
            if self.code is not None and until is None:
                self._kill_remaining()  # other processes may hold the pipes open
                until = monotonic() + _DRAIN_SECONDS
            if until is not None and monotonic() >= until:
                break
        exec_server.close()
        attach_server.close()

    def _forward_output(self, descriptor: int, log: Log, attach_server: AttachServer) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except OSError:  # EIO: the terminal's slave is closed
            data = b""
        stream = self.inputs[descriptor]
        if data:
            log.write(stream, data)
            attach_server.send(stream, data)
        else:
            log.end(stream)
            os.close(descriptor)
            del self.inputs[descriptor]

    def _reap(self, exec_server: ExecServer | None = None) -> bool:
        """Reap exited children; return whether any child remains."""
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
            elif exec_server is not None:
                exec_server.ended(pid, code)

    # Stop

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
        for pid in {*_children(), *self._in_cgroups()}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _in_cgroups(self) -> set[int]:
        """Return the processes in the container's control groups, including those that are not our descendants."""
        found: set[int] = set()
        for path in self.launch["groups"]:
            with suppress(OSError), open(f"{path}/cgroup.procs") as file:
                found.update(int(each) for each in file.read().split())
        return found - {0, os.getpid()}

    def _kill_remaining(self) -> None:
        until = monotonic() + 5.0
        while monotonic() < until:
            self._kill()
            if not self._reap() and not self._in_cgroups():
                return
            sleep(0.005)

    def _out_of_memory(self) -> dict[str, str]:
        for path in self.launch["memory_events"]:
            with suppress(OSError, ValueError), open(path) as file:
                counters = dict(line.split() for line in file)
                if int(counters.get("oom_kill", "0")) and self.code == _KILLED:
                    return {"reason": "OOMKilled"}
        return {}

    def _remove_cgroups(self) -> None:
        until = monotonic() + 1.0
        for path in self.launch["groups"]:
            while not _removed(path) and monotonic() < until:
                sleep(0.01)  # exiting processes are still members


def _return_to_own_processes() -> None:
    """Fork later children into this process's own PID namespace again."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    kernel.join(own, kernel.NEW_PID, "process namespace")
    os.close(own)


def _open_network(path: str, identity: int) -> int:
    """Return a descriptor of the Pod's network namespace, which the agent holds open at `path`.

    `identity`: its inode number; another namespace at the same path is refused.
    """
    try:
        network = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if os.fstat(network).st_ino == identity:
            return network
        os.close(network)
    except OSError:
        pass
    raise OSError(2, "it is gone; the node has ended", "network namespace of the Pod") from None


def _first_process(directory: str) -> int:
    """Return the pidfd of the first process of another container; `OSError` if it is not running."""
    try:
        with open(f"{directory}/state.json", "rb") as file:
            first = os.pidfd_open(json.load(file)["pid"])
        lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CLOEXEC)
    except (OSError, ValueError, KeyError):
        raise ProcessLookupError(3, "container not running", os.path.basename(os.path.dirname(directory))) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return first  # its keeper is alive, so the process id was not reused
    finally:
        os.close(lock)
    os.close(first)
    raise ProcessLookupError(3, "container not running", os.path.basename(os.path.dirname(directory)))


def _start_ticks(pid: int) -> int:
    """Return the start time of a process in kernel ticks; with its id it identifies the process uniquely."""
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
    """Write a file atomically."""
    with open(f"{name}.part", "w") as file:
        json.dump(what, file)
    os.replace(f"{name}.part", name)
