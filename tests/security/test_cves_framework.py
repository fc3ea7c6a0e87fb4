"""Published vulnerabilities of Kubernetes clients and operators, tried on the framework: client and manifests."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
import yaml

from ostinato.cli.app import run as command
from ostinato.client.config.config import Config, ExecPlugin, Impersonation
from ostinato.client.config.error import ConfigError
from ostinato.client.config.exec_plugin import ExecCredentials
from ostinato.client.config.secret import Secret
from ostinato.world import World

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
