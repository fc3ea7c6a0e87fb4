"""A quick part of Kubernetes' conformance suite on simulated nodes, where the suite is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cluster import running_cluster
from tests.conformance.command import LISTS
from tests.conformance.report import first_line
from tests.conformance.specs import SpecRunner
from tests.conformance.suite import Suite, default_directory

JOBS = 2


def test_specs_of_the_quick_list_pass(tmp_path: Path) -> None:
    suite = Suite(default_directory())
    if not suite.is_built:
        pytest.skip(f"the conformance suite is not built in {suite.directory}: tests/conformance/run --build")
    specs = LISTS["quick"].read_text().splitlines()
    assert len(specs) >= 40
    with running_cluster(tmp_path, ["--nodes", "5", "--runtime", "simulated", "--store", "memory"]) as kubeconfig:
        runner = SpecRunner(suite, kubeconfig, tmp_path / "logs", seconds=120)
        results = runner.run(specs, JOBS, len(specs) // JOBS + 1, lambda *_: None)
    failed = {name: first_line(each) for name, each in results.items() if not each.has_passed}
    assert failed == {}
