"""`ostinato hooks` as a program: hooks in bash and Python with every kind of binding, over HTTPS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.hook_programs import Kubectl, Program, wait_until

BASH = """#!/usr/bin/env bash
if [[ $1 == --config ]]; then cat <<'EOF'
configVersion: v1
onStartup: 1
kubernetes:
- name: maps
  kind: ConfigMap
  labelSelector: {matchLabels: {by: hooks}}
  jqFilter: .data
  executeHookOnSynchronization: false
EOF
exit 0
fi
echo "contexts $(cat $BINDING_CONTEXT_PATH | tr -d '\\n' | grep -o '"binding":"[a-zA-Z]*"' | tr '\\n' ' ')"
"""
VALIDATING = """#!/usr/bin/env bash
if [[ $1 == --config ]]; then cat <<'EOF'
configVersion: v1
kubernetesValidating:
- name: check.maps.example.com
  labelSelector: {matchLabels: {check: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
kubernetesMutating:
- name: change.maps.example.com
  labelSelector: {matchLabels: {check: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
EOF
exit 0
fi
if grep -q '"type":"Mutating"' $BINDING_CONTEXT_PATH; then
  patch=$(echo '[{"op": "add", "path": "/data", "value": {"changed": "yes"}}]' | base64 -w 0)
  echo '{"allowed": true, "patch": "'$patch'"}' > $ADMISSION_RESPONSE_PATH
elif grep -q '"name":"bad"' $BINDING_CONTEXT_PATH; then
  echo '{"allowed": false, "message": "bad is not a name"}' > $VALIDATING_RESPONSE_PATH
else
  echo '{"allowed": true, "warnings": ["looks good"]}' > $VALIDATING_RESPONSE_PATH
fi
"""
CONVERSION = """#!{python}
import json, os, sys
steps = [("v1", "v2"), ("v2", "v3")]
if sys.argv[1:] == ["--config"]:
    rules = [{{"fromVersion": a, "toVersion": b}} for a, b in steps]
    binding = {{"name": "steps", "crdName": "cups.hooks.example.dev", "conversions": rules}}
    print(json.dumps({{"configVersion": "v1", "kubernetesCustomResourceConversion": [binding]}}))
    sys.exit()
[context] = json.load(open(os.environ["BINDING_CONTEXT_PATH"]))
objects = context["review"]["request"]["objects"]
for each in objects:
    each["apiVersion"] = "hooks.example.dev/" + context["toVersion"]
    each["spec"]["path"] = each["spec"].get("path", "") + context["toVersion"]
json.dump({{"convertedObjects": objects}}, open(os.environ["CONVERSION_RESPONSE_PATH"], "w"))
"""
FUNCTION = """
from ostinato.frontends.hooks import cron, hook, watch
from ostinato.kinds.core_v1 import ConfigMap

@hook(watch("maps", ConfigMap, labels="by=hooks"), cron("*/1 * * * * *"), group="maps")
def report(ctx):
    names = ",".join(each.name for each in ctx.snapshots["maps"])
    ctx.create_or_update({"apiVersion": "v1", "kind": "ConfigMap", "data": {"names": names},
                          "metadata": {"name": "hooks-report", "namespace": "default"}})
"""
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cups.hooks.example.dev"},
    "spec": {
        "group": "hooks.example.dev",
        "scope": "Namespaced",
        "names": {"kind": "Cup", "plural": "cups", "singular": "cup", "listKind": "CupList"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
            for name in ("v1", "v2", "v3")
        ],
    },
}


def labelled(name: str, label: str, value: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {label: value}}})


@contextmanager
def hooks_program(directory: Path, log: Path, kubeconfig: Path) -> Iterator[Program]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "ostinato.cli", "hooks", str(directory), "--kubeconfig", str(kubeconfig)]
    command += ["--webhook-port", port, "--webhook-name", "hooks-test", "--log-format", "text"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
        try:
            yield Program(process, log)
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def kubectl(kubeconfig: Path) -> Iterator[Kubectl]:
    if shutil.which("kubectl") is None:
        pytest.skip("the test needs kubectl")
    found = Kubectl(kubeconfig)
    yield found
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        found("delete", kind, "hooks-test", "--ignore-not-found")
    found("delete", "crd", "cups.hooks.example.dev", "--ignore-not-found", "--wait=false")
    found("-n", "default", "delete", "configmap", "-l", "by=hooks")


def test_hooks_of_all_bindings_run_and_go_on_after_a_crash(kubectl: Kubectl, kubeconfig: Path, tmp_path: Path) -> None:
    directory = tmp_path / "hooks"
    directory.mkdir()
    conversion = CONVERSION.format(python=sys.executable)
    files = {"bash.sh": BASH, "check.sh": VALIDATING, "convert": conversion, "report.py": FUNCTION}
    for name, text in files.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    kubectl("create", "-f", "-", stdin=json.dumps(DEFINITION))
    with hooks_program(directory, tmp_path / "log", kubeconfig) as program:
        program.wait_for("running hooks")
        program.wait_for('contexts "binding":"onStartup"')
        kubectl("-n", "default", "create", "-f", "-", stdin=labelled("a", "by", "hooks"))
        program.wait_for('contexts "binding":"maps"')
        _reported(kubectl, "a")
        _converted(kubectl)
        _admitted(kubectl)
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait(30)
    kubectl("-n", "default", "create", "-f", "-", stdin=labelled("b", "by", "hooks"))
    with hooks_program(directory, tmp_path / "again", kubeconfig):
        _reported(kubectl, "a,b")  # what happened meanwhile is in the first list


def _reported(kubectl: Kubectl, names: str) -> None:
    def found() -> str:
        arguments = ("get", "configmap", "hooks-report", "--ignore-not-found", "-o", "jsonpath={.data.names}")
        return kubectl("-n", "default", *arguments)

    wait_until(lambda: found() == names, found)


def _converted(kubectl: Kubectl) -> None:
    cup = {"apiVersion": "hooks.example.dev/v1", "kind": "Cup", "metadata": {"name": "c"}, "spec": {}}
    kubectl("-n", "default", "create", "-f", "-", stdin=json.dumps(cup))
    path = kubectl("-n", "default", "get", "cups.v3.hooks.example.dev", "c", "-o", "jsonpath={.spec.path}")
    assert path == "v2v3"


def _admitted(kubectl: Kubectl) -> None:
    refusal = kubectl("-n", "default", "create", "-f", "-", stdin=labelled("bad", "check", "yes"), ok=False)
    assert "bad is not a name" in refusal
    kubectl("-n", "default", "create", "-f", "-", stdin=labelled("good", "check", "yes"))
    assert kubectl("-n", "default", "get", "configmap", "good", "-o", "jsonpath={.data}") == '{"changed":"yes"}'
    kubectl("-n", "default", "delete", "configmap", "good")


def test_a_mistake_is_one_line_without_a_traceback(tmp_path: Path, kubeconfig: Path) -> None:
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks" / "a.sh"
    hook.write_text("#!/bin/sh\necho '{configVersion: v1, schedule: [{crontab: \"61 * * * *\"}]}'\n")
    hook.chmod(0o755)
    for arguments, problem in (
        (["missing"], "missing: no such directory"),
        ([str(tmp_path / "hooks")], f"{hook}: schedule[0].crontab: end of range (61) above maximum (59): 61"),
    ):
        command = [sys.executable, "-m", "ostinato.cli", "hooks", *arguments, "--kubeconfig", str(kubeconfig)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 1
        assert problem in ran.stderr.splitlines()[-1]
        assert "Traceback" not in ran.stderr
