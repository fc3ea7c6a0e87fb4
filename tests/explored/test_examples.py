"""The examples and templates survive faults, most in scenarios invented from their schemas.

OSTINATO_EXPLORE_WORLDS=NUMBER runs more worlds of each. Not explored, as a simulation has no subprocesses, sockets and
second cluster: `mirror.py`, hooks, roles; and `kopf_port.py`, which never comes to rest.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato import ObjectMeta
from ostinato.cli.app import run
from ostinato.scaffold import NewProject, create
from ostinato.testing.explore import create as create_step
from ostinato.testing.explore import delete, edit, explore
from tests.explored.clouds import CREDENTIALS, FakeS3, FakeSqs, bucket_example, queue_example

WORLDS = os.environ.get("OSTINATO_EXPLORE_WORLDS", "4")
SHORT = "OSTINATO_EXPLORE_WORLDS" not in os.environ
BUDGET = "3600s"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("file", "free"),
    [
        ("widget.py", []),
        ("website.py", []),
        ("sample_controller.py", []),
        ("versions.py", []),
        ("key_value_store/store.py", ["PersistentVolumeClaim"]),  # backups outlive their store
        pytest.param(  # likewise, made every hour; and Helm's records of releases
            "store_with_backups/stores.py", ["Backup", "Job", "Secret"], marks=pytest.mark.skipif(SHORT, reason="slow")
        ),
    ],
)
def test_an_example_survives(file: str, free: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [each for kind in free for each in ("--free", kind)]
    arguments = ["explore", str(EXAMPLES / file), "--worlds", WORLDS, "--budget", BUDGET, *options]
    assert run(arguments) == 0, capsys.readouterr().out


def test_buckets_survive() -> None:
    example, operator = bucket_example()
    spec = example.BucketSpec(endpoint="http://s3", credentials="keys", tags={"team": "shop"})
    bucket = example.Bucket(metadata=ObjectMeta(name="a"), spec=spec)
    steps = [create_step(bucket), edit(bucket, versioning=True), edit(bucket, tags={}), delete(bucket)]
    explore(operator, scenario=steps, worlds=int(WORLDS), external={"s3": FakeS3}, given=[CREDENTIALS])


def test_queues_survive() -> None:
    example, operator = queue_example()
    queue = example.Queue(
        metadata=ObjectMeta(name="a"), spec=example.QueueSpec(endpoint="http://sqs", credentials="keys")
    )
    steps = [create_step(queue), edit(queue, visibility_timeout=60), delete(queue), create_step(queue)]
    explore(operator, scenario=steps, worlds=int(WORLDS), external={"sqs": FakeSqs}, given=[CREDENTIALS])


@pytest.mark.parametrize("form", ["", "handlers", "composite", "plan", "chart"])
def test_a_generated_project_survives(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = f"explored_{form or 'project'}"
    create(tmp_path / "project", NewProject(name="explored", package=package, form=form))
    monkeypatch.syspath_prepend(str(tmp_path / "project" / "src"))
    # Helm's records of releases, and whether a release was installed or upgraded: edits may come before the first one.
    free = ["--free", "Secret", "--free", "Explored:status.conditions.reason"] if form == "chart" else []
    assert run(["explore", package, "--worlds", WORLDS, "--budget", BUDGET, *free]) == 0, capsys.readouterr().out
