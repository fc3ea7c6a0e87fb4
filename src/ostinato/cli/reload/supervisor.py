"""Supervisor: runs the program in a process of its own and restarts it when its sources change.

- A change restarts the process once the sources have been the same for `_SETTLE` seconds: an editor may write several.
- A change that does not compile is reported; the process goes on with the previous sources.
- A process that ends by itself is not restarted before the next change.
- The process is the leader of a process group: a signal of the terminal reaches only the supervisor, and whatever the
  program has started ends with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from ostinato.cli.reload.program_process import Attachment
from ostinato.cli.reload.sources import Sources, syntax_errors
from ostinato.controllers.guards.program import relative
from ostinato.world import World

_POLL: Final = 0.25  # seconds, as those below
_SETTLE: Final = 0.1
_STOP: Final = 10.0  # after SIGTERM, before SIGKILL


class Supervisor:
    """Served together with the embedded cluster; see `ostinato.manager.running.Served`."""

    def __init__(self, world: World, sources: Sources, options: bytes, kubeconfig: Path | None) -> None:
        """
        - `options`: the options of the command, as JSON.
        - `kubeconfig`: of the embedded cluster; None without one.
        """
        self._world = world
        self._clock = world.clock
        self._sources = sources
        self._options = options
        self._kubeconfig = kubeconfig
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = asyncio.Event()

    async def serve(self) -> None:
        """Run until `stop`."""
        try:
            while not self._stopping.is_set():
                with _Pipe() as pipe:
                    self._process = self._started(pipe)
                    try:
                        await self._watch()
                    finally:
                        await self._end()
        finally:
            self.kill()

    def stop(self) -> None:
        self._stopping.set()

    async def synced(self) -> None:
        """Return at once: the process waits for its caches itself."""

    def kill(self) -> None:
        """End the process and its children immediately."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._process = None

    def _started(self, pipe: _Pipe) -> subprocess.Popen[bytes]:
        attachment = Attachment(
            options=msgspec.Raw(self._options),
            pipe=pipe.theirs,
            kubeconfig=None if self._kubeconfig is None else str(self._kubeconfig),
        )
        # Compiled files are compared by size and whole seconds: a second change within one would be missed.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "ostinato.cli.reload.program_process", msgspec.json.encode(attachment).decode()],
            pass_fds=[pipe.theirs],
            stdin=subprocess.DEVNULL,  # reading from the terminal would stop a process in the background
            process_group=0,
            env=environment,
        )

    async def _watch(self) -> None:
        """Return when the process is to be restarted or stopped."""
        assert self._process is not None
        ended = False
        while not self._stopping.is_set():
            await self._clock.sleep(_POLL)
            if not ended and self._process.poll() is not None:
                ended = True
                _report(f"ended with exit code {self._process.returncode}; waiting for a change of the sources")
            changed = await self._changed()
            if not changed:
                continue
            errors = await self._world.executor.run(syntax_errors, changed)
            if not errors:
                _report(f"reloading: {_names(changed)} changed")
                return
            for error in errors:
                _report(f"{error}\n{'' if ended else 'keeping the previous program; '}waiting for a change")

    async def _changed(self) -> list[Path]:
        """Return the changed files, once they no longer change."""
        found = latest = await self._world.executor.run(self._sources.changed)
        while latest:
            await self._clock.sleep(_SETTLE)
            latest = await self._world.executor.run(self._sources.changed)
            found += [each for each in latest if each not in found]
        return found

    async def _end(self) -> None:
        """Stop the process gracefully, then end whatever it has started."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            with suppress(TimeoutError):
                async with self._clock.timeout(_STOP):
                    while process.poll() is None:
                        await self._clock.sleep(_POLL / 10)
        self.kill()


class _Pipe:
    """A pipe that the process reads: it is closed when this process ends, and so ends the other."""

    def __enter__(self) -> Self:
        self.theirs, self._ours = os.pipe()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.theirs)
        os.close(self._ours)


def _names(files: Sequence[Path]) -> str:
    names = [relative(str(each)) for each in files]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _report(text: str) -> None:
    sys.stderr.write(f"ostinato run: {text}\n")
    sys.stderr.flush()
