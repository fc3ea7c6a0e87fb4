"""The original and ours beside each other on one API server, with the same recording hooks.

Contexts of each binding must be equal, in every field, with these exceptions:

| difference | reason |
|---|---|
| how many contexts one run has | depends on what waits in the queue at its start |
| how often a schedule has run | depends on when each program has started |
| snapshots in contexts of schedules | depend on when the schedule runs |
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tests.cluster.hook_programs import Kubectl, originals, ours, require, theirs, wait_until

Json = dict[str, Any]

RECORD = """#!/usr/bin/env bash
if [[ $1 == --config ]]; then cat <<'EOF'
{config}
EOF
exit 0
fi
cp $BINDING_CONTEXT_PATH $RECORDS/{name}-$(date +%s%N).json.new
for each in $RECORDS/{name}-*.new; do mv $each ${{each%.new}}; done
"""

FIRST = """
configVersion: v1
onStartup: 5
kubernetes:
- name: whole
  apiVersion: v1
  kind: ConfigMap
  labelSelector: {matchExpressions: [{key: side, operator: In, values: [a, b]}]}
  namespace: {nameSelector: {matchNames: [default]}}
- name: filtered
  kind: configmaps
  labelSelector: {matchLabels: {side: a}}
  jqFilter: "{data: .data, size: (.data // {} | length)}"
  executeHookOnEvent: [Modified, Deleted]
  includeSnapshotsFrom: [whole, filtered]
  keepFullObjectsInMemory: false
- name: named
  kind: Secret
  watchEvent: [Added]
  nameSelector: {matchNames: [one, two]}
  namespace: {nameSelector: {matchNames: [default]}}
- name: followed
  kind: cm
  namespace: {labelSelector: {matchLabels: {side: "yes"}}}
- name: fields
  kind: Secret
  fieldSelector: {matchExpressions: [{field: metadata.name, operator: Equals, value: two}]}
"""
SECOND = """
configVersion: v1
kubernetes:
- {name: ones, kind: ConfigMap, group: g, labelSelector: {matchLabels: {side: a}}}
- name: twos
  kind: Secret
  group: g
  queue: other
  labelSelector: {matchLabels: {side: a}}
  executeHookOnSynchronization: false
schedule:
- {name: tick, crontab: "*/3 * * * * *", group: g}
- {name: tock, crontab: "*/3 * * * * *", includeSnapshotsFrom: [twos], queue: third}
"""


class Records:
    """The contexts that the hooks of one program have recorded."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def contexts(self) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for path in sorted(self.directory.glob("*.json")):
            for context in json.loads(path.read_text()):
                found.setdefault(f"{path.name.partition('-')[0]} {context['binding']}", []).append(context)
        return found

    def count(self, binding: str) -> int:
        return len(self.contexts().get(binding, ()))


class Steps:
    """Changes of the cluster; after each, both programs must have recorded what follows from it."""

    def __init__(self, kubectl: Kubectl, records: list[Records]) -> None:
        self.kubectl = kubectl
        self._records = records
        self._expected: dict[str, int] = {}

    def __call__(self, *arguments: str, stdin: str = "", then: tuple[str, ...] = ()) -> None:
        if arguments:
            self.kubectl(*arguments, stdin=stdin)
        for binding in then:
            self._expected[binding] = self._expected.get(binding, 0) + 1
        for records in self._records:
            wait_until(
                lambda records=records: all(records.count(b) >= n for b, n in self._expected.items()),  # type: ignore[misc]
                lambda records=records: f"{records.directory.name}: {self._expected} {records.contexts().keys()}",  # type: ignore[misc]
                30,
            )


def test_contexts_are_those_of_the_original(kubeconfig: Path, tmp_path: Path) -> None:
    require("kubectl", "jq")
    original = originals()
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name, config in (("first", FIRST), ("second", SECOND)):
        path = hooks / f"{name}.sh"
        path.write_text(RECORD.format(config=config, name=name))
        path.chmod(0o755)
    kubectl = Kubectl(kubeconfig)
    kubectl("create", "namespace", "side-followed")
    kubectl("-n", "side-followed", "create", "configmap", "before")
    kubectl("-n", "default", "create", "-f", "-", stdin=_map("present", side="a"))
    left, right = Records(tmp_path / "theirs"), Records(tmp_path / "ours")
    with (
        theirs(
            hooks,
            tmp_path / "theirs.log",
            kubeconfig,
            "--listen-port",
            str(_free_port()),
            original=original,
            RECORDS=str(left.directory),
        ),
        ours(hooks, tmp_path / "ours.log", kubeconfig, original=original, RECORDS=str(right.directory)),
    ):
        _play(Steps(kubectl, [left, right]))
    before, after = left.contexts(), right.contexts()
    assert before.keys() == after.keys()
    for binding in sorted(before):
        if binding.endswith(("tick", "tock")):
            assert [_shape(each) for each in after[binding][:1]] == [_shape(each) for each in before[binding][:1]]
        else:
            assert after[binding] == before[binding], binding


def _play(steps: Steps) -> None:
    first = ("first onStartup", "first whole", "first filtered", "first named", "first followed", "first fields")
    steps(then=(*first, "second twos", "second tick", "second tock"))
    default = ("-n", "default")
    steps(*default, "create", "-f", "-", stdin=_map("a", side="a"), then=("first whole", "second ones"))
    change = ("first whole", "first filtered", "second ones")
    steps(*default, "patch", "cm", "a", "-p", '{"data":{"x":"2"}}', then=change)
    steps(*default, "annotate", "cm", "a", "no=filter", then=("first whole", "second ones"))
    steps(*default, "label", "cm", "a", "side=b", "--overwrite", then=change)
    steps(*default, "delete", "cm", "a", then=("first whole",))
    steps(*default, "create", "secret", "generic", "one", then=("first named",))
    steps(*default, "create", "secret", "generic", "two", then=("first named", "first fields"))
    steps(*default, "create", "secret", "generic", "three")
    steps(*default, "label", "secret", "three", "side=a", then=("second twos",))
    steps("label", "namespace", "side-followed", "side=yes")
    steps(then=("second tick",))  # until the namespace is followed
    steps(then=("second tick",))
    steps("-n", "side-followed", "create", "configmap", "during", then=("first followed",))
    steps("-n", "side-followed", "delete", "configmap", "during", then=("first followed",))


def _map(name: str, **labels: str) -> str:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"x": "1"}}
    return json.dumps(value)


def _shape(context: Json) -> Json:
    return {key: sorted(value) if key == "snapshots" else value for key, value in context.items()}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
