"""Runs a page: writes its files, runs its blocks in order."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, chdir
from pathlib import Path

import pytest

from ostinato.client import Client, Config
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret
from ostinato.kinds.rbac_v1 import Role, RoleBinding
from tests.conftest import one_at_a_time
from tests.docs.blocks import ROOT, Block, MarkupError, Page
from tests.docs.python_code import PythonBlocks
from tests.docs.shell import Shell, environment, has_namespaces

LEFT = (Deployment, Pod, ConfigMap, Secret, Role, RoleBinding)  # what pages create in the namespace default


def run_page(page: Page, place: Path, kubectl: Callable[[], Path], cluster: Callable[[], Path]) -> None:
    """Run a page in a directory of its own.

    - `kubectl`: returns the directory of kubectl, or skips the test.
    - `cluster`: returns the kubeconfig of a cluster. It is shared with other pages, one after another.
    """
    directory = place / "page"
    directory.mkdir()
    (directory / "examples").symlink_to(ROOT / "examples")
    with ExitStack() as stack:
        shell_blocks = page.shell_blocks
        if not has_namespaces() and any(_leaves_processes(block) for block in shell_blocks):
            pytest.skip("needs namespaces, and thus root: Pods of the page would outlive it")
        programs = kubectl() if any("kubectl" in block.code for block in shell_blocks) else None
        variables = environment(directory, programs)
        if page.has_cluster:
            kubeconfig = cluster()
            variables["KUBECONFIG"] = str(kubeconfig)
        stack.enter_context(chdir(directory))
        written = [Path(block.title).stem for block in page.blocks if block.title and block.is_python]
        python = PythonBlocks(page.name, directory, written)
        stack.callback(python.close)
        if page.has_cluster:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setenv("KUBECONFIG", str(kubeconfig))
            client = Client.connect(Config.load(path=kubeconfig), field_manager="docs")
            python.names["client"] = python.wait(client.__aenter__())
            stack.callback(lambda: python.wait(_clean_up(client)))
        shell = None
        if shell_blocks:
            own_network = has_namespaces() and not page.has_cluster
            if not has_namespaces():  # the page's programs listen on ports of this machine
                stack.enter_context(one_at_a_time(Path(os.environ.get("TMPDIR", "/tmp")) / "ostinato-docs.lock"))
            shell = Shell(directory, variables, own_network=own_network)
            stack.callback(shell.close)
        for number, block in enumerate(page.blocks):
            if block.action == "skip":
                continue
            if block.title:
                _write(directory, shell.directory() if shell else directory, block)
                if block.is_python:
                    _check_use(block, page.blocks[number + 1 :])
            elif block.is_python:
                python.run(block)
            else:
                assert shell is not None
                shell.run(block)


def _leaves_processes(block: Block) -> bool:
    """Report whether a block starts a node whose containers keep running, as they must, when the node ends."""
    return block.action == "background" and "ostinato up" in block.code and "simulated" not in block.code


async def _clean_up(client: Client) -> None:
    for kind in LEFT:
        await client.delete_all_of(kind, namespace="default", grace_period=0)
    await client.__aexit__(None, None, None)


def _write(directory: Path, current: Path, block: Block) -> None:
    file = current / block.title
    if not file.resolve().is_relative_to(directory.resolve()):
        raise MarkupError(f"{block.place}: title {block.title!r} leads out of the page's directory")
    if block.is_python:
        compile(block.code, block.place, "exec", dont_inherit=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.code)


def _check_use(block: Block, later: list[Block]) -> None:
    """A file of a page is run or imported by a later block: otherwise its code would never be run."""
    name = Path(block.title)
    if not any(name.stem in each.code or "pytest" in each.code for each in later):
        raise MarkupError(f"{block.place}: no later block uses {block.title}; run it, or import it in a hidden block")
