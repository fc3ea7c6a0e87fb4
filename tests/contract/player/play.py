"""Play scenarios on a stage, concurrently or one after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tests.contract.player.recordings import Answers, Scenario
from tests.contract.player.scene import Scene
from tests.contract.player.server import FAILURES
from tests.contract.player.stage import Stage
from tests.contract.player.steps import Steps
from tests.contract.player.templates import substitute


async def play(stage: Stage, scenario: Scenario) -> Answers:
    """The normalised answers of the compared steps; simulated nodes must exist already."""
    try:
        answers = await _play(stage, scenario)
    except FAILURES as error:
        answers = {"0 run": {"error": repr(error)}}
    result: Answers = json.loads(json.dumps(answers))
    return result


async def play_together(stage: Stage, scenarios: Sequence[Scenario], at_once: int) -> dict[Scenario, Answers]:
    """Play scenarios concurrently, on shared nodes."""
    turn = asyncio.Semaphore(at_once)

    async def one(scenario: Scenario) -> Answers:
        async with turn:
            return await play(stage, scenario)

    async with AsyncExitStack() as stack:
        if scenarios and not stage.agents:
            await stack.enter_async_context(stage.common_nodes())
        return dict(zip(scenarios, await asyncio.gather(*map(one, scenarios)), strict=True))


async def play_in_turn(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Answers]:
    """Play scenarios one after the other, each on its own nodes."""
    return {scenario: await play(stage, scenario) for scenario in scenarios}


async def _play(stage: Stage, scenario: Scenario) -> Answers:
    scene = Scene(stage)
    steps = Steps(scene, scenario.manifests)
    answers: Answers = {}
    try:
        await scene.begin(scenario.script.get("nodes"))
        for number, raw in enumerate(scenario.script["steps"], 1):
            verb = next(iter(raw))
            try:
                answer = await steps.take(verb, substitute(raw[verb], scene.variables))
            except (*FAILURES, KeyError, TypeError, AttributeError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            if answer is not None:
                answers[f"{number} {verb}"] = answer if stage.agents else scene.normal(answer)
        if stage.agents:  # only now: the watch may report an id or an address later than the answer
            await scene.settle(0.3, 3)
            answers = {step: scene.normal(answer) for step, answer in answers.items()}
    finally:
        await scene.end()
    return answers
