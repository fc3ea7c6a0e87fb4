"""`ostinato explore`: fault exploration of a program."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.time import Duration, TimeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import Found, find, load_all
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.controllers.controller import Controller
from ostinato.controllers.front_end import FrontEnd
from ostinato.manager.hosting import Host
from ostinato.testing.explore.api import Explored, Options, run
from ostinato.testing.explore.command import FAULTS, TIMING, CommandRun
from ostinato.testing.explore.invariants import invariants_of
from ostinato.testing.explore.invention import invent
from ostinato.testing.explore.operators import Operator
from ostinato.testing.explore.scenario import Step
from ostinato.testing.explore.scenario_file import read_scenario


class ExploreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato explore --help`."""

    files: Sequence[str]
    scenario: str = ""
    budget: str = "60s"
    worlds: int = 2000
    processes: int = 1
    seed: int = 1
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    free: Sequence[str] = ()
    replay: str = ""
    pictures: str = ""
    part: str = ""
    command_line: str = ""


def explore(options: ExploreOptions) -> int:
    """Explore a program and print the report; return the exit code: 1 if a world failed."""
    if options.processes > 1 and not options.part:
        return _in_processes(options)
    if options.command_line:
        return _explore_command(options)
    files = [find(each) for each in options.files]
    program = _loaded(files)
    scenarios = _scenarios(program, options)
    chosen = _options(program.modules, options, len(scenarios))
    operator = _operator(program, files)
    for name, steps in scenarios.items():
        _say(f"{name}: {', '.join(map(str, steps))}")
        try:
            found = run(operator, steps, chosen, options.replay)
        except ValueError as error:
            raise CommandError(str(error)) from None
        _report(found)
        if found.failed is not None:
            return 1
    return 0


def _loaded(files: Sequence[Found]) -> Program:
    host = Host()
    return program_of(load_all(files, host), host)


def _operator(program: Program, files: Sequence[Found]) -> Operator:
    """Return what is explored. Each new process loads the program again if some of it can be run only once."""
    if any(isinstance(each, Controller | FrontEnd) for each in program.runnables):
        return Operator(lambda: _loaded(files).runnables)
    return Operator(program.runnables, program.modules)


def _explore_command(options: ExploreOptions) -> int:
    """Explore a program of any language, in real time."""
    definitions = _definitions(options.files)
    scenarios = {each["spec"]["names"]["kind"]: invent(each) for each in definitions}
    if options.scenario:
        scenarios = {options.scenario: _read(options.scenario)}
    common = msgspec.structs.replace(options, only=options.only or FAULTS)
    chosen = msgspec.structs.replace(
        _options((), common, len(scenarios)), definitions=definitions, timing=TIMING, pictures=options.pictures
    )
    for name, steps in scenarios.items():
        _say(f"{name}: {', '.join(map(str, steps))}")
        found = run(Operator([], ()), steps, chosen, options.replay, partial(CommandRun, options.command_line))
        _report(found)
        if found.failed is not None:
            return 1
    return 0


def _definitions(files: Sequence[str]) -> list[dict[str, Any]]:
    try:
        documents = [each for file in files for each in decode_yaml_documents(Path(file).read_bytes()) if each]
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    found = [each for each in documents if each.get("kind") == "CustomResourceDefinition"]
    if not found:
        raise CommandError("--command: the FILEs have no CustomResourceDefinition")
    return found


def _read(path: str) -> list[Step]:
    try:
        return read_scenario(path)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None


def _scenarios(program: Program, options: ExploreOptions) -> dict[str, Sequence[Step]]:
    if options.scenario:
        return {options.scenario: _read(options.scenario)}
    found: dict[str, Sequence[Step]] = {each["spec"]["names"]["kind"]: invent(each) for each in definitions_of(program)}
    if not found:
        raise CommandError("the program defines no custom kind to invent a scenario for; use --scenario FILE")
    return found


def _options(modules: Iterable[Any], options: ExploreOptions, scenarios: int) -> Options:
    always, eventually = invariants_of(modules)
    try:
        seconds = Duration.parse(options.budget).nanoseconds / 1e9
    except TimeError:
        raise CommandError(f"--budget {options.budget}: want a duration such as 60s or 10m") from None
    part, _, parts = options.part.partition("/")
    if options.part and not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise CommandError(f"--part {options.part}: want I/N, with I from 0 to N-1")
    return Options(
        worlds=max(1, options.worlds // scenarios),
        budget=seconds / scenarios,
        seed=options.seed,
        only=options.only,
        without=options.without,
        free=options.free,
        always=always,
        eventually=eventually,
        pictures=options.pictures,
        part=(int(part), int(parts)) if parts else (0, 1),
    )


def _in_processes(options: ExploreOptions) -> int:
    """Run the command in several processes, each with its part of the worlds."""
    arguments: list[str] = [*options.files]
    given: dict[str, Any] = msgspec.structs.asdict(options)
    for name in ("scenario", "budget", "worlds", "seed", "replay", "pictures"):
        if given[name] != "":
            arguments += [f"--{name}", str(given[name])]
    for name in ("only", "without", "free"):
        arguments += [text for each in given[name] for text in (f"--{name}", each)]
    count = options.processes
    command = [sys.executable, "-m", "ostinato.cli", "explore", *arguments]
    children = [subprocess.Popen([*command, "--part", f"{number}/{count}"]) for number in range(count)]  # noqa: S603
    return max(child.wait() for child in children)


def _report(found: Explored) -> None:
    if found.failed is not None:
        _say(found.failed.text())
        return
    _say(f"{found.worlds} worlds survived")
    for line in found.coverage:
        _say(f"  {line}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
