"""How the parts are divided among processes."""

from __future__ import annotations

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.processes.division import DIVISIONS, default_processes, divide
from ostinato.plane.parts import COMPONENTS


@pytest.mark.parametrize("processes", DIVISIONS)
def test_every_part_runs_in_exactly_one_process(processes: int) -> None:
    found = divide(processes)
    assert len(found) == processes
    assert sorted(part for parts in found for part in parts) == sorted(["apiserver", *COMPONENTS])


def test_a_process_without_parts_is_not_started() -> None:
    assert divide(3, {"nodes"}) == [["apiserver"], ["controllers", "scheduler"]]


def test_one_process_is_not_divided() -> None:
    assert divide(1) == []


@pytest.mark.parametrize("processes", [-1, 0, 5])
def test_other_numbers_are_rejected(processes: int) -> None:
    with pytest.raises(CommandError, match=f"--processes {processes}: want a number from 1 to 4"):
        divide(processes)


def test_the_default_depends_on_the_cores() -> None:
    assert [default_processes(cores) for cores in (1, 2, 3, 16)] == [1, 2, 3, 3]
