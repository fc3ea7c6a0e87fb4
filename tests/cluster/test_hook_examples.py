"""All example directories of shell-operator, unchanged, on `ostinato hooks`."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.hook_programs import Kubectl, Program, originals, ours, require, wait_until

Play = Callable[[Program, Kubectl, Path], None]


def _startup(*lines: str) -> Play:
    def play(program: Program, _kubectl: Kubectl, _example: Path) -> None:
        for line in lines:
            program.wait_for(line)

    return play


def _pods(program: Program, kubectl: Kubectl, _example: Path) -> None:
    program.wait_for("kubernetes bindings enabled")
    kubectl("create", "namespace", "hooks-pods")
    kubectl("-n", "hooks-pods", "create", "serviceaccount", "default")
    kubectl("-n", "hooks-pods", "run", "pod-1", "--image", "x")
    program.wait_for("Pod 'pod-1' added")


def _namespaces(program: Program, kubectl: Kubectl, _example: Path) -> None:
    program.wait_for("Got Synchronization event", 2)
    kubectl("create", "namespace", "hooks-monitored")
    program.wait_for("Namespace hooks-monitored was created")
    kubectl("label", "namespace", "hooks-monitored", "a=b")
    program.wait_for("Namespace hooks-monitored labels were modified")


def _schedules(program: Program, _kubectl: Kubectl, _example: Path) -> None:
    program.wait_for("Message from 'schedule' hook with 6 fields crontab", 2)
    assert '"binding":"every 5 sec"' in program.log()


def _secrets(program: Program, kubectl: Kubectl, _example: Path) -> None:
    program.wait_for("Got Synchronization event", 3)
    kubectl("create", "namespace", "hooks-copies")
    kubectl("-n", "default", "create", "-f", "-", stdin=SECRET)
    _exists(kubectl, "secret", "copied", "hooks-copies")
    kubectl("create", "namespace", "hooks-later")
    _exists(kubectl, "secret", "copied", "hooks-later")
    kubectl("-n", "default", "delete", "secret", "copied")
    wait_until(lambda: "copied" not in kubectl("-n", "hooks-later", "get", "secret", "-o", "name"), program.log)


def _custom_resource(program: Program, kubectl: Kubectl, example: Path) -> None:
    program.wait_for("no kind 'Crontab'")  # the CustomResourceDefinition does not exist yet: repeated
    kubectl("apply", "-f", str(example / "crd-simple.yaml"))
    program.wait_for("kubernetes bindings enabled")
    kubectl("-n", "default", "apply", "-f", str(example / "cr-crontab.yaml"))
    program.wait_for("CronTab/crontab object is added")


def _old_events(program: Program, _kubectl: Kubectl, _example: Path) -> None:
    # events.k8s.io/v1beta1 was removed in Kubernetes 1.25; the original repeats with the same error
    program.wait_for("the server has no kind 'Event' of apiVersion 'events.k8s.io/v1beta1'")


def _advanced(program: Program, kubectl: Kubectl, example: Path) -> None:
    program.wait_for("Got Synchronization event", 2)
    found = [program.log().index(text) for text in ("007-onstartup-2 hook", "triggered on startup", "001-onstartup-10")]
    assert found == sorted(found)
    kubectl("create", "namespace", "hooks-advanced")
    program.wait_for("Namespace hooks-advanced was created")


def _chart(program: Program, kubectl: Kubectl, _example: Path) -> None:
    program.wait_for("Got Synchronization event for OnModifiedNamespace")
    kubectl("create", "namespace", "hooks-chart")
    program.wait_for("Namespace hooks-chart was created")


def _validating(program: Program, kubectl: Kubectl, example: Path) -> None:
    _webhooks_ready(program, kubectl, example, "204")
    refusal = kubectl("-n", "example-204", "create", "-f", str(example / "crontab-non-valid.yaml"), ok=False)
    assert "Only images from repo.example.com are allowed" in refusal
    kubectl("-n", "example-204", "create", "-f", str(example / "crontab-valid.yaml"))


def _mutating(program: Program, kubectl: Kubectl, example: Path) -> None:
    _webhooks_ready(program, kubectl, example, "206")
    kubectl("-n", "example-206", "create", "-f", str(example / "crontab-valid.yaml"))
    replicas = kubectl("-n", "example-206", "get", "crontab", "crontab-valid", "-o", "jsonpath={.spec.replicas}")
    assert replicas == "333"


def _conversion(program: Program, kubectl: Kubectl, example: Path) -> None:
    program.wait_for("waiting for CustomResourceDefinitions")
    kubectl("apply", "-f", str(example / "templates" / "crd" / "crontab.yaml"))
    name = "crontabs.stable.example.com"
    path = "jsonpath={.spec.conversion.webhook.clientConfig.caBundle}"
    wait_until(lambda: kubectl("get", "crd", name, "-o", path) != "", program.log)
    kubectl("-n", "default", "create", "-f", str(example / "crontab-v1alpha1.yaml"))
    converted = kubectl(
        "-n", "default", "get", f"crontabs.v1alpha2.{name.partition('.')[2]}", "-o", "jsonpath={.items[*].spec.cron}"
    )
    assert converted == "* * * * */5"


def _rate(program: Program, kubectl: Kubectl, example: Path) -> None:
    # its own definition has no version v1, which the hook names: the original needs another one, too
    kubectl("apply", "-f", str(example.parent / "105-crd-simple" / "crd-simple.yaml"))
    program.wait_for("kubernetes bindings enabled")
    for number in range(4):
        kubectl("-n", "default", "create", "-f", "-", stdin=CRONTAB.format(number))
    # the first list and the first event take the burst; what follows within five seconds is combined
    program.wait_for("RateLimitedHook binding contexts: 3")


def _webhooks_ready(program: Program, kubectl: Kubectl, example: Path, number: str) -> None:
    kubectl("apply", "-f", str(example / "templates" / "crd" / "crontab.yaml"))
    kubectl("create", "namespace", f"example-{number}")
    kubectl("label", "namespace", f"example-{number}", f"name=example-{number}")
    program.wait_for("serving webhooks")
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=30s")


def _exists(kubectl: Kubectl, kind: str, name: str, namespace: str) -> None:
    wait_until(
        lambda: name in kubectl("-n", namespace, "get", kind, "-o", "name"), lambda: f"no {kind} {namespace}/{name}"
    )


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: copied, labels: {secret-copier: "yes"}}
stringData: {a: b}
"""
CRONTAB = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {{name: rate-{}}}
spec: {{image: x}}
"""

PLAYS: dict[str, Play] = {
    "001-startup-shell": _startup("OnStartup shell hook"),
    "002-startup-python": _startup("OnStartup Python powered hook"),
    "003-common-library": _startup("hook::trigger function is called!"),
    "101-monitor-pods": _pods,
    "102-monitor-namespaces": _namespaces,
    "103-schedule": _schedules,
    "104-secret-copier": _secrets,
    "105-crd-simple": _custom_resource,
    "106-monitor-events": _old_events,
    "200-advanced": _advanced,
    "201-install-with-helm-chart": _chart,
    "202-repack-build": _startup("OnStartup shell hook"),
    "204-validating-webhook": _validating,
    "206-mutating-webhook": _mutating,
    "210-conversion-webhook": _conversion,
    "220-execution-rate": _rate,
    # the file is not Python: `import kubernetes import client`; the original does not start either
    "230-configmap-python": _startup("00-hook.py: --config: exit code 1", "SyntaxError"),
}


@pytest.fixture
def cleaned(kubeconfig: Path) -> Iterator[Kubectl]:
    """A kubectl; what examples create is deleted afterwards, as they use the same names."""
    require("kubectl", "jq")
    kubectl = Kubectl(kubeconfig)
    yield kubectl
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        kubectl("delete", kind, "ostinato-hooks", "--ignore-not-found")
    kubectl("delete", "crd", "crontabs.stable.example.com", "--ignore-not-found", "--wait=false")
    wait_until(lambda: "crontabs" not in kubectl("get", "crd", "-o", "name"), lambda: "the definition stays")


def test_every_example_is_played() -> None:
    examples = originals() / "src" / "shell-operator" / "examples"
    assert sorted(PLAYS) == sorted(each.name for each in examples.iterdir() if (each / "hooks").is_dir())


@pytest.mark.parametrize("name", sorted(PLAYS))
def test_an_example_runs_unchanged(name: str, cleaned: Kubectl, kubeconfig: Path, tmp_path: Path) -> None:
    original = originals()
    example = original / "src" / "shell-operator" / "examples" / name
    hooks = example / "hooks"
    if name.startswith("201"):  # its chart mounts the file with the execute bit
        hooks = tmp_path / "hooks"
        shutil.copytree(example / "hooks", hooks)
        (hooks / "namespace-hook.sh").chmod(0o755)
    port = _free_port()
    with ours(
        hooks, tmp_path / "log", kubeconfig, "--webhook-port", str(port), "--log-format", "text", original=original
    ) as program:
        PLAYS[name](program, cleaned, example)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
