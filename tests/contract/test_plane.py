"""The control plane handles scripted scenarios like the real one: the share of equal results may only grow.

With `--cluster KUBECONFIG` the scenarios run on that server instead: it must run controllers and a scheduler, and have
no nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cluster.planes import PlaneProcess
from tests.contract.counts import Result, best_of_two, hold
from tests.contract.player.play import play_in_turn, play_together
from tests.contract.player.recordings import Answers, Scenario, files, scenarios
from tests.contract.player.stage import plane
from tests.stage.stores import Stores

AT_ONCE = 32  # scenarios that share their nodes; they mostly wait


@pytest.fixture(scope="module")
def kubeconfigs(
    stores: Stores, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Path]]:
    """Three planes, two of them for scenarios with their own nodes; or the given one."""
    other = request.config.getoption("--cluster")
    if other:
        yield [Path(other)]
        return
    places = [tmp_path_factory.mktemp("plane") for _ in range(3)]
    processes = [PlaneProcess(place, "--nodes", "0", *stores.options(place)) for place in places]
    try:
        for process in processes:
            process.start()
        yield [process.kubeconfig for process in processes]
    finally:
        codes = [process.stop() for process in processes]
    assert codes == [0, 0, 0], "\n".join(process.log()[-2000:] for process in processes)


@pytest.fixture(scope="module")
def results(kubeconfigs: list[Path], request: pytest.FixtureRequest) -> dict[Scenario, Result]:
    """The results of the scenarios of all selected groups, which are played concurrently."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    groups = {str(item.callspec.params["group"]) for item in items if item.module is request.module}
    return compared(kubeconfigs, [scenario for group in sorted(groups) for scenario in scenarios("plane", group)])


@pytest.mark.parametrize("group", files("plane"))
def test_the_plane_does_as_recorded(
    group: str, results: dict[Scenario, Result], kubeconfigs: list[Path], request: pytest.FixtureRequest
) -> None:
    cases = scenarios("plane", group)

    def again(i: int) -> Result:
        return compared(kubeconfigs, [cases[i]])[cases[i]]

    best = best_of_two(f"plane/{group}", [results[case] for case in cases], again)
    hold(request, f"plane/{group}", best, sum(len(case.expected) for case in cases))


def compared(kubeconfigs: Sequence[Path], cases: Sequence[Scenario]) -> dict[Scenario, Result]:
    """The comparison of each scenario with its recording."""
    answers = asyncio.run(answers_of(kubeconfigs, cases))
    return {case: case.compare(answers[case]) for case in cases}


async def answers_of(kubeconfigs: Sequence[Path], cases: Sequence[Scenario]) -> dict[Scenario, Answers]:
    """Scenarios on shared nodes are played on the first plane, the others on the rest, if any."""
    common, own = ([case for case in cases if case.has_nodes is has_nodes] for has_nodes in (False, True))

    async def together() -> dict[Scenario, Answers]:
        async with plane(kubeconfigs[0]) as stage:
            return await play_together(stage, common, AT_ONCE)

    async def in_turn(kubeconfig: Path, share: Sequence[Scenario]) -> dict[Scenario, Answers]:
        async with plane(kubeconfig) as stage:
            return await play_in_turn(stage, share)

    if len(kubeconfigs) == 1:
        return await together() | await in_turn(kubeconfigs[0], own)
    others = kubeconfigs[1:]
    shares = [in_turn(kubeconfig, own[i :: len(others)]) for i, kubeconfig in enumerate(others)]
    parts = await asyncio.gather(together(), *shares)
    return {case: answers for part in parts for case, answers in part.items()}
