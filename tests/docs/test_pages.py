"""Every page of the documentation does what it says: its Python and shell blocks are run in order.

`pytest tests/docs -k PAGE` runs one page. Markers and rules: `tests/docs/blocks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.running import running
from tests.docs.blocks import pages, read
from tests.docs.running import run_page

MOST_SKIPPED = 50  # of 413 blocks; `pytest tests/docs -k few` lists them
CLUSTER = ("up", "--runtime", "simulated", "--listen", "127.0.0.1:0", "--store", "memory")


@pytest.fixture(scope="session")
def pages_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the cluster of pages with the marker `cluster`."""
    place = tmp_path_factory.mktemp("cluster")
    command = ("-m", "ostinato.cli", *CLUSTER, "--state", str(place / "state"))
    with running(place / "log", *command) as program:
        program.wait_for_output("ready at")
        yield place / "state" / "admin.kubeconfig"


@pytest.mark.parametrize("name", pages())
def test_the_blocks_of_the_page_run(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kubectl, cluster = (partial(request.getfixturevalue, each) for each in ("go_programs", "pages_cluster"))
    run_page(read(name), tmp_path, kubectl, cluster)


def test_few_blocks_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    left = [block for name in pages() for block in read(name).blocks if block.action in ("skip", "compile")]
    with capsys.disabled():
        for block in left:
            print(f"\n{block.place}: {block.action}: {block.reason}", end="")
    assert len(left) <= MOST_SKIPPED, "run more of them"
