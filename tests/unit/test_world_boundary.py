"""Outside `ostinato.world`, nothing reads a clock, draws a random number, makes an id, sleeps or starts a thread.

A single call that goes around the world makes every simulation of what uses it worthless, so the source is searched for
the ways there are:

- Modules that exist for this: importing them, under whatever name, is refused.
- Functions of other modules: the clocks of `datetime`, the entropy of `os`, and the waits, timeouts and threads of
  asyncio. asyncio's own would work in a simulation, but on the loop's time and not on the machine's, which may run fast
  or slow: waits and timeouts go through `Clock`, blocking calls through `Executor`.
- Methods of event loops that do the same, on whatever object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ostinato"

MODULES = (
    "_thread",
    "concurrent.futures",
    "multiprocessing",
    "random",
    "sched",
    "secrets",
    "threading",
    "time",
    "uuid",
)

FUNCTIONS = {
    "asyncio": frozenset({"sleep", "timeout", "timeout_at", "to_thread", "wait_for", "run_coroutine_threadsafe"}),
    "datetime.date": frozenset({"today"}),
    "datetime.datetime": frozenset({"now", "today", "utcnow"}),
    "os": frozenset({"fork", "forkpty", "getrandom", "times", "urandom"}),
}

LOOP_METHODS = frozenset({"call_at", "call_later", "run_in_executor", "set_default_executor"})
LOOP_NAMES = ("loop", "get_running_loop", "get_event_loop", "new_event_loop")


def violations(code: str) -> list[str]:
    """What a module does that only the world may do, a line each, in the order of the source."""
    tree = ast.parse(code)
    origins = dict(_imported_names(tree))
    found = [(node.lineno, what) for node in ast.walk(tree) for what in _violations_of(node, origins)]
    return [f"line {line}: {what}" for line, what in sorted(found)]


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Each local name that an import makes, and what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _violations_of(node: ast.AST, origins: dict[str, str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (f"import of {alias.name}" for alias in names if _is_forbidden_module(alias.name))
        case ast.ImportFrom(module=str(module), level=0, names=names):
            for alias in names:
                name = f"{module}.{alias.name}"
                if _is_forbidden_module(module) or _is_forbidden_module(name) or _is_forbidden_function(name):
                    yield f"import of {name}"
                elif alias.name == "*" and any(owner.startswith(module) for owner in FUNCTIONS):
                    yield f"import of everything in {module}"
        case ast.Attribute(value=value, attr=attribute):
            name = _dotted(node, origins)
            if name and (_is_forbidden_function(name) or _is_forbidden_module(name)):
                yield f"use of {name}"
            elif attribute in LOOP_METHODS or (attribute == "time" and _is_loop(value)):
                yield f"use of a loop's {attribute}"
        case ast.Call(func=func, args=[ast.Constant(value=str(module)), *_]):
            if _dotted(func, origins) in ("__import__", "importlib.import_module") and _is_forbidden_module(module):
                yield f"import of {module}"
        case ast.Call(func=func, keywords=keywords):
            if _dotted(func, origins) == "asyncio.wait" and any(keyword.arg == "timeout" for keyword in keywords):
                yield "use of asyncio.wait with a timeout"


def _is_forbidden_module(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in MODULES)


def _is_forbidden_function(name: str) -> bool:
    owner, _, function = name.rpartition(".")
    if owner.startswith("asyncio."):  # asyncio.tasks.sleep is asyncio.sleep
        owner = "asyncio"
    return function in FUNCTIONS.get(owner, ())


def _dotted(node: ast.AST, origins: dict[str, str]) -> str | None:
    """The full name of `a.b.c`, with `a` replaced by what it was imported as."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    if node.id not in origins:
        return node.id if not parts else None  # a local name: it may be called time and be anything
    return ".".join([origins[node.id], *reversed(parts)])


def _is_loop(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_").endswith(LOOP_NAMES)


# The shim that watches over a container is a program of its own: it is started by none but the process runtime, whose
# containers are real, and runs in no simulation.
PROGRAMS = frozenset((SOURCE / "plane" / "node" / "runtimes" / "process" / "shim").glob("*.py"))

MODULES_OF_OSTINATO = sorted(
    path for path in SOURCE.rglob("*.py") if SOURCE / "world" not in path.parents and path not in PROGRAMS
)


def test_nothing_goes_around_the_world() -> None:
    assert len(MODULES_OF_OSTINATO) >= 5
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in MODULES_OF_OSTINATO
        if (lines := violations(path.read_text(encoding="utf-8")))
    }
    assert not found, "take a World, or the part of it that is needed: see docs/concepts/determinism.md"


def test_the_shim_forks_and_does_nothing_else_around_the_world() -> None:
    found = [line for path in PROGRAMS for line in violations(path.read_text(encoding="utf-8"))]
    assert found
    assert [line for line in found if "fork" not in line] == []


def test_the_world_itself_would_be_found() -> None:
    found = [path.name for path in (SOURCE / "world").rglob("*.py") if violations(path.read_text(encoding="utf-8"))]
    assert {"clock.py", "ids.py", "rng.py", "threads.py"} <= set(found)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import time", "import of time"),
        ("import time as t", "import of time"),
        ("from time import sleep as s", "import of time.sleep"),
        ("def f():\n    import time", "import of time"),
        ("import os, random", "import of random"),
        ("from random import *", "import of random.*"),
        ("from uuid import uuid4", "import of uuid.uuid4"),
        ("import secrets", "import of secrets"),
        ("import threading", "import of threading"),
        ("import _thread", "import of _thread"),
        ("import concurrent.futures", "import of concurrent.futures"),
        ("import concurrent.futures.thread as pool", "import of concurrent.futures.thread"),
        ("from concurrent import futures", "import of concurrent.futures"),
        ("from concurrent.futures import ThreadPoolExecutor", "import of concurrent.futures.ThreadPoolExecutor"),
        ("import concurrent\nconcurrent.futures", "use of concurrent.futures"),
        ("import multiprocessing.pool", "import of multiprocessing.pool"),
        ("__import__('time')", "import of time"),
        ("import importlib\nimportlib.import_module('random')", "import of random"),
        ("from importlib import import_module as load\nload('uuid')", "import of uuid"),
        ("import datetime\ndatetime.datetime.now()", "use of datetime.datetime.now"),
        ("import datetime as dt\ndt.datetime.utcnow()", "use of datetime.datetime.utcnow"),
        ("from datetime import datetime\ndatetime.now(tz)", "use of datetime.datetime.now"),
        ("from datetime import datetime as d, UTC\nf = d.now", "use of datetime.datetime.now"),
        ("from datetime import date\ndate.today()", "use of datetime.date.today"),
        ("from datetime import *", "import of everything in datetime"),
        ("import os\nos.urandom(8)", "use of os.urandom"),
        ("from os import urandom", "import of os.urandom"),
        ("import os as system\nsystem.getrandom(8)", "use of os.getrandom"),
        ("import asyncio\nasyncio.sleep(1)", "use of asyncio.sleep"),
        ("import asyncio as aio\npause = aio.sleep", "use of asyncio.sleep"),
        ("from asyncio import sleep as s", "import of asyncio.sleep"),
        ("from asyncio import *", "import of everything in asyncio"),
        ("from asyncio.tasks import sleep", "import of asyncio.tasks.sleep"),
        ("from asyncio import tasks\ntasks.sleep(1)", "use of asyncio.tasks.sleep"),
        ("import asyncio\nasyncio.timeout(1)", "use of asyncio.timeout"),
        ("import asyncio\nasyncio.timeout_at(1)", "use of asyncio.timeout_at"),
        ("import asyncio\nasyncio.wait_for(x, 1)", "use of asyncio.wait_for"),
        ("import asyncio\nasyncio.wait(x, timeout=1)", "use of asyncio.wait with a timeout"),
        ("import asyncio\nasyncio.to_thread(f)", "use of asyncio.to_thread"),
        ("self.loop.run_in_executor(None, f)", "use of a loop's run_in_executor"),
        ("anything.call_later(1, f)", "use of a loop's call_later"),
        ("anything.call_at(1, f)", "use of a loop's call_at"),
        ("loop.time()", "use of a loop's time"),
        ("self._loop.time()", "use of a loop's time"),
        ("import asyncio\nasyncio.get_running_loop().time()", "use of a loop's time"),
    ],
)
def test_a_way_around_the_world_is_found(code: str, what: str) -> None:
    line = code.count("\n") + 1
    assert violations(code) == [f"line {line}: {what}"]


@pytest.mark.parametrize(
    "code",
    [
        "from datetime import datetime, timedelta, timezone, UTC\ndatetime.fromtimestamp(0, UTC)\ntimedelta(1)",
        "from datetime import time\ntime(12)",
        "from ostinato.api import time\ntime.parse(text)",
        "from ostinato.api.time import MicroTime",
        "from .time import parse\nfrom . import random",
        "import asyncio\nasyncio.Event()\nasyncio.create_task(f())\nasyncio.gather(f())\nasyncio.wait([t])",
        "import os\nos.environ\nos.path.join(a, b)\nos.getpid()",
        "import concurrent",
        "async def f(clock):\n    await clock.sleep(1)\n    async with clock.timeout(2):\n        clock.now()",
        "time = entry.time\nrandom = 3\ntime.seconds",
        "timestamps.time()\nworld.rng.random()",
        "import importlib\nimportlib.import_module('json')\nimportlib.import_module(name)",
        "import functools\nfunctools.partial('time')",
    ],
)
def test_what_only_looks_like_it_is_left_alone(code: str) -> None:
    assert violations(code) == []


def test_every_violation_is_named_with_its_line() -> None:
    code = "import time\nimport json\n\n\ndef f():\n    import uuid, random\n"
    assert violations(code) == ["line 1: import of time", "line 6: import of random", "line 6: import of uuid"]
