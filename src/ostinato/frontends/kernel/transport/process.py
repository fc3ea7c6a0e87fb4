"""Process transport: runs an executable to its end, with limits.

    result = await run_process(Command(("hook.sh", "--config"), timeout=30), world, on_line=log)

- Each line of stdout and stderr is passed on as it appears, cut at `Command.longest_line`; beyond `most_output` bytes
  the rest is read and dropped, so that the process does not block.
- The process leads a session of its own. A timeout and the cancellation of the caller kill the whole group.
- A background child that keeps the pipes open does not delay the result: the end of the leader decides.
- No threads: the event loop waits for pipes and process. In a simulation the process runs to its end at once.
"""

from __future__ import annotations

import asyncio
import os
import resource
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec

from ostinato.world import Clock, World

Stream = Literal["stdout", "stderr"]
OnLine = Callable[[Stream, str], object]
"""Called with each line of output."""

_CHUNK: Final = 65_536
_POLL: Final = 0.25  # seconds between checks of the deadline, and of a process without a pidfd


class Command(msgspec.Struct, frozen=True):
    """
    - `arguments`: program and arguments; no shell is involved.
    - `directory`: working directory. Defaults to that of this process.
    - `environment`: all variables of the process. Defaults to those of this process.
    - `timeout`: seconds after which the group is killed; 0 is never. Defaults to 0.
    - `longest_line`: characters of a line. Defaults to 10,000.
    - `most_output`: bytes of a stream that are passed on. Defaults to 16 MiB.
    - `kept`: bytes of each stream that the result holds: the first of stdout, the last of stderr. Defaults to 64 KiB.
    """

    arguments: Sequence[str]
    directory: str | None = None
    environment: Mapping[str, str] | None = None
    timeout: float = 0.0
    longest_line: int = 10_000
    most_output: int = 16 * 1024 * 1024
    kept: int = 65_536


class Usage(NamedTuple):
    """What the process has used."""

    user_seconds: float
    system_seconds: float
    max_rss_bytes: int


class ProcessResult(NamedTuple):
    """
    - `exit_code`: negative for a signal.
    - `stdout`: the first bytes, `stderr`: the last ones.
    - `dropped`: bytes of output that were not passed on.
    """

    exit_code: int
    usage: Usage
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    dropped: int = 0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out

    def problem(self, timeout: float = 0.0) -> str:
        """Describe a failure: the end of stderr, or the exit code."""
        if self.timed_out:
            return f"timed out after {timeout:g} s; killed"
        text = self.stderr.decode("utf-8", "replace").strip()
        status = f"killed by signal {-self.exit_code}" if self.exit_code < 0 else f"exit code {self.exit_code}"
        return f"{status}: {text[-2000:]}" if text else status


async def run_process(command: Command, world: World, on_line: OnLine | None = None) -> ProcessResult:
    """Run a command to its end. Raises OSError if it cannot be started.

    Cancelled, it kills the process group and waits for its end.
    """
    loop = asyncio.get_running_loop()
    if not _has_real_descriptors(loop):
        return await world.executor.run(_run_blocking, command, world.clock, on_line)
    process = _Process(command, on_line)
    ended = loop.create_future()

    def readable(descriptor: int) -> None:
        if process.read(descriptor):
            loop.remove_reader(descriptor)
        if process.has_ended and not ended.done():
            ended.set_result(None)

    for descriptor in process.descriptors:
        loop.add_reader(descriptor, readable, descriptor)
    try:
        try:
            if command.timeout > 0:
                async with world.clock.timeout(command.timeout):
                    await ended
            else:
                await ended
        except TimeoutError:
            process.kill(timed_out=True)
        except BaseException:
            process.kill()
            raise
    finally:
        for descriptor in process.descriptors:
            loop.remove_reader(descriptor)
        process.finish()
    return process.result()


def _run_blocking(command: Command, clock: Clock, on_line: OnLine | None) -> ProcessResult:
    process = _Process(command, on_line)
    started, silent = clock.monotonic(), 0.0
    with selectors.DefaultSelector() as selector:
        for descriptor in process.descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        try:
            while not process.has_ended:
                found = selector.select(_POLL if command.timeout else None)
                silent += 0.0 if found else _POLL  # virtual time stands still meanwhile
                for key, _ in found:
                    if process.read(key.fd):
                        selector.unregister(key.fd)
                if command.timeout and max(clock.monotonic() - started, silent) >= command.timeout:
                    process.kill(timed_out=True)
                    break
        except BaseException:
            process.kill()
            raise
        finally:
            process.finish()
    return process.result()


class _Process:
    def __init__(self, command: Command, on_line: OnLine | None) -> None:
        self._command = command
        self._popen = subprocess.Popen(  # noqa: S603 - the point of the module
            list(command.arguments),
            cwd=command.directory,
            env=None if command.environment is None else dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            restore_signals=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._streams = {
            self._popen.stdout.fileno(): _Lines("stdout", command, on_line),
            self._popen.stderr.fileno(): _Lines("stderr", command, on_line),
        }
        for descriptor in self._streams:
            os.set_blocking(descriptor, False)
        self._pidfd = os.pidfd_open(self._popen.pid) if hasattr(os, "pidfd_open") else -1
        self._open = set(self._streams)
        self._has_exited = False
        self._timed_out = False
        self._usage = Usage(0.0, 0.0, 0)

    @property
    def descriptors(self) -> tuple[int, ...]:
        return (*self._streams, *([self._pidfd] if self._pidfd >= 0 else ()))

    @property
    def has_ended(self) -> bool:
        return self._has_exited or (self._pidfd < 0 and not self._open)

    def read(self, descriptor: int) -> bool:
        """Handle a readable descriptor; return whether it is at its end."""
        if descriptor == self._pidfd:
            self._has_exited = True
            return True
        data = _read(descriptor)
        if data is None:
            return False
        if data:
            self._streams[descriptor].feed(data)
            return False
        self._open.discard(descriptor)
        return True

    def kill(self, *, timed_out: bool = False) -> None:
        """Kill the process and its group."""
        self._timed_out = timed_out
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Reap the process, and read what is left in its pipes."""
        _, status, usage = os.wait4(self._popen.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        self._usage = _usage(usage)
        for descriptor in self._open:
            while data := _read(descriptor):
                self._streams[descriptor].feed(data)
        for lines in self._streams.values():
            lines.end()
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def result(self) -> ProcessResult:
        out, err = self._streams.values()
        return ProcessResult(
            self._popen.returncode,
            self._usage,
            bytes(out.kept),
            bytes(err.kept),
            self._timed_out,
            out.dropped + err.dropped,
        )


class _Lines:
    """Splits the output of one stream into lines."""

    def __init__(self, stream: Stream, command: Command, on_line: OnLine | None) -> None:
        self._stream: Stream = stream
        self._command = command
        self._on_line = on_line
        self._partial = bytearray()
        self._passed = 0
        self.kept = bytearray()
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        self._keep(data)
        room = max(0, self._command.most_output - self._passed)
        self._passed += min(room, len(data))
        self.dropped += max(0, len(data) - room)
        if self._on_line is None:
            return
        self._partial += data[:room]
        *lines, rest = self._partial.split(b"\n")
        for line in lines:
            self._emit(bytes(line))
        self._partial = bytearray(rest)
        if len(self._partial) > 4 * self._command.longest_line:  # a line without an end
            self._emit(bytes(self._partial))
            self._partial.clear()

    def end(self) -> None:
        if self._partial:
            self._emit(bytes(self._partial))
            self._partial.clear()

    def _keep(self, data: bytes) -> None:
        most = self._command.kept
        if self._stream == "stdout":
            self.kept += data[: max(0, most - len(self.kept))]
        else:
            self.kept += data
            del self.kept[: max(0, len(self.kept) - most)]

    def _emit(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        if not text.strip() or self._on_line is None:
            return
        longest = self._command.longest_line
        self._on_line(self._stream, text if len(text) <= longest else f"{text[:longest]}:truncated")


def _read(descriptor: int) -> bytes | None:
    """Read what is there: b"" at the end, None if there is nothing yet."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _usage(found: resource.struct_rusage) -> Usage:
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(found.ru_utime, found.ru_stime, found.ru_maxrss * unit)


def _has_real_descriptors(loop: asyncio.AbstractEventLoop) -> bool:
    return isinstance(loop, asyncio.SelectorEventLoop) or "uvloop" in type(loop).__module__
