"""Every page of the documentation does what it says: its Python and shell blocks are run in order.

`pytest tests/docs -k PAGE` runs one page. Markers and rules: `tests/docs/blocks.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import pages, read
from tests.docs.running import run_page

MOST_SKIPPED = 40


@pytest.mark.parametrize("name", pages())
def test_the_blocks_of_the_page_run(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run_page(read(name), tmp_path, lambda: request.getfixturevalue("go_programs"))


def test_few_blocks_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    left = [block for name in pages() for block in read(name).blocks if block.action in ("skip", "compile")]
    with capsys.disabled():
        for block in left:
            print(f"\n{block.place}: {block.action}: {block.reason}", end="")
    assert len(left) <= MOST_SKIPPED, "run more of them"
