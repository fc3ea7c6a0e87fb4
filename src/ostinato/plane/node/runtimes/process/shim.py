"""The shim: a program that starts containers, and stays with each of them until its end.

    python -I -S shim.py

It reads the names of directories, a line each, and forks a keeper for each, which starts what the directory's
`launch.json` says and answers with a line of JSON. Whoever started the shim may end; keepers stay.

A keeper holds a lock on its directory's `lock` for as long as it lives, and writes

- `state.json` once the container runs: the process ids of keeper and container, and when it started;
- `exit.json` once it has ended: its exit code, and when;
- what the container prints, to its log file, which is rotated when it gets large (`log`);
- and, to whoever connects to the socket `attach`, what it prints from then on (`attaching`).

On SIGTERM it passes the container's stop signal on, to its first process alone; on SIGUSR1 it kills all of it.
Whatever a container leaves behind is killed when its first process ends: the keeper is the parent of all orphans.

This is a program of its own, started without site packages, that imports nothing of Ostinato's.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import termios
import time
from contextlib import suppress
from typing import Any, NoReturn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(sys.path[0], "..", "..", "volumes"))

from shim_attach import Attaching  # type: ignore[import-not-found]
from shim_log import Log  # type: ignore[import-not-found]
from subpaths import bind, open_subpath  # type: ignore[import-not-found]

_START_FAILED = 128
_KILLED = 128 + signal.SIGKILL
_LOOK_MILLISECONDS = 5000.0  # between two looks at whether its directory is still there
_DRAIN_SECONDS = 2.0  # that are left for what is still in the pipes when the container has ended
_CHUNK = 65536

_SET_PARENT_DEATH_SIGNAL, _SET_NAME, _SET_CHILD_SUBREAPER = 1, 15, 36
_NEW_MOUNT_NAMESPACE = 0x00020000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _SLAVE = 1, 32, 4096, 16384, 1 << 19

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are on their own
    while line := sys.stdin.buffer.readline():
        if os.fork() == 0:
            directory = os.fsdecode(line.rstrip(b"\n"))
            try:
                Keeper(directory).keep()
            finally:
                os._exit(1)


class Keeper:
    def __init__(self, directory: str) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(directory)
        self.directory = directory
        self.answer = os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(nowhere, each)
        self.pid = 0
        self.code: int | None = None  # of the container's first process
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
        _prctl(_SET_CHILD_SUBREAPER, 1)
        _prctl(_SET_NAME, ctypes.c_char_p(b"ostinato-shim"))
        waking = self._heed_signals()
        log = Log(self.launch["log"], self.launch["log_bytes"], self.launch["log_files"])
        if error := self._start():
            _write("exit.json", {"code": _START_FAILED, "at": time.time(), "reason": "StartError", "message": error})
            self._reply({"error": error})
            os._exit(0)
        terminal = next(iter(self.inputs))
        attaching = Attaching(self.stdin, self.launch["tty"], self.launch["stdin_once"], terminal)
        state = {"pid": self.pid, "shim": os.getpid(), "started": time.time()}
        _write("state.json", state)
        self._reply(state)
        self._attend(waking, log, attaching)
        at = time.time()
        self._kill_the_rest()
        log.close()
        ended = {"code": self.code, "at": at} | self._out_of_memory()
        self._leave_groups()
        _write("exit.json", ended)
        os._exit(0)

    def _reply(self, what: dict[str, Any]) -> None:
        text = json.dumps({"directory": self.directory} | what)
        with suppress(OSError):
            os.write(self.answer, text.encode() + b"\n")
        os.close(self.answer)

    # Beginning

    def _start(self) -> str:
        """Start the container; why that cannot be, if so."""
        launch = self.launch
        if launch["tty"]:
            mine, theirs = os.openpty()
            streams = (theirs, theirs, theirs)
            self.inputs = {mine: 1}
            self.stdin = os.dup(mine) if launch["stdin"] else None
        else:
            taken, stdin = os.pipe() if launch["stdin"] else (os.open(os.devnull, os.O_RDONLY), None)
            out, out_end = os.pipe()
            errors, errors_end = os.pipe()
            streams = (taken, out_end, errors_end)
            self.inputs = {out: 1, errors: 2}
            self.stdin = stdin
        failed, failed_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become(launch, streams)
            except OSError as error:
                where = f"{error.filename}: " if error.filename else ""
                os.write(failed_end, f"{where}{error.strerror or error}".encode()[:2000])
            except Exception as error:  # noqa: BLE001 - told to whoever asked for the start
                os.write(failed_end, str(error).encode()[:2000])
            finally:
                os._exit(127)
        for each in {*streams, failed_end}:
            os.close(each)
        with open(failed, "rb") as file:
            said = file.read().decode(errors="replace")
        if said:
            os.waitpid(self.pid, 0)
        return said

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

    def _attend(self, waking: socket.socket, log: Log, attaching: Attaching) -> None:
        """Carry what the container prints, until it has ended and there is no more."""
        until: float | None = None
        while self.inputs or self.code is None:
            poll = select.poll()
            for descriptor in (*self.inputs, waking.fileno()):
                poll.register(descriptor, select.POLLIN)
            attaching.register(poll)
            left = _LOOK_MILLISECONDS if until is None else max(until - time.monotonic(), 0.0) * 1000
            for descriptor, _ in poll.poll(left):
                if descriptor in self.inputs:
                    self._carry(descriptor, log, attaching)
                elif descriptor == waking.fileno():
                    with suppress(BlockingIOError):
                        waking.recv(4096)
                else:
                    attaching.handle(descriptor)
            if self.code is None and not os.path.exists("lock"):
                os.kill(self.pid, signal.SIGKILL)  # its directory was removed: nobody could ever find it again
            if self.code is None:
                self._reap()
            if self.code is not None and until is None:
                self._kill_the_rest()  # what else holds the pipes' ends
                until = time.monotonic() + _DRAIN_SECONDS
            if until is not None and time.monotonic() >= until:
                break
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

    def _reap(self) -> bool:
        """Whether there is a child left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    # Ending

    def _signal(self, number: int) -> None:
        if self.pid and self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _kill(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        for child in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)

    def _kill_the_rest(self) -> None:
        until = time.monotonic() + 5.0
        while time.monotonic() < until:
            self._kill()
            if not self._reap():
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


def _become(launch: dict[str, Any], streams: tuple[int, int, int]) -> None:
    """Turn this process into the container's."""
    os.setsid()
    for number, each in enumerate(streams):
        os.dup2(each, number)
    if launch["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for path in launch["groups"]:
        with open(f"{path}/cgroup.procs", "w") as file:
            file.write("0")
    for name, amount in launch["limits"].items():
        with suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (amount, amount))
    if launch["binds"]:
        _bind(launch["binds"])
    os.chdir(launch["directory"])  # which may be where its user could not go
    if launch["groups_of_user"] is not None:
        os.setgroups(launch["groups_of_user"])
    if launch["group"] is not None:
        os.setgid(launch["group"])
    if launch["user"] is not None:
        os.setuid(launch["user"])
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)  # after the change of user, which would reset it
    signal.set_wakeup_fd(-1)
    for each_signal in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGINT):
        signal.signal(each_signal, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    command = launch["command"]
    try:
        os.execvpe(command[0], command, launch["environment"])  # noqa: S606 - that is what it is for
    except FileNotFoundError:
        where = "no such file or directory" if "/" in command[0] else "executable file not found in $PATH"
        raise RuntimeError(f'exec: "{command[0]}": {where}') from None
    except OSError as error:
        raise RuntimeError(f'exec: "{command[0]}": {(error.strerror or str(error)).lower()}') from None


def _bind(binds: list[tuple[str, str, str, bool]]) -> None:
    """Show files and directories at other places, to this process and its children alone."""
    _mount_call(_libc.unshare(_NEW_MOUNT_NAMESPACE), "mount namespace")
    _mount_call(_libc.mount(b"none", b"/", None, _RECURSIVE | _SLAVE, None), "/")
    for source, sub_path, target, read_only in binds:
        to = os.fsencode(target)
        found = open_subpath(source, sub_path)  # in this namespace: what is bound cannot be of another
        bind(found, target, recursive=True)
        os.close(found)
        if read_only:
            _mount_call(_libc.mount(b"none", to, None, _REMOUNT | _BIND | _READ_ONLY, None), target)


def _mount_call(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


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


def _prctl(option: int, value: object) -> None:
    if hasattr(_libc, "prctl"):
        _libc.prctl(option, value, 0, 0, 0)


def _write(name: str, what: dict[str, Any]) -> None:
    """All of it or nothing."""
    with open(f"{name}.part", "w") as file:
        json.dump(what, file)
    os.replace(f"{name}.part", name)


if __name__ == "__main__":
    main()
