"""Published vulnerabilities of Kubernetes clients and operators, tried on the framework: client and manifests."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from pathlib import Path

import pytest
import yaml

from ostinato.cli.app import run as command
from ostinato.client.config.config import Config, ExecPlugin, Impersonation
from ostinato.client.config.error import ConfigError
from ostinato.client.config.exec_plugin import ExecCredentials
from ostinato.client.config.secret import Secret
from ostinato.world import World
from tests.unit.page.browser import paged

EXAMPLE = Path(__file__).parents[2] / "examples" / "widget.py"


def test_cve_2021_25738_a_kubeconfig_that_constructs_objects(tmp_path: Path) -> None:
    """A kubeconfig from somebody else runs no code: the tag is refused."""
    trace, config = tmp_path / "trace", tmp_path / "config"
    config.write_text(f'apiVersion: v1\nkind: Config\nusers: !!python/object/apply:os.system ["touch {trace}"]\n')
    with pytest.raises(ConfigError):
        Config.load(path=config)
    assert not trace.exists()


def test_cve_2017_18342_a_manifest_that_constructs_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ostinato types` reads definitions from anywhere: the tag is refused with a message."""
    trace, manifest = tmp_path / "trace", tmp_path / "crd.yaml"
    manifest.write_text(f'kind: !!python/object/apply:os.system ["touch {trace}"]\n')
    assert command(["types", str(manifest)]) == 1
    assert "crd.yaml" in capsys.readouterr().err
    assert not trace.exists()


def test_ghsa_4xh5_jcj2_ch8q_empty_impersonation_headers_are_rejected() -> None:
    """An empty user name, as from a forgotten setting, is refused: requests never go out as the operator itself."""
    with pytest.raises(ConfigError, match="as: is empty"):
        Config(server="https://127.0.0.1:1", impersonate=Impersonation(user="", groups=("x",)))


def test_cve_2021_41254_arguments_of_a_credential_plugin_reach_no_shell(tmp_path: Path) -> None:
    """Arguments and environment that a shell would run are passed on as they are."""
    trace, got = tmp_path / "trace", tmp_path / "got"
    hostile = (f"$(touch {trace})", f"; touch {trace} #", f"`touch {trace}`", f"| touch {trace}")
    program = tmp_path / "plugin"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump([sys.argv[1:], os.environ['HOSTILE']], open({str(got)!r}, 'w'))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': 'x'}}))\n"
    )
    program.chmod(0o700)
    plugin = ExecPlugin(
        command=str(program),
        api_version="client.authentication.k8s.io/v1",
        args=hostile,
        env=(("HOSTILE", Secret(hostile[0])),),
        interactive_mode="Never",
    )
    world = World.real()
    try:
        asyncio.run(ExecCredentials(Config(server="https://127.0.0.1:1", exec_plugin=plugin), world).current())
    finally:
        world.executor.close()
    assert json.loads(got.read_text()) == [list(hostile), hostile[0]]
    assert not trace.exists()


def test_cve_2025_2843_a_namespaced_operator_gets_no_rights_in_the_cluster(tmp_path: Path) -> None:
    """Manifests for one namespace hold no ClusterRole, and no manifest holds a wildcard."""
    assert command(["manifests", str(EXAMPLE), "-o", str(tmp_path / "one"), "-n", "team"]) == 0
    assert command(["manifests", str(EXAMPLE), "-o", str(tmp_path / "all")]) == 0
    for file in tmp_path.rglob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text()):
            if file.parent.name == "one":
                assert document["kind"] not in ("ClusterRole", "ClusterRoleBinding"), file
            for rule in document.get("rules") or ():
                assert not any("*" in values for values in rule.values()), (file, rule)
                assert not {"secrets", "roles", "clusterroles"} & set(rule.get("resources") or ()), (file, rule)


def test_cve_2018_18264_the_page_lends_its_rights_to_nobody_without_its_token() -> None:
    """Nothing is answered to those who skip the entrance, and Secrets stay masked for those who do not."""
    query = "apiVersion=v1&kind=Secret&namespace=default&name=canary"
    paths = (f"/api/object?{query}", "/api/objects?kind=Secret", "/api/history?from=0", f"/api/why?{query}")
    value = "first-canary-value"
    attempts: tuple[tuple[str, ...], ...] = (
        (),
        ("Cookie: ostinato-page=skip",),
        ("Authorization: Bearer skip",),
        ("X-Remote-User: system:admin", "Impersonate-User: system:admin"),
    )

    async def attack() -> None:
        async with paged() as (browser, client):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"}}
            await client.create({**secret, "stringData": {"password": value}})
            for path in paths:
                for headers in attempts:
                    answer = await browser.request(path, *headers)
                    assert (answer.status, b"canary" in answer.body) == (401, False), (path, headers)
            await browser.log_in()
            async with asyncio.timeout(30):
                while b"canary" not in (shown := (await browser.request(paths[0])).body):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert value.encode() not in shown
            assert b64encode(value.encode()) not in shown

    asyncio.run(attack())


def test_cve_2025_7195_the_image_of_a_project_has_no_file_that_its_user_may_change(tmp_path: Path) -> None:
    """The container's user has no entry and no group with rights; nothing makes a file of the image writable."""
    assert command(["init", "demo", "--directory", str(tmp_path / "demo")]) == 0
    lines = (tmp_path / "demo" / "Dockerfile").read_text().splitlines()
    (user,) = [line for line in lines if line.startswith("USER")]
    assert user == "USER 65532:65532"
    assert not [line for line in lines if "chmod" in line or "chown" in line or "passwd" in line]
