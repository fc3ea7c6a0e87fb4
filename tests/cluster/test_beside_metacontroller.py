"""metacontroller and `ostinato meta` side by side on one API server: their hooks get the same requests."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cluster.metacontroller.examples import free_port
from tests.cluster.metacontroller.side_by_side import WORDS, Json, RecordingHook
from tests.cluster.test_metacontroller import meta, plane
from tests.unit.frontends.composite.meta.stage import PARENTS, cat, child, composite_of, config_map

BINARY = Path(os.environ.get("OSTINATO_ORIGINALS") or "/missing") / "bin" / "metacontroller"

pytestmark = pytest.mark.skipif(not BINARY.is_file(), reason="OSTINATO_ORIGINALS does not name the originals")

_QUIET = 3.0  # seconds without a request after which a step is complete
_SECONDS = 60.0


class Cluster:
    """kubectl, and the steps of a comparison."""

    def __init__(self, kubeconfig: Path, hook: RecordingHook) -> None:
        self._kubectl = ["kubectl", f"--kubeconfig={kubeconfig}"]
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self.hook = hook

    def kubectl(self, *arguments: str, document: Json | None = None) -> str:
        given = None if document is None else msgspec.json.encode(document).decode()
        result = subprocess.run([*self._kubectl, *arguments], input=given, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def apply(self, make: Callable[[str], Json]) -> None:
        for word in WORDS:
            self.kubectl("apply", "-f", "-", document=make(word))

    def each(self, *arguments: str) -> None:
        for word in WORDS:
            self.kubectl(*(each.replace("WORD", word) for each in arguments))

    def settle(self, done: Callable[[Json], bool], hook: str, *, compare: bool = True) -> None:
        """Wait until the last request of both fulfils a condition, and no more arrive; compare them.

        Of `finalize` without the status of the parent: the original may send the one of before its own last write,
        since its cache is behind; ours waits for its writes.
        """
        deadline = time.monotonic() + _SECONDS
        seen, since = -1, time.monotonic()
        while time.monotonic() < deadline:
            count = len(self.hook.requests)
            if count != seen:
                seen, since = count, time.monotonic()
            lasts = [self.hook.last(word, hook) for word in WORDS]
            if time.monotonic() - since > _QUIET and all(each is not None and done(each) for each in lasts):
                if compare:
                    theirs, ours = (_without_status(each) if hook == "finalize" else each for each in lasts)
                    assert theirs == ours
                return
            time.sleep(0.1)
        theirs, ours = (self.hook.last(word, hook) for word in WORDS)
        raise AssertionError(f"not settled: theirs {theirs} ours {ours}")


def _without_status(request: Json | None) -> Json:
    assert request is not None
    return {**request, "parent": {name: value for name, value in request["parent"].items() if name != "status"}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    work = tmp_path_factory.mktemp("beside")
    answers = {"sync": copies, "v2": copies, "finalize": finalize, "customize": customize}
    hook = RecordingHook({**answers, "decorate": attach, "pods": pods})
    with plane(work, "--nodes", "1", "--runtime", "simulated") as kubeconfig:
        made = Cluster(kubeconfig, hook)
        made.kubectl("apply", "-f", "-", document=PARENTS)
        with meta(kubeconfig, work / "meta.log", "--target-label-selector=word=ours"):
            theirs = _started(kubeconfig, work / "theirs.log")
            try:
                yield made
            finally:
                theirs.kill()
                theirs.wait()
                hook.close()


def _started(kubeconfig: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [str(BINARY), f"-kubeconfig={kubeconfig}", "-target-label-selector=word=theirs"]
    command += ["-discovery-interval=2s", f"-metrics-address=127.0.0.1:{free_port()}", "-client-go-qps=100"]
    command += [f"-health-probe-bind-address=127.0.0.1:{free_port()}", "-client-go-burst=100"]
    with log.open("w") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


def copies(document: Json) -> Json:
    parent = document["parent"]
    names = [f"{parent['metadata']['name']}-{number}" for number in range(parent["spec"]["count"])]
    value = parent["spec"]["template"]["value"] + ",".join(sorted(document["related"].get("Secret.v1", {})))
    return {
        "children": [config_map(parent, name, value=value) for name in names],
        "status": {"copies": len(document["children"]["ConfigMap.v1"])},
    }


def pods(document: Json) -> Json:
    parent = document["parent"]
    name, value = parent["metadata"]["name"], parent["spec"]["template"]["value"]
    made = []
    for number in range(parent["spec"]["count"]):
        metadata = {"name": f"{name}-{number}", "labels": {"cat": name}}
        spec = {"containers": [{"name": "main", "image": f"image:{value}"}], "terminationGracePeriodSeconds": 0}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return {"children": made, "status": {}}


def finalize(document: Json) -> Json:
    left = document["children"]["ConfigMap.v1"]
    return {"children": [], "finalized": not left, "status": {"left": len(left)}}


def customize(document: Json) -> Json:
    labels = {"matchLabels": {"wanted": document["parent"]["metadata"]["name"]}}
    return {"relatedResources": [{"apiVersion": "v1", "resource": "secrets", "labelSelector": labels}]}


def attach(document: Json) -> Json:
    name = document["object"]["metadata"]["name"]
    attached = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-extra"}, "data": {"of": name}}
    return {"attachments": [attached], "labels": {"decorated": "yes"}, "annotations": {"by": "hook"}}


def labelled(document: Json, **labels: str) -> Json:
    return {**document, "metadata": {**document["metadata"], "labels": labels}}


def definition(cluster: Cluster, word: str, name: str, hooks: dict[str, Any], **options: Any) -> Json:
    webhooks = {
        hook: {"version": version, "webhook": {"url": f"{cluster.hook.url}/{word}/{path}"}}
        for hook, (path, version) in hooks.items()
    }
    selector = {"labelSelector": {"matchLabels": {"of": f"{name}-{word}"}}}
    return labelled(composite_of(f"{name}-{word}", webhooks, parent=selector, **options), word=word)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_composite_with_related_objects_and_finalize(cluster: Cluster, version: str) -> None:
    hook, name = ("sync", "one") if version == "v1" else ("v2", "two")
    hooks = {"sync": (hook, version), "finalize": ("finalize", version), "customize": ("customize", version)}
    cluster.apply(lambda word: definition(cluster, word, name, hooks))
    cluster.apply(lambda word: labelled(cat(f"{name}-{word}", count=2), of=f"{name}-{word}"))
    cluster.settle(lambda each: each["parent"]["status"]["copies"] == 2, hook)
    first = [cluster.hook.first(word, hook) for word in WORDS]
    assert first[0] == first[1]
    assert cluster.hook.last("theirs", "customize") == cluster.hook.last("ours", "customize")
    change = '{"spec":{"count":1,"template":{"value":"2"}}}'
    cluster.each("patch", "cat", f"{name}-WORD", "--type=merge", "-p", change)
    cluster.settle(lambda each: _data(each) == {"2"} and each["parent"]["status"]["copies"] == 1, hook)
    cluster.each("delete", "configmap", f"{name}-WORD-0")
    cluster.settle(lambda each: len(_data(each)) == 1 and each["parent"]["status"]["copies"] == 1, hook)
    cluster.apply(lambda word: labelled(secret(f"{name}-{word}"), wanted=f"{name}-{word}"))
    cluster.settle(lambda each: bool(each["related"]["Secret.v1"]) and _data(each) != {"2"}, hook)
    cluster.each("delete", "cat", f"{name}-WORD", "--wait=true")
    cluster.settle(lambda each: not _data(each), "finalize")


def _data(document: Json) -> set[str]:
    return {each["data"]["value"] for each in document["children"]["ConfigMap.v1"].values()}


def secret(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}


def test_a_decorator(cluster: Cluster) -> None:
    def decorator(word: str) -> Json:
        made = composite_of(f"extra-{word}", {})
        target = {"apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"of": word}}}
        hook = {"version": "v1", "webhook": {"url": f"{cluster.hook.url}/{word}/decorate"}}
        attachments = [child("configmaps", method="InPlace")]
        spec = {"resources": [target], "attachments": attachments, "hooks": {"sync": hook}}
        return labelled({**made, "kind": "DecoratorController", "spec": spec}, word=word)

    cluster.apply(decorator)
    cluster.apply(lambda word: labelled(secret(f"decorated-{word}"), of=word))
    cluster.settle(lambda each: len(each["attachments"]["ConfigMap.v1"]) == 1, "decorate")
    cluster.each("annotate", "secret", "decorated-WORD", "changed=yes")
    cluster.settle(lambda each: "changed" in each["object"]["metadata"]["annotations"], "decorate")


def test_a_rolling_update_has_the_same_revisions_and_completes(cluster: Cluster) -> None:
    """metacontroller at the commit of the originals stops after the first child: it looks for it by the wrong name."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    rolling = [child("pods", method="RollingRecreate", statusChecks=ready)]
    cluster.apply(lambda word: definition(cluster, word, "roll", {"sync": ("pods", "v1")}, children=rolling))
    cluster.apply(lambda word: labelled(cat(f"roll-{word}", count=3), of=f"roll-{word}"))
    cluster.settle(lambda each: _updated(each) == "OnLatestRevision" and len(_pods(each)) == 3, "pods", compare=False)
    theirs, ours = (_revisions(cluster, word) for word in WORDS)
    assert theirs == ours
    assert len(ours) == 1
    cluster.each("patch", "cat", "roll-WORD", "--type=merge", "-p", '{"spec":{"template":{"value":"2"}}}')
    wait = "until [[ $(kubectl get pods -o name | wc -l) -eq 3 && -z $(kubectl get pods -o yaml | grep image:1) ]]"
    script = wait.replace("get pods", "get pods -l cat=roll-ours") + "; do sleep 1; done"
    subprocess.run(["bash", "-c", script], env=cluster.environment, timeout=_SECONDS, check=True)


def _updated(document: Json) -> str:
    conditions = document["parent"].get("status", {}).get("conditions", [])
    return next((str(each["reason"]) for each in conditions if each["type"] == "Updated"), "")


def _pods(document: Json) -> Json:
    return dict(document["children"]["Pod.v1"])


def _revisions(cluster: Cluster, word: str) -> list[Json]:
    found = json.loads(
        cluster.kubectl("get", "controllerrevisions.metacontroller.k8s.io", "-l", f"cat=roll-{word}", "-o", "json")
    )
    shown = []
    for each in found["items"]:
        children = [{**group, "names": sorted(group["names"])} for group in each["children"]]
        owner = {name: value for name, value in each["metadata"]["ownerReferences"][0].items() if name != "uid"}
        document = {"patch": each["parentPatch"], "children": children, "labels": each["metadata"]["labels"]}
        shown.append(json.loads(json.dumps({**document, "owner": owner}).replace(word, "WORD")))
    return shown
