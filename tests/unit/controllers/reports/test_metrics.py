"""Metrics: names, labels and buckets as controller-runtime has them; reasons."""

from __future__ import annotations

from tests.stage.controllers import ServerlessStage, without_server

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.controllers import Request, Sink, StartupSource
from ostinato.controllers.reasons import MAX_REASONS, Cause, Reasons, Why

KEY = Request("default", "a")

NAMES = {
    "controller_runtime_reconcile_total": "counter",
    "controller_runtime_reconcile_errors_total": "counter",
    "controller_runtime_terminal_reconcile_errors_total": "counter",
    "controller_runtime_reconcile_panics_total": "counter",
    "controller_runtime_reconcile_timeouts_total": "counter",
    "controller_runtime_reconcile_time_seconds": "histogram",
    "controller_runtime_max_concurrent_reconciles": "gauge",
    "controller_runtime_active_workers": "gauge",
    "ostinato_reconcile_conflicts_total": "counter",
    "ostinato_reconcile_delayed_total": "counter",
    "ostinato_reconcile_hot_loops_total": "counter",
    "ostinato_reconcile_reasons_total": "counter",
    "workqueue_depth": "gauge",
    "workqueue_adds_total": "counter",
    "workqueue_queue_duration_seconds": "histogram",
    "workqueue_work_duration_seconds": "histogram",
    "workqueue_unfinished_work_seconds": "gauge",
    "workqueue_longest_running_processor_seconds": "gauge",
    "workqueue_retries_total": "counter",
}


@without_server
async def test_every_series_is_there_from_the_beginning(stage: ServerlessStage) -> None:
    async def reconcile(request: Request) -> None: ...

    async with stage.running(stage.controller(reconcile)):
        await stage.settle()
        families = stage.metrics.families()
        assert {name: family.kind for name, family in families.items()} == NAMES
        results = {each.labels["result"] for each in families["controller_runtime_reconcile_total"].samples}
        assert results == {"success", "error", "requeue", "requeue_after"}
        assert families["workqueue_adds_total"].samples[0].labels == {"name": "test", "controller": "test"}
        buckets = [
            each.labels["le"]
            for each in families["controller_runtime_reconcile_time_seconds"].samples
            if each.name.endswith("_bucket")
        ]
        assert " ".join(buckets) == (
            "0.005 0.01 0.025 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.45 0.5 0.6 0.7 0.8 0.9 1 1.25 1.5 1.75 2 2.5 3 3.5 "
            "4 4.5 5 6 7 8 9 10 15 20 25 30 40 50 60 +Inf"
        )
        for name in ("workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"):
            bounds = [each.labels["le"] for each in families[name].samples if each.name.endswith("_bucket")]
            assert (
                " ".join(bounds)
                == "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000 +Inf"
            )


@without_server
async def test_a_reconcile_is_timed_and_its_reasons_are_counted(stage: ServerlessStage) -> None:
    async def reconcile(request: Request) -> None:
        await stage.settle(3)

    async with stage.running(stage.controller(reconcile, StartupSource([KEY]))):
        await stage.settle(1)
        assert stage.count("controller_runtime_active_workers") == 1
        await stage.settle(5)
        assert stage.count("controller_runtime_active_workers") == 0
        assert stage.count("controller_runtime_reconcile_time_seconds_sum") == 3
        assert stage.count("ostinato_reconcile_reasons_total", reason="startup") == 1
    assert stage.metrics.sources == []


@without_server
async def test_at_most_a_hundred_reasons_are_distinguished(stage: ServerlessStage) -> None:
    class Chatty:
        async def run(self, sink: Sink) -> None:
            for number in range(150):
                sink.add(number, f"order {number}", 0, None)

    async def reconcile(request: int) -> None: ...

    async with stage.running(stage.controller(reconcile, Chatty())):
        await stage.settle()
        samples = stage.metrics.families()["ostinato_reconcile_reasons_total"].samples
        assert len(samples) == 101
        assert sum(each.value for each in samples) == 150
        assert stage.count("ostinato_reconcile_reasons_total", reason="exceeded_cardinality_limit") == 50


CAUSE = Cause(GroupVersionKind("", "v1", "Pod"), NamespacedName("default", "a"), "1")


def test_reasons_are_merged_bounded_and_taken_once() -> None:
    reasons = Reasons()
    reasons.add(KEY, "one", CAUSE)
    reasons.add(KEY, "one", CAUSE)
    reasons.add(KEY, "two", CAUSE)
    why = reasons.take(KEY, now=0)
    assert (why.reasons, why.causes) == (("one", "two"), (CAUSE, CAUSE, CAUSE))
    assert str(why) == "one, two"
    assert reasons.take(KEY, now=0) == Why((), None)
    for number in range(100):
        reasons.add(KEY, str(number), CAUSE)
    why = reasons.take(KEY, now=0)
    assert len(why.reasons) == MAX_REASONS
    assert why.causes is None


def test_a_retry_among_the_reasons_leaves_the_causes_unknown() -> None:
    reasons = Reasons()
    reasons.add(KEY, "one", CAUSE)
    reasons.add(KEY, "retry")
    reasons.add(KEY, "one", CAUSE)
    assert reasons.take(KEY, now=0).causes is None


def test_a_delayed_key_is_not_a_reason_before_its_time() -> None:
    reasons = Reasons()
    reasons.add_later(KEY, "requeue after", 0, 600)
    reasons.add_later(KEY, "retry", 0, 900)  # the earlier one is waited for
    reasons.add(KEY, "one", CAUSE)
    assert reasons.take(KEY, now=10) == Why(("one",), (CAUSE,))
    reasons.add(KEY, "one", CAUSE)
    assert reasons.take(KEY, now=600) == Why(("one", "requeue after"), None, (CAUSE,))
    assert reasons.take(KEY, now=1000) == Why((), None)
    reasons.add_later(KEY, "retry", 1000, 1000)
    assert reasons.take(KEY, now=1999) == Why(("retry",), None), "what else should it run for?"
