"""Packages on a cluster: the chart with Helm, install.yaml and kustomize with kubectl, the bundle with a validator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ostinato.client import Client, exists
from ostinato.crd import crd_of
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.packaging import (
    Package,
    helm_chart,
    kustomize_files,
    olm_bundle,
    write_files,
)
from ostinato.packaging.formats.olm.bundle import CERTIFICATES
from tests.cluster.running import SECONDS, running
from tests.cluster.test_kubectl import Kubectl
from tests.cluster.test_run import OSTINATO, on
from tests.stage.packages import RULES, Widget, operator, package, server

ALL_ON = {"serviceMonitor": True, "alerts": True, "dashboard": True}


class Helm:
    def __init__(self, binary: Path, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._command = [str(binary), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self._home = home

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            [*self._command, *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={"HOME": str(self._home), "PATH": "/usr/bin:/bin"},
        )
        assert (done.returncode != 0) == fails, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout


@pytest.fixture
def helm(package_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Helm:
    return Helm(package_programs / "helm", kubeconfig, namespace, tmp_path)


@pytest.fixture
def kubectl(go_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(str(go_programs / "kubectl"), kubeconfig, namespace, tmp_path)


def packaged(place: str, description: str = "A widget.", **overrides: Any) -> Package:
    """A package whose kind is the test's own. `description`: of its definition; may have anything in it."""
    definition = json.loads(json.dumps(crd_of(Widget)))
    group = f"{place}.example.com"
    definition["metadata"]["name"] = f"widgets.{group}"
    definition["spec"]["group"] = group
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = description
    rules = [each for each in RULES if each.namespace != "vault"]
    return package(of=operator(definitions=[definition], rules=rules), **overrides)


def test_a_chart_is_installed_upgraded_and_removed(
    helm: Helm, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    definition = f"widgets.{namespace}.example.com"
    chart = tmp_path / "chart"
    write_files(helm_chart(packaged(namespace, "braces: {{ .Values }} {{- end }} {{{")), chart)
    helm("lint", "--strict", str(chart))
    try:
        helm("install", "shop", str(chart), "--set", "replicas=1")
        assert kubectl("get", "deployment", "shop-widgets", "-o", "jsonpath={.spec.strategy.type}") == "Recreate"
        shown = kubectl(
            "get", "crd", definition, "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.description}"
        )
        assert shown == "braces: {{ .Values }} {{- end }} {{{"
        assert "shop-widgets-leader-election" not in kubectl("get", "roles", "-o", "name")

        write_files(helm_chart(packaged(namespace, "second", version="1.3.0")), chart)
        helm("upgrade", "shop", str(chart), "--set", "replicas=3", "--set-json", 'env={"A": "{{ x }}"}')
        container = json.loads(kubectl("get", "deployment", "shop-widgets", "-o", "json"))["spec"]["template"]["spec"][
            "containers"
        ][0]
        assert "--leader-election=shop-widgets" in container["args"]
        assert container["env"] == [{"name": "A", "value": "{{ x }}"}]
        assert "shop-widgets-leader-election" in kubectl("get", "roles", "-o", "name")
        shown = kubectl(
            "get", "crd", definition, "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.description}"
        )
        assert shown == "second"  # Helm itself never upgrades what is in crds/

        helm("rollback", "shop", "1")
        assert kubectl("get", "deployment", "shop-widgets", "-o", "jsonpath={.spec.replicas}") == "1"

        helm("uninstall", "shop", "--wait=false")
        assert "NotFound" in kubectl("get", "deployment", "shop-widgets", fails=True)
        assert definition in kubectl("get", "crd", definition, "-o", "name")
        helm("install", "shop", str(chart))  # adopts the definition that was kept
        helm("uninstall", "shop", "--wait=false")
    finally:
        kubectl("delete", "crd", definition, "--ignore-not-found", "--wait=false")


def test_every_switch_of_a_chart_renders_valid_objects(
    helm: Helm, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    write_files(helm_chart(packaged(namespace, labels={"team": "a"}, annotations={"note": '"{{'})), chart)

    def rendered(features: dict[str, bool], *more: str) -> list[dict[str, Any]]:
        chosen = json.dumps(features)
        text = helm("template", "true", str(chart), "--set-json", f"features={chosen}", *more)
        return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]

    names = list(yaml.safe_load((chart / "values.yaml").read_text())["features"])
    off = rendered(dict.fromkeys(names, False), "--set", "serviceAccount.create=false,serviceAccount.name=mine")
    assert [each["kind"] for each in off] == ["Deployment"]
    assert off[0]["metadata"]["name"] == "true-widgets"
    assert off[0]["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    on = rendered(dict.fromkeys(names, True), "--set", "replicas=2,podSecurityContext.runAsUser=7")
    (deployment,) = [each for each in on if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["securityContext"] == {
        "runAsUser": 7,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert {"PrometheusRule", "ServiceMonitor", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget"} <= {
        each["kind"] for each in on
    }
    assert all(each["metadata"]["annotations"]["note"] == '"{{' for each in on)
    known = [each for each in on if not each["apiVersion"].startswith("monitoring.coreos.com")]
    answer = kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(known))
    assert answer.count("(server dry run)") == len(known)
    assert "serviceAccount.name: not set" in helm(
        "template", "a", str(chart), "--set", "serviceAccount.create=false", fails=True
    )
    assert "got string, want integer" in helm("template", "a", str(chart), "--set", "replicas=two", fails=True)
    assert "additional properties 'replica' not allowed" in helm(
        "template", "a", str(chart), "--set", "replica=2", fails=True
    )


def test_a_chart_with_webhooks_refuses_another_namespace(helm: Helm, namespace: str, tmp_path: Path) -> None:
    write_files(helm_chart(package(of=operator(webhooks=[server("/etc/webhook")]))), tmp_path / "chart")
    refusal = helm("template", "a", str(tmp_path / "chart"), fails=True)
    assert "install the chart with --namespace widgets-system" in refusal
    text = helm("template", "a", str(tmp_path / "chart"), "--namespace", "widgets-system")
    found = {each["kind"]: each for each in yaml.load_all(text, yaml.CSafeLoader) if each}
    annotations = found["ValidatingWebhookConfiguration"]["metadata"]["annotations"]
    assert annotations["cert-manager.io/inject-ca-from"] == "widgets-system/a-widgets-webhook"
    assert found["Certificate"]["spec"]["secretName"] == "a-widgets-webhook-certificate"


def test_overlays_of_kustomize_are_built_and_accepted(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    write_files(kustomize_files(packaged(namespace, namespace=namespace, features={"namespace": False})), tmp_path)
    for overlay, replicas, image in (("development", 1, "dev"), ("production", 2, "1.2.3")):
        text = kubectl("kustomize", str(tmp_path / "overlays" / overlay))
        (deployment,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment"]
        assert deployment["spec"]["replicas"] == replicas
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == f"registry.example.com/widgets:{image}"
    answer = kubectl("apply", "--dry-run=server", "-k", str(tmp_path / "overlays" / "production"))
    assert "deployment.apps/widgets created (server dry run)" in answer
    production = tmp_path / "overlays" / "production" / "kustomization.yaml"
    production.write_text(production.read_text().replace("# components", "components"))
    assert "kind: ServiceMonitor" in kubectl("kustomize", str(production.parent))


@pytest.mark.parametrize("webhooks", [False, True])
def test_a_bundle_passes_the_validators_of_operator_framework(
    package_programs: Path, tmp_path: Path, webhooks: bool
) -> None:
    made = packaged(
        "shop", replicas=2, features=ALL_ON, olm={"icon": {"data": "PHN2Zy8+", "mediatype": "image/svg+xml"}}
    )
    if webhooks:
        of = msgspec.structs.replace(made.operator, webhooks=[server(CERTIFICATES)])
        made = msgspec.structs.replace(made, operator=of)
    group = made.operator.definitions[0]["spec"]["group"]
    sample = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    write_files(olm_bundle(msgspec.structs.replace(made, samples=[sample])), tmp_path)
    done = subprocess.run(
        [package_programs / "bundle", tmp_path], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


PROGRAM = """
from ostinato import CustomResource, ObjectMeta, Struct, controller
from ostinato.kinds.core_v1 import ConfigMap


class ParcelSpec(Struct):
    text: str = "hello"


class ParcelStatus(Struct):
    packed: bool = False


class Parcel(CustomResource, group="packages.example.dev", version="v1"):
    spec: ParcelSpec
    status: ParcelStatus | None = None


@controller(Parcel, owns=[ConfigMap])
async def packing(parcel: Parcel, ctx) -> None:
    content = ConfigMap(metadata=ObjectMeta(name=parcel.metadata.name), data={"text": parcel.spec.text})
    await ctx.apply(content, owner=parcel)
    await ctx.status(packed=True)
    ctx.event(parcel, "Packed", "done")
"""


def test_an_operator_works_with_the_identity_and_the_arguments_of_its_install_yaml(
    kubectl: Kubectl, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    program = tmp_path / "parcels.py"
    program.write_text(PROGRAM)
    (tmp_path / "overrides.yaml").write_text(
        f"{{name: parcels, namespace: {namespace}, image: parcels, replicas: 2, features: {{namespace: false}}}}"
    )
    command = [*OSTINATO, "package", "yaml", str(program), "--overrides", "overrides.yaml"]
    text = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=SECONDS, check=True, cwd=tmp_path
    ).stdout
    objects = list(yaml.load_all(text, yaml.CSafeLoader))
    (container,) = next(each for each in objects if each["kind"] == "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    cluster_wide = ["crd/parcels.packages.example.dev", "clusterrolebinding/parcels", "clusterrole/parcels"]
    cluster_wide += ["clusterrole/parcels-view", "clusterrole/parcels-edit"]
    try:
        assert kubectl("apply", "--server-side", "-f", "-", stdin=text).count("serverside-applied") == len(objects)
        kubectl("wait", "--for=condition=Established", "crd/parcels.packages.example.dev", f"--timeout={SECONDS}s")
        # A Lease that was released, so that the operator leads at once
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "parcels"}}
        kubectl(
            "apply", "-f", "-", stdin=yaml.safe_dump({**lease, "spec": {"holderIdentity": "", "leaseTransitions": 1}})
        )
        config = yaml.safe_load(kubeconfig.read_text())
        config["users"][0]["user"] = {"token": kubectl("create", "token", "parcels").strip()}
        config["contexts"][0]["context"]["namespace"] = namespace  # as in a Pod
        (tmp_path / "operator.kubeconfig").write_text(yaml.safe_dump(config))
        arguments = [each for each in container["args"] if not each.startswith(("--health", "--metrics"))]
        assert arguments == ["--log-format=json", "--leader-election=parcels"]
        ports = ["--health=127.0.0.1:0", "--metrics=127.0.0.1:0", "--kubeconfig", str(tmp_path / "operator.kubeconfig")]
        with running(tmp_path / "log", *OSTINATO, "run", str(program), *arguments, *ports) as parcels:
            parcels.wait_for_output("running packing")
            kubectl(
                "create",
                "-f",
                "-",
                stdin="{apiVersion: packages.example.dev/v1, kind: Parcel, metadata: {name: a}, spec: {}}",
            )

            async def packed(client: Client) -> None:
                made = await client.wait_for(ConfigMap, "a", exists, timeout=SECONDS)
                assert made is not None
                assert made.data == {"text": "hello"}

            on(kubeconfig, namespace, packed)
            kubectl("wait", "--for=jsonpath={.status.packed}=true", "parcel/a", f"--timeout={SECONDS}s")
            assert parcels.stop() == 0, parcels.log()
            assert "orbidden" not in parcels.log()
            assert '"level":"error"' not in parcels.log()
        held = json.loads(kubectl("get", "lease", "parcels", "-o", "json"))["spec"]
        assert held["leaseTransitions"] > 1
        assert "Packed" in kubectl("get", "events.events.k8s.io", "-o", "jsonpath={.items[*].reason}")
    finally:
        kubectl("delete", *cluster_wide, "--ignore-not-found", "--wait=false")
