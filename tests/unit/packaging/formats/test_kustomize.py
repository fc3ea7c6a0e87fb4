"""Kustomize: a base that always elects a leader, a component, and overlays that are written once."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.stage.packages import package

from ostinato.packaging import check_files, helm_chart, install_yaml, kustomize_files, monitoring_files, write_files


def test_the_base_lists_its_files_and_elects_a_leader() -> None:
    files = kustomize_files(package())
    index = yaml.safe_load(files["base/kustomization.yaml"])
    assert {f"base/{name}" for name in index["resources"]} | {"base/kustomization.yaml"} == {
        name for name in files if name.startswith("base/")
    }
    deployment = yaml.safe_load(files["base/deployment.yaml"])
    assert "--leader-election=widgets" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_monitoring_is_a_component_unless_the_base_has_it() -> None:
    files = kustomize_files(package())
    assert yaml.safe_load(files["components/monitoring/kustomization.yaml"])["kind"] == "Component"
    assert "base/alerts.yaml" not in files
    files = kustomize_files(package(features={"serviceMonitor": True, "alerts": True, "dashboard": True}))
    assert "base/alerts.yaml" in files
    assert "components/monitoring/kustomization.yaml" not in files
    assert not [name for name in kustomize_files(package(features={"metrics": False})) if "monitoring" in name]


def test_overlays_change_image_and_replicas() -> None:
    files = kustomize_files(package())
    production = yaml.safe_load(files["overlays/production/kustomization.yaml"])
    assert production["images"] == [{"name": "registry.example.com/widgets", "newTag": "1.2.3"}]
    assert production["replicas"] == [{"name": "widgets", "count": 2}]
    pinned = kustomize_files(package(image="a/b@sha256:" + "0" * 64))["overlays/production/kustomization.yaml"]
    assert yaml.safe_load(pinned)["images"] == [{"name": "a/b", "digest": "sha256:" + "0" * 64}]


def test_overlays_are_written_once_and_stale_files_removed(tmp_path: Path) -> None:
    files = kustomize_files(package())
    assert write_files(files, tmp_path) == sorted(files)
    overlay = tmp_path / "overlays" / "production" / "kustomization.yaml"
    overlay.write_text("mine")
    (tmp_path / "mine.yaml").write_text("# not ours\n")
    assert check_files(files, tmp_path) == []
    without = kustomize_files(package(features={"networkPolicy": False}))
    assert check_files(without, tmp_path)[-1] == "base/network-policy.yaml: no longer part of the package\n"
    assert write_files(without, tmp_path) == ["base/kustomization.yaml", "base/network-policy.yaml"]
    assert overlay.read_text() == "mine"
    assert (tmp_path / "mine.yaml").exists()
    assert not list(tmp_path.rglob("*.part"))


def test_packages_of_other_formats_beside_it_are_not_touched(tmp_path: Path) -> None:
    write_files(kustomize_files(package()), tmp_path / "kustomize")
    write_files({"install.yaml": install_yaml(package())}, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert write_files({"install.yaml": install_yaml(package(replicas=2))}, tmp_path) == ["install.yaml"]
    write_files(helm_chart(package()), tmp_path)
    assert set(before) <= set(tmp_path.rglob("*"))


def test_monitoring_alone_is_a_dashboard_and_a_rule_file() -> None:
    files = monitoring_files(package())
    assert sorted(files) == ["alerts.yaml", "dashboard.json"]
    assert yaml.safe_load(files["alerts.yaml"])["groups"][0]["name"] == "widgets"
