"""Nodes run scripted Pods like a kubelet: the share of equal results may only grow.

Containers are processes here; with `--cluster KUBECONFIG` the scenarios run on that server instead, including those
that need real containers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cluster.planes import PlaneProcess
from tests.contract.counts import Result, best_of_two, hold
from tests.contract.player.kubectl import Kubectl
from tests.contract.player.play import play_together
from tests.contract.player.recordings import Answers, Scenario, files, scenarios
from tests.contract.player.stage import cluster
from tests.stage.stores import Stores

AT_ONCE = 16  # they mostly wait


@pytest.fixture(scope="module")
def kubeconfig(
    stores: Stores, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    other = request.config.getoption("--cluster")
    if other:
        yield Path(other)
        return
    place = tmp_path_factory.mktemp("node")
    process = PlaneProcess(place, "--nodes", "1", "--runtime", "process", *stores.options(place))
    process.start()
    yield process.kubeconfig
    assert process.stop() == 0, process.log()[-2000:]


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path, go_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl of the recorded version: its error messages are compared."""
    return Kubectl(str(go_programs / "kubectl"), kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module")
def results(kubeconfig: Path, kubectl: Kubectl, request: pytest.FixtureRequest) -> dict[Scenario, Result]:
    """The results of the scenarios of all selected groups, which are played concurrently."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    groups = {str(item.callspec.params["group"]) for item in items if item.module is request.module}
    wanted = sorted(group for group in groups if playable(group, request))
    return compared(kubeconfig, kubectl, [scenario for group in wanted for scenario in scenarios("node", group)])


@pytest.mark.parametrize("group", files("node"))
def test_a_node_does_as_recorded(group: str, request: pytest.FixtureRequest) -> None:
    if not playable(group, request):
        pytest.skip("a process has neither an image nor a root of its own")
    results: dict[Scenario, Result] = request.getfixturevalue("results")
    cases = scenarios("node", group)

    def again(i: int) -> Result:
        case = cases[i]
        return compared(request.getfixturevalue("kubeconfig"), request.getfixturevalue("kubectl"), [case])[case]

    best = best_of_two(f"node/{group}", [results[case] for case in cases], again)
    hold(request, f"node/{group}", best, sum(len(case.expected) for case in cases))


def playable(group: str, request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--cluster")) or not group.startswith("container-")


def compared(kubeconfig: Path, kubectl: Kubectl, cases: Sequence[Scenario]) -> dict[Scenario, Result]:
    """The comparison of each scenario with its recording."""

    async def play_all() -> dict[Scenario, Answers]:
        async with cluster(kubeconfig, kubectl) as stage:
            return await play_together(stage, cases, AT_ONCE)

    answers = asyncio.run(play_all())
    return {case: case.compare(answers[case]) for case in cases}
