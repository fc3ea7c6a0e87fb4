"""Timing: best of several rounds, with all contenders in each round, so that noise affects all of them.

Measures the processor time of this thread, which does not depend on other load.
"""

from collections.abc import Callable
from time import thread_time

ROUNDS = 15
SECONDS = 0.07  # a round of one contender


def seconds_each(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds per call of each contender."""
    loops = {name: _loops(run) for name, run in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            best[name] = min(best[name], _seconds(run, loops[name]) / loops[name])
    return best


def compare(title: str, reference: str, contenders: dict[str, Callable[[], object]]) -> None:
    """Print the time of each contender and its speed relative to the reference."""
    best = seconds_each(contenders)
    width = max(len(name) for name in contenders)
    print(f"\n{title}")
    for name, seconds in best.items():
        print(f"  {name:<{width}}  {seconds * 1e6:10.2f} us  {best[reference] / seconds:8.2f} x {reference}")


def _seconds(run: Callable[[], object], loops: int) -> float:
    started = thread_time()
    for _ in range(loops):
        run()
    return thread_time() - started


def _loops(run: Callable[[], object]) -> int:
    run()  # whatever is made on first use
    loops = 1
    while (taken := _seconds(run, loops)) < SECONDS / 10:
        loops *= 4
    return max(1, int(loops * SECONDS / max(taken, 1e-9)))
