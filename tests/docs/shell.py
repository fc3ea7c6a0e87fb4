"""Runs the shell blocks of one page in one bash, so that `cd`, `export` and variables hold to the end of the page.

- In a `console` block, lines after `$ ` are commands, lines after `> ` continue them, and the others are their output.
  Output that is shown must be printed. A command without shown output must succeed.
- A `sh` block is a script; every command of it must succeed.
- A command in the background is the last of its block.
- As root, the page has namespaces of its own: its programs listen on their usual ports, and none outlives the page.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO

from tests.docs.blocks import Block
from tests.docs.outputs import ends_with, same

SECONDS = 60
_NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "--")
_LOOPBACK = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def has_namespaces() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name) for name in ("unshare", "ip"))


class ShellError(AssertionError):
    """A command of the page failed, or printed something else than the page shows."""


@dataclass(frozen=True)
class Command:
    text: str
    output: str


def commands(code: str) -> list[Command]:
    """Return the commands of a `console` block with the output that follows each."""
    found: list[Command] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], ""))
        elif line.startswith("> ") and found and not found[-1].output:
            found[-1] = Command(f"{found[-1].text}\n{line[2:]}", "")
        elif found:
            found[-1] = Command(found[-1].text, f"{found[-1].output}{line}\n")
    return found


class Shell:
    """One bash; `close` ends it and every program that it started."""

    def __init__(self, directory: Path, environment: dict[str, str], *, own_network: bool) -> None:
        self._directory = directory
        self._output = directory.parent / "output"
        self._count = 0
        program = ["bash", "--norc", "--noprofile"]
        self._process = subprocess.Popen(
            [*_NAMESPACES, *_LOOPBACK, *program] if own_network else program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )

    def run(self, block: Block) -> None:
        if block.action == "compile":
            self._check_syntax(block)
        elif block.language == "console":
            *first, last = commands(block.code)
            for command in first:
                self._run_command(block, command)
            if block.action == "background":
                self._start(block, last)
            else:
                self._run_command(block, last)
        else:
            code, printed = self._execute(f"trap 'trap - ERR; return 1' ERR\n{block.code}\ntrap - ERR")
            self._check(block, block.code, code, printed, block.output)

    def directory(self) -> Path:
        """Return the shell's working directory."""
        return Path(self._execute("pwd")[1].strip())

    def _run_command(self, block: Block, command: Command) -> None:
        code, printed = self._execute(command.text)
        self._check(block, command.text, code, printed, command.output or None)

    def _check(self, block: Block, text: str, code: int, printed: str, shown: str | None) -> None:
        if shown is None and code:
            raise ShellError(f"{block.place}: {text}\nexited with {code}:\n{printed}")
        if shown is not None and not same(shown, printed):
            raise ShellError(f"{block.place}: {text}\nthe page shows:\n{shown}\nthis was printed:\n{printed}")

    def _execute(self, text: str) -> tuple[int, str]:
        """Run a command in this shell and return its exit code and output."""
        self._count += 1
        output, done = self._output.with_suffix(f".{self._count}"), self._output.with_suffix(f".{self._count}.done")
        script = self._output.with_suffix(f".{self._count}.sh")
        script.write_text(text + "\n")
        self._send(f"source {script} </dev/null >{output} 2>&1; echo $? >{done}.new; mv {done}.new {done}\n")
        end = time.monotonic() + SECONDS
        while not done.exists():
            if self._process.poll() is not None:
                raise ShellError(f"the shell ended with {self._process.returncode} in: {text}\n{output.read_text()}")
            if time.monotonic() > end:
                raise ShellError(f"did not end in {SECONDS} s: {text}\n{output.read_text()}")
            time.sleep(0.005)
        return int(done.read_text()), output.read_text()

    def _start(self, block: Block, command: Command) -> None:
        """Start a program that stays; return when it has printed what the page shows."""
        self._count += 1
        output, script = self._output.with_suffix(f".{self._count}"), self._output.with_suffix(f".{self._count}.sh")
        output.touch()
        script.write_text(f"exec {command.text}\n")
        self._send(f"source {script} </dev/null >{output} 2>&1 & started_{self._count}=$!\n")
        process = f"$started_{self._count}"
        shown = command.output.strip("\n").splitlines()
        if not shown:
            raise ShellError(f"{block.place}: show what the program prints when it is ready, to wait for it")
        end = time.monotonic() + SECONDS
        while not ends_with(shown, output.read_text().splitlines()):
            ended = self._execute(f"kill -0 {process}")[0]
            if ended or time.monotonic() > end:
                raise ShellError(f"{block.place}: {command.text}\ndid not print {shown[-1]!r}:\n{output.read_text()}")
            time.sleep(0.1)

    def _check_syntax(self, block: Block) -> None:
        texts = [each.text for each in commands(block.code)] if block.language == "console" else [block.code]
        done = subprocess.run(["bash", "-n"], input="\n".join(texts), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ShellError(f"{block.place}: {done.stderr}")

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def close(self) -> None:
        """Terminate the programs in the background, then the shell; kill what does not end."""
        streams: list[IO[str] | None] = [self._process.stdin, self._process.stdout]
        with suppress(BrokenPipeError):
            self._send('jobs=$(jobs -p); [ -z "$jobs" ] || { kill $jobs; wait $jobs; }; exit\n')
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(SECONDS)
        for stream in streams:
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def environment(directory: Path, programs: Path | None) -> dict[str, str]:
    """A reader's: no configuration of this machine, the programs of this environment, kubectl."""
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "LANG", "TERM", "TMPDIR")}
    path = [str(Path(sys.executable).parent), *([str(programs)] if programs else []), os.environ["PATH"]]
    kept["PYTEST_ADDOPTS"] = "-p no:asyncio"  # which the environment of these tests has, and warns without settings
    if not entry_points(group="pytest11", name="ostinato"):  # an environment that is older than the plugin
        kept["PYTEST_ADDOPTS"] += " -p ostinato.testing.plugin"
    return {**kept, "HOME": str(directory.parent), "PATH": ":".join(path)}
