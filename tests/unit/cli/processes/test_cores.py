"""The number of usable cores: the smallest of affinity and CPU quotas."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato.cli.processes.cores import usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def own(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "own"
    file.write_text(text)
    return file


def test_without_quotas_all_cores_of_the_affinity_count(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, own(tmp_path, "0::/\n")) == 8
    assert usable_cores(tmp_path, tmp_path / "missing") == 8


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("x", 8)]
)
def test_a_quota_is_rounded_up_to_whole_cores(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cpu.max").write_text(f"{quota}\n")
    assert usable_cores(tmp_path, own(tmp_path, "0::/a\n")) == cores


def test_the_quota_of_an_ancestor_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text("300000 100000\n")
    (tmp_path / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path, own(tmp_path, "0::/a/b\n")) == 3


def test_a_quota_of_cgroup_v1_counts(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("200000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path, own(tmp_path, "4:cpu,cpuacct:/\n3:memory:/x\n")) == 2
