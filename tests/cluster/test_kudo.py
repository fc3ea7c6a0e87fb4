"""KUDO's own tests, unchanged: every directory of test/integration and test/e2e, with its steps and asserted states.

`OSTINATO_ORIGINALS` names a directory with KUDO's sources in `src/kudo`, and its programs in `bin`. The integration
tests run on an API server alone, as there; the end-to-end tests on a control plane with simulated nodes, and those that
need failing processes on one that runs processes.

The states of all plans, phases and steps after each step of a test are those that KUDO's manager reaches on the same
kind of cluster, but for the listed differences.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.kudo import BARE, KUDO, ORIGINALS, SIMULATED, Json, ManagedCluster, original, ours
from tests.cluster.kuttl import directories, plan_states

pytestmark = pytest.mark.skipif(not ORIGINALS, reason="OSTINATO_ORIGINALS does not name the originals")

NEEDS_PROCESSES = ("terminal-failed-job",)  # its Jobs fail, and run into their deadline of a minute
DIFFERENCES = {  # tests in which the states differ from KUDO's, and why
    "install-existing-crds-in-operator": "KUDO cannot apply apiextensions.k8s.io/v1beta1 to a server without it",
    "operator-with-custom-crd": "KUDO cannot apply apiextensions.k8s.io/v1beta1 to a server without it",
}
PIPES = {
    "00-install.yaml": """
apiVersion: kuttl.dev/v1beta1
kind: TestStep
commands: [{command: kubectl kudo install ./pipes --instance pipes, namespaced: true}]
""",
    "00-assert.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: used}
data: {bar: pipes.deploy.main.generate.generate.bar, foo: pipes.deploy.main.generate.generate.foo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pipes.deploy.main.generate.generate.foo}
data: {A: "1", B: two words}
---
apiVersion: v1
kind: Secret
metadata: {name: pipes.deploy.main.generate.generate.bar}
data: {bar.pem: cGVtAQ==}
---
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: pipes}
status: {planStatus: {deploy: {status: COMPLETE}}}
""",
    "pipes/operator.yaml": """
name: pipes
operatorVersion: 0.1.0
tasks:
- name: generate
  kind: Pipe
  spec:
    pod: pod.yaml
    pipe: [{file: /out/bar.pem, kind: Secret, key: Bar}, {envFile: /out/foo.env, kind: ConfigMap, key: Foo}]
- {name: use, kind: Apply, spec: {resources: [use.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
    - {name: main, strategy: serial, steps: [{name: generate, tasks: [generate]}, {name: use, tasks: [use]}]}
""",
    "pipes/params.yaml": "parameters: []",
    "pipes/templates/pod.yaml": r"""
apiVersion: v1
kind: Pod
spec:
  volumes: [{name: shared, emptyDir: {}}]
  initContainers:
  - name: init
    image: busybox
    command: [/bin/sh, -c, "printf 'A=1\\nB=two words\\n' > /out/foo.env; printf 'pem\\001' > /out/bar.pem"]
    volumeMounts: [{name: shared, mountPath: /out}]
""",
    "pipes/templates/use.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: used}
data: {bar: "{{ .Pipes.Bar }}", foo: "{{ .Pipes.Foo }}"}
""",
}


def cases(suite: str) -> list[Path]:
    return list(directories(KUDO / "test" / suite)) if ORIGINALS else []


INTEGRATION = cases("integration")
END_TO_END = [each for each in cases("e2e") if each.name not in NEEDS_PROCESSES]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedCluster]:
    with ours(tmp_path_factory.mktemp("bare"), *BARE) as found:
        yield found


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedCluster]:
    with ours(tmp_path_factory.mktemp("simulated"), *SIMULATED) as found:
        yield found


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedCluster]:
    with ours(tmp_path_factory.mktemp("processes"), "--insecure-processes", "--pod-network-cidr", "none") as found:
        yield found


@pytest.mark.parametrize("test", INTEGRATION, ids=lambda path: path.name)
def test_integration(test: Path, bare: ManagedCluster) -> None:
    bare.play(test)


@pytest.mark.parametrize("test", END_TO_END, ids=lambda path: path.name)
def test_end_to_end(test: Path, simulated: ManagedCluster) -> None:
    simulated.play(test)


def test_jobs_that_fail_stop_a_plan(processes: ManagedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cluster.kuttl.SECONDS", 180.0)
    processes.play(KUDO / "test" / "e2e" / "terminal-failed-job")


def test_files_of_a_pod_are_piped_into_secrets_and_config_maps(processes: ManagedCluster, tmp_path: Path) -> None:
    for name, text in PIPES.items():
        path = tmp_path / "pipes-test" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    processes.play(tmp_path / "pipes-test")


@pytest.mark.skipif(os.geteuid() != 0, reason="KUDO's webhook listens on port 443")
@pytest.mark.parametrize(
    ("suite", "options"), [(INTEGRATION, BARE), (END_TO_END, SIMULATED)], ids=["integration", "e2e"]
)
def test_the_states_after_each_step_are_those_of_kudo(
    suite: list[Path], options: tuple[str, ...], tmp_path: Path
) -> None:
    with ours(tmp_path / "ours", *options) as cluster:
        found = {test.name: _states(cluster, test) for test in suite}
    with original(tmp_path / "original", *options) as cluster:
        expected = {test.name: _states(cluster, test) for test in suite}
    differ = {name for name in found if found[name] != expected[name]}
    shown = yaml.safe_dump({name: {"ours": found[name], "kudo": expected[name]} for name in differ - set(DIFFERENCES)})
    assert differ == {test.name for test in suite} & set(DIFFERENCES), shown


def _states(cluster: ManagedCluster, test: Path) -> list[Json] | str:
    """Return the states of the plans after each step, or why the test failed."""
    try:
        steps = cluster.play(test, settle=True)
    except AssertionError as error:
        return f"failed: {str(error)[:200]}"
    return [
        {each["metadata"]["name"]: yaml.safe_dump(plan_states(each)) for each in step["instances"]} for step in steps
    ]
