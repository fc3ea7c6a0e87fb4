from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ostinato.world

SOURCE = Path(__file__).parents[3] / "src"


def modules_after(statement: str) -> set[str]:
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); {statement}; print(*sys.modules)"
    # -S: what site-packages load at start says nothing about Ostinato.
    output = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import ostinato.world") & {"asyncio", "random", "threading", "concurrent", "dataclasses"}


def test_random_numbers_and_ids_need_no_asyncio() -> None:
    assert "asyncio" not in modules_after("from ostinato.world import Ids, Rng; Ids.real().uid(); Rng(0).random()")


def test_the_real_world_does_not_load_the_simulated_one() -> None:
    assert "ostinato.world.simulated" not in modules_after("from ostinato.world import World; World.real()")


def test_every_public_name_can_be_had_and_is_listed() -> None:
    for name in ostinato.world.__all__:
        assert getattr(ostinato.world, name).__name__ == name
        assert name in dir(ostinato.world)


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sundial'"):
        _ = ostinato.world.Sundial  # type: ignore[attr-defined]
