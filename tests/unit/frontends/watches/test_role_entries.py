"""watches.yaml with roles and playbooks."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.roles import RoleController
from ostinato.frontends.watches import WatchesError, load_watches
from ostinato.frontends.watches.file import expand


def make(directory: Path, text: str) -> Path:
    (directory / "roles" / "memcached" / "tasks").mkdir(parents=True)
    (directory / "playbook.yml").write_text("[]")
    file = directory / "watches.yaml"
    file.write_text(text)
    return file


def loaded(file: Path) -> list[RoleController]:
    found = load_watches(file)
    assert all(isinstance(each, RoleController) for each in found)
    return found  # type: ignore[return-value]


WHOLE = """
- version: v1alpha1
  group: cache.example.com
  kind: Memcached
  role: memcached
  vars: {color: blue, size: ${SIZE}, kept: "${NOT_SET}"}
  reconcilePeriod: 1m30s
  manageStatus: false
  watchDependentResources: false
  watchClusterScopedResources: true
  watchAnnotationsChanges: true
  snakeCaseParameters: false
  markUnsafe: true
  maxRunnerArtifacts: 3
  blacklist: [{group: "", version: v1, kind: ConfigMap}]
  selector: {matchLabels: {a: b}}
  finalizer: {name: cache.example.com/finalizer, playbook: playbook.yml, vars: {state: absent}}
  future: 1
- version: v1
  group: cache.example.com
  kind: Backup
  playbook: playbook.yml
"""


def test_all_fields_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("SIZE", "7")
    monkeypatch.setenv("WORKER_MEMCACHED_CACHE_EXAMPLE_COM", "4")
    monkeypatch.setenv("ANSIBLE_VERBOSITY_BACKUP_CACHE_EXAMPLE_COM", "9")
    with caplog.at_level(logging.WARNING):
        first, second = loaded(make(tmp_path, WHOLE))
    options = first.role_options
    assert first.view is not None
    assert first.view.gvk == GroupVersionKind("cache.example.com", "v1alpha1", "Memcached")
    assert first.content.path == tmp_path / "roles" / "memcached"
    assert options.vars == {"color": "blue", "size": 7, "kept": "${NOT_SET}"}
    assert (options.reconcile_period, options.max_artifacts, options.workers) == (90.0, 3, 4)
    assert (options.manage_status, options.watch_dependents, options.snake_case) == (False, False, False)
    assert options.watch_cluster_scoped
    assert options.watch_annotations
    assert options.mark_unsafe
    assert options.blacklist == (GroupVersionKind("", "v1", "ConfigMap"),)
    assert options.finalizer is not None
    assert options.finalizer.playbook == str(tmp_path / "playbook.yml")
    assert "unknown key ignored" in caplog.text
    assert (second.role_options.verbosity, second.role_options.manage_status) == (7, True)
    assert (second.role_options.reconcile_period, second.role_options.mark_unsafe) == (36_000.0, False)


def test_roles_are_found_where_ansible_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = tmp_path / "c" / "ansible_collections" / "acme" / "tools" / "roles" / "web"
    collection.mkdir(parents=True)
    (tmp_path / "more" / "roles" / "db").mkdir(parents=True)
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", f"{tmp_path / 'nowhere'}:{tmp_path / 'c'}")
    monkeypatch.setenv("ANSIBLE_ROLES_PATH", str(tmp_path / "more"))
    text = "- {version: v1, kind: Web, role: acme.tools.web}\n- {version: v1, kind: Db, role: db}\n"
    assert [each.content.path for each in loaded(make(tmp_path, text))] == [
        collection,
        tmp_path / "more" / "roles" / "db",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": no entries; add one with group, version, kind, and chart, role or playbook"),
        ("a: b", ": expected a list of entries; begin each with `- `"),
        ("\n- [1]", ", line 2: expected an entry with group, version and kind"),
        ("- {kind: A, role: memcached}", ", line 1: version: must not be empty"),
        ("- {version: v1, role: memcached}", ", line 1: kind: must not be empty"),
        ("- {version: v1, kind: A}", ", line 1: expected one of chart, role and playbook, found none"),
        (
            "- {version: v1, kind: A, role: a, playbook: b}",
            ", line 1: expected one of chart, role and playbook, found role and playbook",
        ),
        (
            "- {version: v1, kind: A, role: memcached}\n- {version: v1, kind: A, role: memcached}",
            ", line 2: duplicate kind A of /v1; it is in line 1 too",
        ),
        (
            "- {version: v1, kind: A, role: memcached, reconcilePeriod: soon}",
            ', line 1: reconcilePeriod: time: invalid duration "soon"; write a duration such as 30s or 1h',
        ),
        (
            "- {version: v1, kind: A, role: memcached, manageStatus: maybe}",
            ", line 1: manageStatus: expected `bool | null`, got `str`",
        ),
        (
            "- {version: v1, kind: A, role: memcached, finalizer: {vars: {a: b}}}",
            ", line 1: finalizer: name: must not be empty",
        ),
        (
            "- {version: v1, kind: A, role: memcached, finalizer: {name: a.b/c}}",
            ", line 1: finalizer: give a role, a playbook or vars",
        ),
        (
            "- {version: v1, kind: A, role: memcached, selector: {matchExpressions: [{key: a, operator: Near}]}}",
            ", line 1: selector: ",
        ),
    ],
)
def test_errors_name_the_line_and_the_field(tmp_path: Path, text: str, message: str) -> None:
    file = make(tmp_path, text)
    with pytest.raises(WatchesError) as caught:
        load_watches(file)
    assert str(caught.value).startswith(f"{file}{message}")


def test_a_missing_role_is_an_error(tmp_path: Path) -> None:
    file = make(tmp_path, "- {version: v1, kind: A, role: gone}")
    with pytest.raises(WatchesError, match=r"line 1: role .*/roles/gone was not found; it must be a directory"):
        load_watches(file)


def test_unset_variables_stay() -> None:
    assert expand("a $B ${C} ${D}", {"B": "b", "C": "$B"}) == "a b $B ${D}"
