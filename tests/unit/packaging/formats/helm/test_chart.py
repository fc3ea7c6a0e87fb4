"""The chart's files. That Helm renders and installs it is tested in tests/cluster."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from tests.stage.packages import operator, package, server

from ostinato.packaging import Project, helm_chart
from ostinato.packaging.formats.helm.template import escaped, template_text
from ostinato.packaging.manifest import Expression, Items, Manifest, When


def test_the_files_of_a_chart() -> None:
    files = helm_chart(package())
    assert sorted(files) == [
        ".helmignore",
        "Chart.yaml",
        "templates/NOTES.txt",
        "templates/_helpers.tpl",
        "templates/alerts.yaml",
        "templates/crds/widgets.example.dev.yaml",
        "templates/dashboard.yaml",
        "templates/deployment.yaml",
        "templates/leader-election.yaml",
        "templates/metrics-reader.yaml",
        "templates/metrics-service.yaml",
        "templates/network-policy.yaml",
        "templates/pod-disruption-budget.yaml",
        "templates/rbac.yaml",
        "templates/service-account.yaml",
        "templates/service-monitor.yaml",
        "templates/user-roles.yaml",
        "values.schema.json",
        "values.yaml",
    ]
    assert files == helm_chart(package())


def test_chart_yaml_has_the_metadata_of_the_project() -> None:
    project = Project(
        name="widgets",
        version="1.0rc1",
        description="a: {{ b }}",
        keywords=("x",),
        urls={"Homepage": "https://example.dev", "Repository": "https://example.dev/git"},
    )
    chart = yaml.safe_load(helm_chart(package(project=project))["Chart.yaml"])
    assert (chart["name"], chart["version"], chart["description"]) == ("widgets", "1.0.0-rc.1", "a: {{ b }}")
    assert (chart["home"], chart["sources"], chart["keywords"]) == (
        "https://example.dev",
        ["https://example.dev/git"],
        ["x"],
    )


def test_values_are_the_overrides() -> None:
    values = yaml.safe_load(
        helm_chart(package(replicas=3, env={"A": "{{ x }}"}, features={"alerts": True}, image="a/b:1.10"))[
            "values.yaml"
        ]
    )
    assert values["replicas"] == 3
    assert values["env"] == {"A": "{{ x }}"}
    assert values["features"]["alerts"] is True
    assert values["image"] == {"repository": "a/b", "tag": "1.10", "digest": "", "pullPolicy": "IfNotPresent"}


def test_the_schema_describes_every_value_and_allows_no_other() -> None:
    files = helm_chart(package())
    schema, values = json.loads(files["values.schema.json"]), yaml.safe_load(files["values.yaml"])
    assert set(schema["properties"]) == {*values, "global"}
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]["features"]["properties"]) == set(values["features"])


def test_every_value_is_used_by_a_template_and_every_used_value_exists() -> None:
    files = helm_chart(package())
    text = "".join(text for name, text in files.items() if name.startswith("templates/"))
    used = {found.split(".")[0] for found in re.findall(r"\.Values\.([\w.]+)", text)}
    assert used == set(yaml.safe_load(files["values.yaml"]))


def test_definitions_are_templates_that_are_kept() -> None:
    text = helm_chart(package())["templates/crds/widgets.example.dev.yaml"]
    assert "{{- if .Values.features.crds }}" in text
    assert '"helm.sh/resource-policy" "keep"' in text


def test_webhooks_fix_the_namespace() -> None:
    text = helm_chart(package(of=operator(webhooks=[server()])))["templates/webhook-services.yaml"]
    assert '{{- if ne .Release.Namespace "widgets-system" }}' in text
    assert "install the chart with --namespace widgets-system" in text


def plain(feature: str) -> str:
    return f".Values.{feature}" if feature else ""


def test_expressions_conditions_and_items_become_actions() -> None:
    value = {"kind": "X", "list": ["a", When("on", {"b": Expression(".Values.b")}), Items(".Values.more")]}
    assert template_text([Manifest("x.yaml", value, "all")], plain) == (
        "{{- if .Values.all }}\n---\nkind: X\nlist:\n- a\n{{- if .Values.on }}\n- b: {{ .Values.b | toJson }}\n"
        "{{- end }}\n{{- range .Values.more }}\n- {{ toJson . }}\n{{- end }}\n{{- end }}\n"
    )


@pytest.mark.parametrize("text", ["{{ .Values }}", "{{{{", "a{{{b", "{{- end }}", "{{/* x */}}", "}}", "{", "`{{`"])
def test_literal_braces_are_not_actions(text: str) -> None:
    """What a template engine would print: actions are only those that print `{{`."""
    found = escaped(text)
    assert found.replace('{{ "{{" }}', "\0").count("{{") == 0
    assert found.replace('{{ "{{" }}', "{{") == text


def test_text_that_looks_like_a_token_is_kept() -> None:
    value = {"a": "zz-action-0-z", "b": Expression(".Values.b"), "c": ["zz-action-line-0-z"]}
    text = template_text([Manifest("x.yaml", value)], plain)
    assert text == "---\na: zz-action-0-z\nb: {{ .Values.b | toJson }}\nc:\n- zz-action-line-0-z\n"
