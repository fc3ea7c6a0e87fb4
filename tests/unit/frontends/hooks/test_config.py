"""Configuration of hooks: what is read, and errors that name the field; discovery of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.frontends.hooks.config.fields import ConfigError
from ostinato.frontends.hooks.config.loading import load_config
from ostinato.frontends.hooks.discovery import find_hooks


def v1(text: str) -> str:
    return f"configVersion: v1\n{text}"


ADMISSION = "rules: [{apiGroups: [a], apiVersions: [v1], resources: [b], operations: [CREATE]}]"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the output of --config is empty"),
        ("just text", "the output of --config is a string"),
        ("a: [", "neither YAML nor JSON"),
        ("configVersion: v7", "configVersion: 'v7' is not supported"),
        (v1(""), "no bindings"),
        (v1("onStartup: early"), "onStartup: expected an integer, got a string"),
        (v1("kubernets: []"), "kubernets: unknown field; did you mean 'kubernetes'?"),
        (v1("kubernetes: []"), "kubernetes: expected a list that is not empty"),
        (v1("kubernetes: [{name: x}]"), r"kubernetes\[0\].kind: required"),
        (v1("kubernetes: [{kind: Pod, labelSelektor: {}}]"), r"kubernetes\[0\].labelSelektor: unknown field"),
        (v1("kubernetes: [{kind: Pod, labelSelector: {}}]"), "labelSelector: set matchLabels or matchExpressions"),
        (v1("kubernetes: [{kind: Pod, executeHookOnEvent: [Changed]}]"), r"executeHookOnEvent\[0\]: 'Changed' is none"),
        (v1("kubernetes: [{kind: Pod, apiVersion: a/b/c}]"), r"kubernetes\[0\].apiVersion: unexpected GroupVersion"),
        (v1("kubernetes: [{kind: Pod, jqFilter: '.a ['}]"), r"kubernetes\[0\].jqFilter: jq filter"),
        (v1("kubernetes: [{kind: Pod, resynchronizationPeriod: soon}]"), "'soon' is not a duration"),
        (v1("kubernetes: [{kind: Pod, x-ostinato: {key: uid}}]"), "x-ostinato.key: 'uid' is none of queue, object"),
        (
            v1(
                "kubernetes: [{kind: Pod, nameSelector: {matchNames: [a]}, "
                "fieldSelector: {matchExpressions: [{field: metadata.name, operator: '=', value: a}]}}]"
            ),
            "mutually exclusive",
        ),
        (v1("schedule: [{crontab: '* * *'}]"), r"schedule\[0\].crontab: expected 5 or 6 fields, found 3"),
        (v1("schedule: [{crontab: '* * * * *', includeSnapshotsFrom: [x]}]"), "no kubernetes binding has the name 'x'"),
        (
            v1(
                "kubernetes: [{kind: Pod}, {kind: Node}]\n"
                "schedule: [{crontab: '@daily', includeSnapshotsFrom: [kubernetes]}]"
            ),
            "2 kubernetes bindings have the name 'kubernetes'",
        ),
        (v1(f"kubernetesValidating: [{{name: short, {ADMISSION}}}]"), "needs three parts or more"),
        (v1("kubernetesCustomResourceConversion: [{name: a, crdName: b}]"), "conversions: required"),
        (
            v1("onStartup: 1\nsettings: {executionMinInterval: x}"),
            "settings.executionMinInterval: 'x' is not a duration",
        ),
        (v1("onStartup: 1\nx-ostinato: {timeout: 5s, retries: 2}"), "x-ostinato.retries: unknown field"),
        ("onKubernetesEvent: [{kind: Pod, event: [added]}]", r"event\[0\]: 'added' is none of add, update, delete"),
    ],
)
def test_an_error_names_the_field(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(text)


def test_a_group_includes_the_snapshots_of_its_bindings() -> None:
    config = load_config(
        v1(
            "kubernetes: [{kind: Pod, name: pods, group: g, includeSnapshotsFrom: [nodes]}, {kind: Node, name: nodes},"
            " {kind: Secret, name: secrets, group: g}]\nschedule: [{crontab: '@daily', group: g}]"
        )
    )
    assert [each.include_snapshots for each in config.kubernetes] == [
        ("nodes", "pods", "secrets"),
        (),
        ("pods", "secrets"),
    ]
    assert config.schedules[0].include_snapshots == ("pods", "secrets")


def test_additions_are_read() -> None:
    config = load_config(
        v1(
            "onStartup: 1\nx-ostinato: {timeout: 1m30s, retry: {attempts: 3, backoff: 1s, maxBackoff: 10s}}\n"
            "kubernetes: [{kind: Pod, x-ostinato: {key: object, celFilter: object.metadata.labels}}]"
        )
    )
    options = config.options
    assert (options.timeout, options.attempts, options.backoff, options.longest_backoff) == (90, 3, 1, 10)
    [binding] = config.kubernetes
    assert binding.key == "object"
    assert binding.reduce is not None
    assert binding.reduce.text == "object.metadata.labels"


def test_waiting_for_the_first_list_can_be_disabled_only_with_a_queue() -> None:
    config = load_config(
        v1("kubernetes: [{kind: A, waitForSynchronization: false}, {kind: B, waitForSynchronization: false, queue: q}]")
    )
    assert [each.wait_for_synchronization for each in config.kubernetes] == [True, False]


def test_hooks_are_executables_and_python_files_with_decorators(tmp_path: Path) -> None:
    files = {
        "b.sh": True,
        "a/hook": True,
        "a/config.yaml": True,
        "a/notes.txt": False,
        "forgotten.sh": False,
        ".hidden": True,
        ".git/hook": True,
        "lib/helper.sh": True,
        "deep/lib/helper.sh": False,
        "native.py": False,
        "script.py": True,
    }
    for name, executable in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from ostinato.frontends.hooks import hook\n" if name == "native.py" else "#!/bin/sh\n")
        path.chmod(0o755 if executable else 0o644)
    (tmp_path / "linked").symlink_to(tmp_path / "b.sh")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = find_hooks(tmp_path)
    assert [each.name for each in found.hooks] == ["a/hook", "b.sh", "linked", "native.py", "script.py"]
    assert [each.name for each in found.hooks if each.in_process] == ["native.py"]
    assert sorted(each.partition(":")[0] for each in found.warnings) == ["forgotten.sh", "lib/helper.sh"]
