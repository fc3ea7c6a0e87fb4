"""The `ostinato` command with a page, as a process, and its page in a browser."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

from playwright.sync_api import BrowserContext

START = 60.0  # seconds


class Program:
    """A running command, its page, and what it prints."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ostinato.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: Queue[str] = Queue()
        self.printed: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.wait(r"page: (\S+\?token=\S+)")  # its token works once
        self.address = self.url.partition("?")[0]
        self._cookies: list[dict[str, object]] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def wait(self, pattern: str) -> str:
        """Wait for a line; return its first group, or the line."""
        while line := self._lines.get(timeout=START):
            self.printed.append(line)
            if (found := re.search(pattern, line)) is not None:
                return found[1] if found.groups() else line
        raise AssertionError(f"ended before it printed {pattern}: {''.join(self.printed)}")

    def enter(self, context: BrowserContext) -> None:
        """Give a browser access: with the token at first, then with the cookie that it was exchanged for."""
        if not self._cookies:
            entrance = context.new_page()
            entrance.goto(self.url)
            self._cookies = [dict(cookie) for cookie in context.cookies()]
            entrance.close()  # the tab of the test is the only one
        context.add_cookies(self._cookies)  # type: ignore[arg-type]

    def end(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[Program]:
    program = Program(*arguments)
    try:
        yield program
    finally:
        program.end()


@contextlib.contextmanager
def plane(state: Path) -> Iterator[Program]:
    """A control plane with real processes as Pods, whose page may write."""
    arguments = [
        "--listen",
        "127.0.0.1:0",
        "--processes",
        "1",
        "--page",
        ":0",
        "--page-writes",
        "--pod-network-cidr",
        "none",
    ]
    with running("up", "--state", str(state), *arguments) as program:
        program.wait("ready at")
        yield program
