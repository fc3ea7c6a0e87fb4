"""The Widget of the tutorial, as it is written, by `ostinato run` and by Python alone, on every kind of server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.api.errors import APIError
from ostinato.api.owners import controller_of
from ostinato.cli.program.loading import find, load
from ostinato.client import Client, Config, exists
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager.hosting import Host
from tests.cluster.running import SECONDS, Running, running
from tests.cluster.test_kubectl import Kubectl

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "widget.py"
OSTINATO = ("-m", "ostinato.cli")
Widget: Any = load(find(str(EXAMPLE)), Host()).Widget


def widget(name: str, **spec: Any) -> str:
    return yaml.safe_dump({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})


def on(kubeconfig: Path, namespace: str, play: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client.connect(Config.load(path=kubeconfig, namespace=namespace)) as client:
            async with asyncio.timeout(SECONDS):
                await play(client)

    asyncio.run(main())


def the_life_of_a_widget(kubectl: Kubectl, kubeconfig: Path, namespace: str, *, collected: bool) -> None:
    """Made, changed and deleted with kubectl; `collected`: whether what it owned goes with it."""
    assert kubectl("apply", "-f", "-", stdin=widget("tea", replicas=2)) == "widget.example.dev/tea created\n"

    async def made(client: Client) -> None:
        deployment = await client.wait_for(Deployment, "tea", exists, timeout=SECONDS)
        assert deployment is not None
        assert deployment.spec.replicas == 2
        owner = controller_of(deployment)
        assert owner is not None
        assert (owner.kind, owner.name) == ("Widget", "tea")
        await client.wait_for(Widget, "tea", lambda each: each is not None and each.status is not None, timeout=SECONDS)

    on(kubeconfig, namespace, made)
    assert "configured" in kubectl("apply", "-f", "-", stdin=widget("tea", replicas=3, image="busybox"))

    async def changed(client: Client) -> None:
        def is_so(each: Deployment | None) -> bool:
            assert each is not None
            assert each.spec.template.spec is not None
            return (each.spec.replicas, each.spec.template.spec.containers[0].image) == (3, "busybox")

        await client.wait_for(Deployment, "tea", is_so, timeout=SECONDS)

    on(kubeconfig, namespace, changed)
    old = kubectl("get", "deployment", "tea", "-o", "jsonpath={.metadata.uid}")
    kubectl("delete", "deployment", "tea", "--wait=false")

    async def made_again(client: Client) -> None:
        def is_new(each: Deployment | None) -> bool:
            return each is not None and each.metadata.uid != old

        await client.wait_for(Deployment, "tea", is_new, timeout=SECONDS)

    on(kubeconfig, namespace, made_again)
    assert "widget.example.dev" in kubectl("delete", "wd", "tea")

    async def deleted(client: Client) -> None:
        assert await client.get(Widget, "tea", missing=None) is None
        if collected:
            await client.wait_for(Deployment, "tea", lambda each: each is None, timeout=SECONDS)

    on(kubeconfig, namespace, deleted)


def logged(program: Running, level: str = "info") -> list[str]:
    lines = map(json.loads, program.log().splitlines())
    return [line["msg"] for line in lines if line["level"] == level]


def errors(program: Running) -> list[str]:
    """Without those about a Widget that was deleted while it was looked at."""
    return [text for text in logged(program, "error") if "NotFound: widgets.example.dev" not in text]


def test_without_a_cluster(go_programs: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    command = (*OSTINATO, "run", "--embedded", str(EXAMPLE), "--health", "127.0.0.1:0")
    with running(tmp_path / "log", *command) as program:
        kubeconfig = Path(program.wait_for_output("--kubeconfig").split()[-1])
        program.wait_for_output("running widgets")
        kubectl = Kubectl(str(go_programs / "kubectl"), kubeconfig, "default", tmp_path)
        the_life_of_a_widget(kubectl, kubeconfig, "default", collected=True)
        kubectl("apply", "-f", "-", stdin=widget("run", replicas=2))
        kubectl("wait", "widget/run", "--for=jsonpath={.status.availableReplicas}=2", f"--timeout={SECONDS}s")
        assert kubectl("get", "pods", "-l", "widget=run", "-o", "name").count("pod/run-") == 2
        assert program.stop() == 0, program.log()
        assert errors(program) == []
        assert not kubeconfig.parent.exists()


PICKY = """
import msgspec
from ostinato import CustomResource, Struct, controller
from ostinato.api.markers import Stored, marked
from ostinato.webhook import Denied, ServiceEndpoint, Webhooks, converter, defaulter, validator

class GadgetSpec(Struct):
    size: int | None = None

@marked(Stored())
class Gadget(CustomResource, group="picky.example.dev", version="v1"):
    spec: GadgetSpec = msgspec.field(default_factory=GadgetSpec)

class GadgetV2Spec(Struct):
    width: int = 0

class GadgetV2(CustomResource, group="picky.example.dev", version="v2", kind="Gadget"):
    spec: GadgetV2Spec = msgspec.field(default_factory=GadgetV2Spec)

@converter
def up(old: Gadget) -> GadgetV2:
    return GadgetV2(metadata=old.metadata, spec=GadgetV2Spec(width=old.spec.size or 0))

@converter
def down(new: GadgetV2) -> Gadget:
    return Gadget(metadata=new.metadata, spec=GadgetSpec(size=new.spec.width))

@defaulter(Gadget)
def fill_in(gadget: Gadget) -> None:
    if gadget.spec.size is None:
        gadget.spec.size = 3

@validator(Gadget)
def check(gadget: Gadget) -> None:
    if (gadget.spec.size or 0) > 9:
        raise Denied("it is too large")

@controller(GadgetV2)
async def gadgets(gadget: GadgetV2) -> None:
    print("seen", gadget.metadata.name, gadget.spec.width, flush=True)

webhooks = Webhooks(up, down, fill_in, check, endpoint=ServiceEndpoint("gadgets", "gadgets"), name="picky")
"""


def test_a_failed_start_prints_no_embedded_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    file = tmp_path / "broken_file.py"
    file.write_text("import no_such_module")
    ran = subprocess.run(
        [sys.executable, *OSTINATO, "run", "--embedded", str(file)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"ostinato run: {file}: import failed:\nTraceback")
    assert ran.stderr.endswith("ModuleNotFoundError: No module named 'no_such_module'\n")


def test_a_failing_runnable_is_reported_with_the_users_frames(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    file = tmp_path / "failing.py"
    file.write_text(
        "from ostinato import Manager\nfrom ostinato.controllers import Task\n\n\n"
        "async def work(dependencies):\n    raise LookupError('no such thing')\n\n\n"
        "Manager().add(Task('job', work)).run()\n"
    )
    ran = subprocess.run(
        [sys.executable, *OSTINATO, "run", "--embedded", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    told = ran.stderr[ran.stderr.index("ostinato run: ") :]
    assert told.startswith(f'ostinato run: the program failed:\nTraceback (most recent call last):\n  File "{file}"')
    assert told.count("  File ") == 1
    assert "LookupError: no such thing\nin job, which ended the manager\n" in told


def test_webhooks_are_called_by_the_embedded_server(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    file = tmp_path / "picky.py"
    file.write_text(PICKY)
    gadget: dict[str, Any] = {
        "apiVersion": "picky.example.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": "a"},
        "spec": {},
    }

    async def play(client: Client) -> None:
        made = await client.create(gadget)  # webhooks serve since the program printed that it runs
        assert made["spec"] == {"size": 3}
        with pytest.raises(APIError, match=r'"validate.v1.gadgets.picky.example.dev" denied the request: it is too la'):
            await client.create({**gadget, "metadata": {"name": "b"}, "spec": {"size": 10}})

    command = (*OSTINATO, "run", "--embedded", "--state", str(tmp_path / "state"), str(file))
    with running(tmp_path / "log", *command) as program:
        kubeconfig = Path(program.wait_for_output("--kubeconfig").split()[-1])
        program.wait_for_output("running ")
        on(kubeconfig, "default", play)
        program.wait_for_output("seen a 3")
        assert program.stop() == 0, program.log()
    with running(tmp_path / "log", *command) as program:  # what is stored is converted by webhooks at another port
        program.wait_for_output("seen a 3")
        assert program.stop() == 0, program.log()


def test_on_the_cluster_of_a_kubeconfig(
    go_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chosen = ("--kubeconfig", str(kubeconfig), "-n", namespace)
    command = (*OSTINATO, "run", str(EXAMPLE), *chosen, "--install-crds", "--health", "127.0.0.1:0")
    with running(tmp_path / "log", *command) as program:
        program.wait_for_output("running widgets")
        kubectl = Kubectl(str(go_programs / "kubectl"), kubeconfig, namespace, tmp_path)
        the_life_of_a_widget(kubectl, kubeconfig, namespace, collected=False)
        (port,) = [text.rsplit("=", 1)[1] for text in logged(program) if text.startswith("serving endpoint=health")]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            assert answer.read() == b"ok"
        assert program.stop() == 0, program.log()
        assert errors(program) == []


def test_by_python_alone(go_programs: Path, kubeconfig: Path, namespace: str, tmp_path: Path) -> None:
    chosen = tmp_path / "config"
    document = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    chosen.write_text(yaml.safe_dump(document))

    async def define(client: Client) -> None:
        from ostinato.crd import crd_of

        await client.apply(crd_of(Widget), force=True, field_manager="test")

    on(kubeconfig, namespace, define)
    with running(tmp_path / "log", str(EXAMPLE), environment={"KUBECONFIG": str(chosen)}) as program:
        kubectl = Kubectl(str(go_programs / "kubectl"), kubeconfig, namespace, tmp_path)
        the_life_of_a_widget(kubectl, kubeconfig, namespace, collected=False)
        assert program.stop() == 0, program.log()


LONG_FORM = """
from ostinato import CustomResource, Manager, ObjectMeta, Request, Result, Struct
from ostinato.kinds.core_v1 import ConfigMap

class LongSpec(Struct):
    size: int = 1

class Long(CustomResource, group="example.dev", version="v1"):
    spec: LongSpec

class LongReconciler:
    def __init__(self, client):
        self.client = client

    async def reconcile(self, request: Request) -> Result:
        long = await self.client.get(Long, request, missing=None)
        if long is None:
            return Result()
        metadata = ObjectMeta(name=request.name, namespace=request.namespace)
        await self.client.apply(ConfigMap(metadata=metadata, data={"size": str(long.spec.size)}))
        return Result(requeue_after=30)

manager = Manager()
manager.build("longs").watch_for(Long).owns(ConfigMap).complete(LongReconciler(manager.client))
"""


def test_the_long_form_has_its_client_while_the_file_is_loaded(
    kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "long_form.py").write_text(LONG_FORM)
    chosen = ("--kubeconfig", str(kubeconfig), "-n", namespace)

    async def play(client: Client) -> None:
        long = {"apiVersion": "example.dev/v1", "kind": "Long", "metadata": {"name": "a"}, "spec": {"size": 7}}
        await client.create(long)
        made = await client.wait_for(ConfigMap, "a", exists, timeout=SECONDS)
        assert made is not None
        assert made.data == {"size": "7"}

    with running(
        tmp_path / "log", *OSTINATO, "run", str(tmp_path / "long_form.py"), *chosen, "--install-crds"
    ) as program:
        program.wait_for_output("running longs")
        on(kubeconfig, namespace, play)
        assert program.stop() == 0, program.log()


def test_a_missing_kind_is_reported_with_a_remedy(kubeconfig: Path, tmp_path: Path) -> None:
    (tmp_path / "gizmo.py").write_text(
        EXAMPLE.read_text().replace("Widget", "Gizmo").replace("example.dev", "missing.example.dev")
    )
    command = [*OSTINATO, "run", str(tmp_path / "gizmo.py"), "--kubeconfig", str(kubeconfig)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ostinato run: controller widgets: the server does not serve missing.example.dev/v1 Gizmo; "
        "use --install-crds to install its definition"
    )
