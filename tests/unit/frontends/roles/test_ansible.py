"""Roles played by the real ansible-runner, against the API server of the test through the proxy."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.frontends.roles.stage import CONFIG_MAP, MEMCACHED, conditions, install, make_role, memcached

from ostinato.client import Client
from ostinato.crd.rbac import Access
from ostinato.frontends.roles import Role
from ostinato.testing import ClusterManager, Eventually

pytest.importorskip("ansible_runner", reason="the extra ansible is not installed")

ACCESS = [Access(groups=("",), resources=("configmaps",), verbs=("get", "list", "watch", "create", "update", "delete"))]

READ_CONFIG = """
- name: read the kubeconfig
  ansible.builtin.set_fact:
    config: "{{ lookup('ansible.builtin.file', lookup('ansible.builtin.env', 'KUBECONFIG')) | from_json }}"
  no_log: true
- name: remember the proxy
  ansible.builtin.set_fact:
    maps: "{{ config.clusters[0].cluster.server }}/api/v1/namespaces/{{ ansible_operator_meta.namespace }}/configmaps"
    token: "{{ config.users[0].user.token }}"
  no_log: true
"""

CREATE = (
    READ_CONFIG
    + """
- name: read the map
  ansible.builtin.uri:
    url: "{{ maps }}/{{ ansible_operator_meta.name }}"
    headers: {Authorization: "Bearer {{ token }}"}
    status_code: [200, 404]
  register: found
- name: create the map
  ansible.builtin.uri:
    url: "{{ maps }}"
    method: POST
    headers: {Authorization: "Bearer {{ token }}"}
    status_code: [201]
    body_format: json
    body:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ ansible_operator_meta.name }}"}
      data:
        size: "of {{ pool_size }}"
        template: "{{ motto }}"
        whole: "{{ _cache_example_com_memcached.metadata.name }} {{ _cache_example_com_memcached_spec.poolSize }}"
  when: found.status == 404
- name: show a password
  ansible.builtin.debug: {msg: "hunter2"}
  no_log: true
"""
)


@pytest.fixture(autouse=True)
def _no_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_GATHERING", "explicit")


async def test_a_role_creates_owned_objects_and_leaks_no_secret(
    tmp_path: Path, manager: ClusterManager, client: Client, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await install(client)
    role = Role(make_role(tmp_path, CREATE))
    controller = role.for_kind(
        "Memcached",
        group="cache.example.com",
        version="v1alpha1",
        access=ACCESS,
        artifacts=tmp_path / "artifacts",
    )
    await manager.start(controller)
    made = await client.create(memcached(poolSize=3, motto="{{ 1 + 1 }}"))
    found = await eventually(
        MEMCACHED, "a", lambda each: conditions(each).get("Successful", {}).get("status") == "True", timeout=60
    )
    mapped = await client.get(CONFIG_MAP, "a")
    assert mapped["data"] == {"size": "of 3", "template": "{{ 1 + 1 }}", "whole": "a 3"}  # a template is not evaluated
    (reference,) = mapped["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Memcached", made["metadata"]["uid"])
    assert "controller" not in reference
    result = conditions(found)["Running"]["ansibleResult"]
    assert (result["ok"], result["failures"], result["skipped"]) == (5, 0, 0)
    assert conditions(found)["Failure"]["status"] == "False"
    assert "hunter2" not in caplog.text

    _check_private(tmp_path / "artifacts")


def _check_private(directory: Path) -> None:
    for path in (directory, *directory.rglob("*")):
        if not path.is_symlink():
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    assert not list(directory.rglob("kubeconfig"))


async def test_a_failed_task_is_a_condition_but_not_a_rescued_one(
    tmp_path: Path, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await install(client)
    tasks = """
- block:
    - ansible.builtin.fail: {msg: this is rescued}
  rescue:
    - ansible.builtin.debug: {msg: rescued}
- ansible.builtin.fail: {msg: "size {{ size }} is too large"}
  when: size > 5
"""
    role = Role(make_role(tmp_path, tasks))
    controller = role.for_kind("Memcached", group="cache.example.com", version="v1alpha1")
    await manager.start(controller)
    await client.create(memcached(size=9))
    found = await eventually(MEMCACHED, "a", lambda each: "Failure" in conditions(each), timeout=60)
    failure = conditions(found)["Failure"]
    assert failure["status"] == "True"
    assert "size 9 is too large" in failure["message"]
    assert failure["ansibleResult"]["failures"] == 1
    assert conditions(found)["Running"]["status"] == "False"
    assert next(str(each.error) for each in manager.errors).startswith("memcached: ")


async def test_a_run_is_killed_with_all_its_processes_when_the_operator_stops(
    tmp_path: Path, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await install(client)
    pid = tmp_path / "pid"
    role = Role(make_role(tmp_path, f"- ansible.builtin.shell: 'echo $$ > {pid}; sleep 600'\n"))
    await manager.start(role.for_kind("Memcached", group="cache.example.com", version="v1alpha1"))
    await client.create(memcached())
    await eventually(lambda: pid.exists() and pid.read_text().strip(), timeout=60)
    assert _is_running(pid.read_text().strip())
    await manager.end()
    await eventually(lambda: not _is_running(pid.read_text().strip()), timeout=60)


async def test_a_run_that_takes_too_long_is_killed_and_has_failed(
    tmp_path: Path, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await install(client)
    role = Role(make_role(tmp_path, "- ansible.builtin.command: sleep 600\n"))
    await manager.start(role.for_kind("Memcached", group="cache.example.com", version="v1alpha1", timeout=0.01))
    await client.create(memcached())
    found: Any = await eventually(MEMCACHED, "a", lambda each: "Failure" in conditions(each), timeout=60)
    assert conditions(found)["Failure"]["message"] == "the run was killed after 0.01 s"
    assert manager.errors


def _is_running(pid: str) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return bool(Path("/proc", pid, "cmdline").read_bytes())
    except OSError:
        return False
