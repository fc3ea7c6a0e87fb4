"""The conformance driver: selection of specs, repetition of unfinished ones, archives and reports."""

from __future__ import annotations

import io
import json
import stat
import tarfile
import urllib.error
import urllib.request
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.conformance.archive import Image, Layer, write_archive
from tests.conformance.command import LISTS
from tests.conformance.containerd import network_configuration
from tests.conformance.registry import HOST, digest_of, running_registry
from tests.conformance.report import ResultFile, summary, write_report
from tests.conformance.specs import Outcome, SpecRunner
from tests.conformance.suite import Suite

# A stand-in for the suite's program: it reports the specs that its focus names, and loses those of `unlucky` once.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, re, sys
options = dict(each.lstrip("-").split("=", 1) for each in sys.argv[1:] if "=" in each)
lost = pathlib.Path(__file__).with_name("lost")
names = ["[a] one", "[a] unlucky", "[b] two [Serial]", "[b] two [Serial] and more"]
specs = []
for name in names:
    group, leaf = name.split(" ", 1)
    state = "passed" if re.search(options["ginkgo.focus"], "suite " + name) else "skipped"
    if state == "passed" and "unlucky" in name and not lost.exists():
        lost.touch()
        state = "interrupted"
    if state == "passed" and "two" in name:
        state = "failed"
    failure = {"Message": "no\\nreason"} if state == "failed" else {}
    specs.append({"LeafNodeType": "It", "ContainerHierarchyTexts": [group], "LeafNodeText": leaf, "State": state,
                  "RunTime": 1500000000, "Failure": failure})
pathlib.Path(options["ginkgo.json-report"]).write_text(json.dumps([{"SpecReports": specs}]))
"""


def run(directory: Path, *specs: str) -> dict[str, Outcome]:
    suite = Suite(directory)
    program = suite.program("e2e.test")
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    runner = SpecRunner(suite, directory / "kubeconfig", directory / "logs", seconds=30)
    return runner.run(specs, jobs=2, batch=3, on_result=lambda *_: None)


def test_only_the_named_specs_run(tmp_path: Path) -> None:
    results = run(tmp_path, "[a] one", "[b] two [Serial]")
    assert {name: each.state for name, each in results.items()} == {"[a] one": "passed", "[b] two [Serial]": "failed"}
    assert results["[a] one"].seconds == 1.5


def test_an_interrupted_spec_runs_again(tmp_path: Path) -> None:
    results = run(tmp_path, "[a] one", "[a] unlucky")
    assert {name: each.state for name, each in results.items()} == {"[a] one": "passed", "[a] unlucky": "passed"}


def test_a_spec_that_no_process_reports_is_lost(tmp_path: Path) -> None:
    assert run(tmp_path, "[c] unheard of")["[c] unheard of"].state == "lost"


def test_a_report_has_counts_and_the_first_line_of_each_failure(tmp_path: Path) -> None:
    results = run(tmp_path, "[a] one", "[b] two [Serial]")
    assert summary(results) == "1 of 2 specs passed"
    write_report(tmp_path / "r.json", "simulated", "run", results)
    write_report(tmp_path / "r.json", "containerd", "run", {})
    content = json.loads((tmp_path / "r.json").read_text())
    assert sorted(content) == ["containerd", "simulated"]
    assert (content["simulated"]["passed"], content["simulated"]["specs"]) == (1, 2)
    assert content["simulated"]["failed"] == {"[b] two [Serial]": "failed: no"}


def test_a_run_continues_with_the_specs_that_have_not_passed(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl")
    assert file.passed() == {}
    for state in ("failed", "passed"):
        file.add("a", Outcome(state, 1.0, "x\ny", "log"))
    file.add("b", Outcome("failed", 1.0, "", ""))
    assert file.passed() == {"a": Outcome("passed", 1.0, "x\ny", "log")}


def test_an_archive_has_each_layer_once_and_the_names_of_its_images(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("bin/program", b"first", 0o755)
    layer.file("bin/program", b"second")
    layer.directory("tmp", 0o1777)
    content = layer.content()
    write_archive(tmp_path / "a.tar", [Image(["x:1"], [content]), Image(["y:1", "y:2"], [content], {"Cmd": ["run"]})])
    with tarfile.open(tmp_path / "a.tar") as archive:
        files = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        manifest = json.load(files["manifest.json"] or io.BytesIO())
        assert [each["RepoTags"] for each in manifest] == [["x:1"], ["y:1", "y:2"]]
        assert len({each["Config"] for each in manifest}) == 2
        assert len([name for name in files if name.endswith(".tar")]) == 1
        opened = files[manifest[0]["Layers"][0]]
        assert opened is not None
        with tarfile.open(fileobj=opened) as inner:
            program = inner.extractfile("bin/program")
            assert program is not None
            assert program.read() == b"first"
            assert stat.S_IMODE(inner.getmember("tmp").mode) == 0o1777


def test_the_registry_serves_the_images_of_the_archives(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("bin/program", b"content", 0o755)
    write_archive(tmp_path / "a.tar", [Image([f"{HOST}/team/x:1"], [layer.content()])])

    def get(path: str) -> tuple[dict[str, str], bytes]:
        with urllib.request.urlopen(f"{url}/v2/{path}", timeout=10) as answer:
            return dict(answer.headers), answer.read()

    with running_registry(tmp_path) as url:
        headers, content = get("team/x/manifests/1?ns=registry.k8s.io")
        manifest = json.loads(content)
        assert get(f"team/x/manifests/{headers['Docker-Content-Digest']}")[1] == content
        for part in (manifest["config"], *manifest["layers"]):
            found = get(f"team/x/blobs/{part['digest']}")[1]
            assert (digest_of(found), len(found)) == (part["digest"], part["size"])
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get("team/x/manifests/2")


@pytest.mark.parametrize(("is_dual_stack", "versions"), [(False, [4]), (True, [4, 6])])
def test_pods_of_a_dual_stack_cluster_have_an_address_of_each_family(
    tmp_path: Path, is_dual_stack: bool, versions: list[int]
) -> None:
    bridge = network_configuration(tmp_path, is_dual_stack=is_dual_stack)["plugins"][0]
    subnets = [each["subnet"] for (each,) in bridge["ipam"]["ranges"]]
    routes = [each["dst"] for each in bridge["ipam"]["routes"]]
    assert [ip_network(each).version for each in subnets] == versions
    assert [ip_network(each).version for each in routes] == versions


def test_the_quick_specs_need_no_containers() -> None:
    quick, simulated = (set(LISTS[name].read_text().splitlines()) for name in ("quick", "simulated"))
    assert quick < simulated
