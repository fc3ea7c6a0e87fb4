from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers.workloads.replicaset.test_replicaset import a_pod

from ostinato.cache import Entry
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Pod
from ostinato.manager import Manager
from ostinato.plane.controllers.workloads.replicaset.pods import PodSummaries, PodSummary, summarize
from ostinato.plane.objects.pod_state import PodState

SINCE = "2026-01-01T12:00:00Z"


class _Data(msgspec.Struct):
    """The fields of an entry that a summary needs."""

    data: bytes


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({}, PodSummary(finished=False, ready=False)),
        ({"phase": "Pending", "conditions": None}, PodSummary(finished=False, ready=False)),
        ({"phase": "Failed"}, PodSummary(finished=True, ready=False)),
        ({"phase": "Succeeded"}, PodSummary(finished=True, ready=False)),
        (
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}]},
            PodSummary(finished=False, ready=True, ready_since=SINCE),
        ),
        (
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": SINCE}]},
            PodSummary(finished=False, ready=False),
        ),
    ],
)
def test_a_summary_has_the_relevant_fields(status: dict[str, Any], answer: PodSummary) -> None:
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": []}, "status": status}
    assert summarize(_Data(msgspec.json.encode(document))) == answer  # type: ignore[arg-type]


def test_each_state_of_a_pod_is_decoded_once_and_deleted_pods_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(stage: Stage) -> None:
        looks = 0

        def counting(entry: Entry) -> PodSummary:
            nonlocal looks
            looks += 1
            return summarize(entry)

        monkeypatch.setattr("ostinato.plane.controllers.workloads.replicaset.pods.summarize", counting)

        def watching(manager: Manager) -> None:
            manager.build("watching").watch_for(PodState).complete(lambda request: None)

        pods = stage.run(watching).informers.of(PodState).store
        await stage.client.create(a_pod("a"))
        await stage.settle()
        summaries = PodSummaries()
        [entry] = pods.entries()
        assert summaries.at(entry) == summaries.at(entry)
        assert looks == 1
        await stage.client.patch(Pod, "a", MergePatch({"status": {"phase": "Failed"}}), subresource="status")
        await stage.settle()
        [entry] = pods.entries()
        assert summaries.at(entry).finished
        assert (looks, len(summaries)) == (2, 1)
        summaries.forget(entry)
        assert len(summaries) == 0

    on_stage(play)
