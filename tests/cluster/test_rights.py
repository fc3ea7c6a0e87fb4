"""Rights: with what `ostinato manifests` writes for a program, and no more, the program works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from ostinato.client import Client, exists
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import ConfigMap
from tests.cluster.running import SECONDS, running
from tests.cluster.test_run import OSTINATO, on

BOXES = """
from ostinato import CustomResource, Manager, ObjectMeta, Request, Struct, controller
from ostinato.controllers import WatchKind
from ostinato.kinds.core_v1 import ConfigMap, Secret


class BoxSpec(Struct):
    size: int = 1


class Box(CustomResource, group="rights.example.dev", version="v1", plural="boxes"):
    spec: BoxSpec


async def all_boxes(secret, dependencies):
    boxes = await dependencies.client.list(Box)  # in whatever namespaces it runs
    print("listed", *sorted(f"{box.metadata.namespace}/{box.metadata.name}" for box in boxes), flush=True)
    return [Request(box.metadata.namespace, box.metadata.name) for box in boxes]


@controller(Box, owns=[ConfigMap], watches=[WatchKind(Secret, map_to=all_boxes)])
async def packing(box: Box, ctx) -> None:
    content = ConfigMap(metadata=ObjectMeta(name=box.metadata.name), data={"size": str(box.spec.size)})
    await ctx.apply(content, owner=box)


Manager().add(packing).run()
"""


def test_a_role_in_one_namespace_is_enough_for_a_program_that_runs_there(
    kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    program = tmp_path / "boxes.py"
    program.write_text(BOXES)
    command = [*OSTINATO, "manifests", str(program), "-n", namespace, "--account", f"{namespace}/packer"]
    written = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=SECONDS, check=True
    ).stdout
    other = tmp_path / "packer.kubeconfig"
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{namespace}:packer"
    other.write_text(yaml.safe_dump(config))

    def box(name: str, where: str) -> dict[str, object]:
        metadata = {"name": name, "namespace": where}
        return {"apiVersion": "rights.example.dev/v1", "kind": "Box", "metadata": metadata, "spec": {"size": 3}}

    async def prepare(client: Client) -> None:
        documents = [each for each in yaml.safe_load_all(written) if each]
        assert {each["kind"] for each in documents}.isdisjoint({"ClusterRole", "ClusterRoleBinding"})
        for each in documents:
            await client.apply(each, field_manager="test", force=True)
        await client.wait_for(CustomResourceDefinition, "boxes.rights.example.dev", "Established", timeout=SECONDS)
        await client.create(box("mine", namespace))
        await client.create(box("not-mine", "default"))

    async def packed(client: Client) -> None:
        made = await client.wait_for(ConfigMap, "mine", exists, timeout=SECONDS)
        assert made is not None
        assert made.data == {"size": "3"}
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "news"}})

    async def tidy(client: Client) -> None:
        await client.delete(box("not-mine", "default"))

    on(kubeconfig, namespace, prepare)
    chosen = ("--kubeconfig", str(other), "-n", namespace)
    try:
        with running(tmp_path / "log", *OSTINATO, "run", str(program), *chosen) as packer:
            packer.wait_for_output("running packing")
            on(kubeconfig, namespace, packed)
            assert packer.wait_for_output("listed") == f"listed {namespace}/mine\n"
            assert packer.stop() == 0, packer.log()
            assert "orbidden" not in packer.log()
    finally:
        on(kubeconfig, namespace, tidy)
