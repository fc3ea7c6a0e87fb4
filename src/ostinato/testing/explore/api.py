"""explore: run an operator through every fault that a cluster can deal it.

    def test_websites_survive_everything(explore):
        explore(websites, scenario=[create(site), edit(site, replicas=3), delete(site)], worlds=2000)

- Each world is a simulation: an API server, processes of the operator, users, virtual time.
- The first world that fails is shrunk and raised as `Unsurvived`, with a timeline and a test to paste.
- `replay` runs one world again, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.object import Object
from ostinato.crd.program import definitions_of_managers, webhooks_of
from ostinato.manager.hosting import Host, hosting
from ostinato.manager.manager import Manager
from ostinato.testing.explore.explorer import Explorer, MakeRun
from ostinato.testing.explore.garbage import rare_collections
from ostinato.testing.explore.operators import Operator
from ostinato.testing.explore.output.report import Failed
from ostinato.testing.explore.output.svg import picture
from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.scenario import Step
from ostinato.testing.explore.shrink import shrink
from ostinato.testing.explore.world.image import make_image
from ostinato.testing.explore.world.outcome import Outcome
from ostinato.testing.explore.world.run import Run
from ostinato.testing.explore.world.settings import Invariant, Subject, Timing
from ostinato.testing.explore.world.state import Freedom
from ostinato.world import World

WORLDS = 300


class Unsurvived(AssertionError):  # noqa: N818
    """A world that the operator does not survive. `failed` has its record."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text())
        self.failed = failed


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `worlds`: at most so many. Defaults to 300.
    - `budget`: seconds of real time after which no world is begun. Defaults to no limit.
    - `seed`: of random choices. Defaults to 1.
    - `only`, `without`: kinds of faults. Default to all of them.
    - `free`: what may differ from the run without faults: `Secret:data.password`, `status.lastSync`, `Pod`.
    - `given`: objects that exist before the scenario.
    - `definitions`: further CustomResourceDefinitions: classes or objects.
    - `external`: by name, what makes the fake of a system outside of the cluster.
    - `always`, `eventually`: invariants, called with a view of all objects.
    - `timing`: virtual times.
    - `collects`: whether the world collects garbage. Defaults to True; False if the operator does it.
    - `part`: number and count of the processes that share the worlds. Defaults to one process.
    - `pictures`: directory for the timeline of a failure, as SVG. Defaults to none.
    """

    worlds: int = WORLDS
    budget: float | None = None
    seed: int = 1
    only: Sequence[str] = ()
    without: Sequence[str] = ()
    free: Sequence[str] = ()
    given: Sequence[Any] = ()
    definitions: Sequence[Any] = ()
    external: Mapping[str, Callable[[], Any]] = {}
    always: Sequence[Invariant] = ()
    eventually: Sequence[Invariant] = ()
    timing: Timing = Timing()
    collects: bool = True
    pictures: str = ""
    part: tuple[int, int] = (0, 1)


class Explored(msgspec.Struct, frozen=True):
    """A finished exploration. `failed`: the first world that failed, shrunk; None if there is none."""

    worlds: int
    coverage: tuple[str, ...]
    failed: Failed | None = None


def explore(operator: Any, *, scenario: Sequence[Step], replay: str = "", **options: Any) -> Explored:
    """Explore an operator; raises `Unsurvived` if a world fails. `options`: see `Options`."""
    found = run(operator, scenario, Options(**options), replay)
    if found.failed is not None:
        raise Unsurvived(found.failed)
    return found


def run(
    operator: Any, scenario: Sequence[Step], options: Options, replay: str = "", make_run: MakeRun = Run
) -> Explored:
    """Explore an operator, and return what was found. `make_run`: makes the worlds; a command has others."""
    if not scenario:
        raise ValueError("explore() scenario is empty; it needs at least one step, e.g. create(site)")
    subject = subject_of(operator, tuple(scenario), options)
    clock = World.real().clock
    end = None if options.budget is None else clock.monotonic() + options.budget

    def explorer_of(subject: Subject) -> Explorer:
        return Explorer(
            subject,
            seed=options.seed,
            only=options.only,
            without=options.without,
            part=options.part,
            make_run=make_run,
            stop=lambda: end is not None and clock.monotonic() >= end,
        )

    def rebuilt(steps: tuple[Step, ...]) -> Explorer:
        return explorer_of(msgspec.structs.replace(subject, scenario=steps))

    name = operator.name if isinstance(operator, Operator) else Operator(operator).name
    with rare_collections() as collects:
        explorer = explorer_of(subject)
        first = explorer.prepare()
        if first.problems:
            return Explored(1, (), _failed(name, first, first, subject.scenario, 0, explorer, options))
        outcomes: Iterable[Outcome] = (
            [explorer.world(Plan.parse(replay))] if replay else explorer.worlds(options.worlds)
        )
        count = 0
        for outcome in outcomes:
            count += 1
            collects()
            if outcome.problems:
                shrunk = shrink(explorer, outcome, rebuilt)
                steps = shrunk.explorer.subject.scenario
                failed = _failed(name, shrunk.outcome, outcome, steps, count, explorer, options)
                return Explored(count, tuple(explorer.coverage.lines()), failed)
    return Explored(count, tuple(explorer.coverage.lines()))


def subject_of(operator: Any, scenario: tuple[Step, ...], options: Options) -> Subject:
    """Return what the worlds are made of; starts a server to make their image."""
    made = operator if isinstance(operator, Operator) else Operator(operator)
    runnables = made.runnables(**{name: make() for name, make in options.external.items()})
    with hosting(Host()):  # it is never run
        manager = Manager(connect=_unconnected).add(*runnables)
    definitions = {
        each["metadata"]["name"]: each
        for each in [*definitions_of_managers([manager], all_kinds=True), *map(_definition, options.definitions)]
    }
    return Subject(
        image=make_image(definitions.values(), options.given, webhooks_of([manager])),
        processes=made.processes,
        scenario=scenario,
        externals=options.external,
        freedom=Freedom.parse(options.free),
        timing=options.timing,
        always=tuple(options.always),
        eventually=tuple(options.eventually),
        collects=options.collects,
    )


def _failed(
    name: str,
    outcome: Outcome,
    original: Outcome,
    steps: tuple[Step, ...],
    number: int,
    explorer: Explorer,
    options: Options,
) -> Failed:
    file = ""
    if options.pictures:
        path = Path(options.pictures) / f"{name}-world-{number}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture(outcome, name))
        file = str(path)
    return Failed(
        name=name,
        outcome=outcome,
        original=original,
        scenario=steps,
        world=number,
        coverage=tuple(explorer.coverage.lines()) if number else (),
        picture=file,
    )


def _definition(given: Any) -> dict[str, Any]:
    if isinstance(given, type) and issubclass(given, Object):
        from ostinato.crd.definition import crd_of  # noqa: PLC0415 - rarely needed

        return crd_of(given)
    definition: dict[str, Any] = given
    return definition


def _unconnected(_: Any) -> Any:
    raise AssertionError("this manager only describes its controllers")
