"""Pipe tasks: the form of the Pod, names of what is kept, and files of variables."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.unit.frontends.plans.tasks.test_decoration import NAMES

from ostinato.frontends.plans.api import Pipe
from ostinato.frontends.plans.tasks.errors import FatalError
from ostinato.frontends.plans.tasks.pipe import artifact_name, pipe_pod, pipe_problem, variables_of

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "volumes": [{"name": "shared", "emptyDir": {}}],
        "initContainers": [{"name": "init", "volumeMounts": [{"name": "shared", "mountPath": "/out"}]}],
    },
}
FILES = [Pipe(file="/out/a.pem", kind="Secret", key="A")]


def test_a_container_that_waits_is_added() -> None:
    made = pipe_pod(deepcopy(POD), FILES, NAMES)
    assert made["metadata"]["name"] == "depop.deploy.main.everything..pipepod"
    assert made["spec"]["containers"][0]["volumeMounts"] == [{"name": "shared", "mountPath": "/out"}]
    assert artifact_name(NAMES, "Key_1").endswith(".key1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"containers": [{}]}, "should not have containers"),
        ({"initContainers": []}, "one init container"),
        ({"restartPolicy": "Always"}, "restartPolicy"),
        ({"volumes": []}, "one emptyDir"),
        ({"initContainers": [{"name": "init"}]}, "should mount shared"),
    ],
)
def test_a_pod_of_another_form_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FatalError, match=message):
        pipe_pod({**POD, "spec": {**POD["spec"], **change}}, FILES, NAMES)


@pytest.mark.parametrize("file", ["/etc/passwd", "/out/../etc/passwd", "/out", "/out/a b"])
def test_a_file_outside_of_the_volume_is_refused(file: str) -> None:
    with pytest.raises(FatalError, match="pipe file"):
        pipe_pod(deepcopy(POD), [Pipe(file=file, kind="Secret", key="A")], NAMES)


def test_files_of_variables() -> None:
    assert variables_of(b"\xef\xbb\xbfA=1\n# no\n  B=two words\r\n\nC=\n", "f") == {"A": "1", "B": "two words", "C": ""}
    for content in (b"A\n", b"1=a\n", b"\xff\n"):
        with pytest.raises(FatalError, match="f"):
            variables_of(content, "f")
    assert pipe_problem(Pipe(kind="Secret", key="a"))
    assert pipe_problem(Pipe(file="/a", kind="Pod", key="a"))
    assert pipe_problem(Pipe(file="/a", kind="Secret", key="a b"))
    assert pipe_problem(Pipe(env_file="/a", kind="ConfigMap", key="a-b")) == ""
