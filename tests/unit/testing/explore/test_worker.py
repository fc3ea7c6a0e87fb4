"""Workers: copies of the process that run batches of worlds."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.report import Report, Send
from ostinato.testing.explore.worker import Numbered, Worker

FATAL = 13  # the number of the plan that ends the process


def work(plans: Sequence[Numbered], send: Send) -> None:
    for number, plan in plans:
        if number == FATAL:
            os._exit(7)
        send(Report([number], [], signature=str(plan), trace=str(os.getpid())))


def test_one_copy_runs_several_batches() -> None:
    worker = Worker.start(work)
    first = list(worker.run([(0, Plan(1)), (1, Plan(2))], 10))
    second = list(worker.run([(0, Plan.parse("3~: conflict @ create pods default/a #1"))], 10))
    assert worker.close() == 0
    assert [each.signature for each in [*first, *second]] == ["1", "2", "3~: conflict @ create pods default/a #1"]
    (process,) = {each.trace for each in [*first, *second]}
    assert process != str(os.getpid())


def test_a_copy_that_ends_in_a_batch_has_sent_its_reports() -> None:
    worker = Worker.start(work)
    assert [each.plans for each in worker.run([(0, Plan()), (FATAL, Plan()), (2, Plan())], 10)] == [[0]]
    assert worker.close() == 7


def test_a_worker_is_full_after_a_number_of_steps() -> None:
    worker = Worker.start(work)
    for _ in worker.run([(0, Plan())], 10):
        assert not worker.is_full
    for _ in worker.run([(0, Plan())], 1_000_000):
        assert worker.is_full
    assert worker.close() == 0
