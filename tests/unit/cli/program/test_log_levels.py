"""Log levels of `ostinato run`: the program's lines are not drowned in those of the control plane."""

from __future__ import annotations

import argparse
import asyncio
import io
import logging
from collections.abc import Iterator
from types import ModuleType

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.options import run as options
from ostinato.cli.program.embedded import Embedded
from ostinato.cli.program.log_levels import initial_levels, parse_levels, program_levels, set_levels
from ostinato.cli.program.program import Program
from ostinato.controllers import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager, ReportingOptions, configure_logging
from ostinato.manager.logs import ReconcileFilter
from ostinato.world import World


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A log that takes everything; levels are restored afterwards."""
    root, names = logging.getLogger(), ("", "ostinato", "ostinato.plane", "ostinato.server")
    before = {name: logging.getLogger(name).level for name in names}
    stream = io.StringIO()
    configure_logging("text", stream=stream)
    yield stream
    logging.captureWarnings(capture=False)
    for handler in [each for each in root.handlers if any(isinstance(f, ReconcileFilter) for f in each.filters)]:
        root.removeHandler(handler)
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_levels_are_given_for_a_logger_or_for_all() -> None:
    assert parse_levels(["debug", "ostinato.plane=Info", "a=b=ERROR"]) == {
        "root": "DEBUG",
        "ostinato.plane": "INFO",
        "a=b": "ERROR",
    }


@pytest.mark.parametrize("text", ["loud", "shop=", "shop=loud", "=INFO", ""])
def test_an_invalid_level_is_rejected(text: str) -> None:
    with pytest.raises(CommandError, match=f"--log-level {text}: use LOGGER=LEVEL; LEVEL is one of DEBUG, INFO"):
        parse_levels([text])


@pytest.mark.parametrize(
    ("verbosity", "expected"),
    [
        (0, {"ostinato.plane": "WARNING", "ostinato.server": "WARNING"}),
        (1, {"ostinato.plane": "WARNING", "ostinato.server": "WARNING"}),
        (2, {"ostinato": "DEBUG", "ostinato.plane": "WARNING", "ostinato.server": "WARNING"}),
    ],
)
def test_the_embedded_control_plane_logs_warnings_unless_asked(verbosity: int, expected: dict[str, str]) -> None:
    assert initial_levels(verbosity, {}, embedded=True) == expected
    changed = initial_levels(verbosity, {"ostinato.plane": "DEBUG"}, embedded=True)
    assert changed == {**expected, "ostinato.plane": "DEBUG"}


def test_verbose_applies_to_the_controllers_and_modules_of_the_program() -> None:
    @controller(ConfigMap)
    async def maps(config_map: ConfigMap, ctx: Context) -> None: ...

    usual = Manager().add(maps)
    own = Manager(reporting=ReportingOptions(logger=logging.getLogger("shop"))).add(maps)
    program = Program([ModuleType("operators.shop")], [usual, own])
    assert program_levels(program, 0, {}) == {}
    assert program_levels(program, 1, {}) == {"ostinato.maps": "DEBUG", "shop.maps": "DEBUG", "operators": "DEBUG"}
    assert "shop.maps" not in program_levels(program, 1, {"shop.maps": "ERROR"})


def test_the_embedded_control_plane_is_silent_at_its_level(stream: io.StringIO) -> None:
    set_levels({"root": "DEBUG", **initial_levels(2, {}, embedded=True)})

    async def main() -> None:
        world = World.real()
        cluster = Embedded(world, None)
        await cluster.start()
        await asyncio.sleep(1)
        await cluster.close()
        world.executor.close()

    asyncio.run(main())
    lines = [line for line in stream.getvalue().splitlines() if " ostinato" in line]
    assert [line for line in lines if " WARNING " not in line and " ERROR " not in line] == []


def test_the_help_names_the_loggers_of_the_control_plane() -> None:
    parser = argparse.ArgumentParser(prog="ostinato")
    options.add_to(parser.add_subparsers())
    run = next(each for each in parser._actions if each.choices)
    text = " ".join(run.choices["run"].format_help().split())  # type: ignore[index,call-overload]
    assert "one line per reconcile with object, reason, duration and result" in text
    assert "ostinato.plane and ostinato.server" in text
