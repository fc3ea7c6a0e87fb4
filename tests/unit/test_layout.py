"""The directories of tests/unit are those of src/ostinato."""

from __future__ import annotations

from pathlib import Path

UNIT = Path(__file__).parent
SOURCE = UNIT.parents[1] / "src" / "ostinato"


def test_every_directory_of_tests_exists_in_the_source() -> None:
    tested = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")}
    assert sorted(str(path) for path in tested if not (SOURCE / path).is_dir()) == []
