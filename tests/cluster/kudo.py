"""Clusters with a manager of KUDO's instances: Ostinato's, or the original."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from ostinato.client import Client, Config
from tests.cluster.kuttl import KuttlTest
from tests.cluster.planes import PlaneProcess
from tests.cluster.running import running

Json = dict[str, Any]

ORIGINALS = os.environ.get("OSTINATO_ORIGINALS", "")
KUDO = Path(ORIGINALS, "src", "kudo")
MANIFESTS = ("configmap-operator", "test-operator", "toy-operator")  # of test/manifests; the other is KUDO's webhook
BARE = ("--bare",)
SIMULATED = ("--runtime", "simulated", "--nodes", "2")
_WEBHOOK = "https://127.0.0.1/admit-kudo-dev-v1beta1-instance"  # the port of the original is fixed


class ManagedCluster:
    """A cluster with a manager, and the `kubectl kudo` that belongs to it."""

    def __init__(self, kubeconfig: Path, directory: Path, command: str) -> None:
        self.kubeconfig = kubeconfig
        self._directory = directory / "tests"
        shim = directory / "bin"
        shim.mkdir()
        kubectl = shim / "kubectl"
        kubectl.write_text(f'#!/bin/sh\n[ "$1" = kudo ] || exit 99\nshift\nexec {command} "$@"\n')
        kubectl.chmod(0o755)
        self._environment = {"PATH": f"{shim}:{os.environ['PATH']}"}

    def play(self, test: Path, *, settle: bool = False) -> list[Json]:
        """Run a test, and return the instances after each step."""
        copied = self._directory / test.name  # commands write into it
        shutil.copytree(test, copied)
        name = f"kudo-{test.name}"[:60].rstrip("-")
        return KuttlTest(copied, self.kubeconfig, name, self._environment).run(settle=settle)

    def create(self, *manifests: Path) -> None:
        """Create the objects of files."""
        documents = [each for path in manifests for each in yaml.safe_load_all(path.read_text()) if each]
        asyncio.run(_create(self.kubeconfig, documents))


async def _create(kubeconfig: Path, documents: list[Json]) -> None:
    async with Client.connect(Config.load(path=kubeconfig)) as client:
        for document in documents:
            await client.in_namespace("default").create(document)


@contextmanager
def ours(directory: Path, *options: str) -> Iterator[ManagedCluster]:
    with _plane(directory, *options) as plane:
        command = ["-m", "ostinato.cli", "kudo", "manager", "--install-crds", "--kubeconfig", str(plane.kubeconfig)]
        with running(directory / "manager.log", *command) as manager:
            manager.wait_for_output("running plans")
            found = ManagedCluster(plane.kubeconfig, directory, f"{sys.executable} -m ostinato.cli kudo")
            if options == BARE:
                found.create(*(KUDO / "test" / "manifests" / f"{name}.yaml" for name in MANIFESTS))
            yield found


@contextmanager
def original(directory: Path, *options: str) -> Iterator[ManagedCluster]:
    """KUDO's manager, with its definitions and its webhook; it listens on port 443."""
    with _plane(directory, *options) as plane:
        found = ManagedCluster(plane.kubeconfig, directory, str(Path(ORIGINALS, "bin", "kubectl-kudo")))
        found.create(*sorted((KUDO / "config" / "crds").glob("*.yaml")))
        authority = _certificates(directory)
        asyncio.run(_create(plane.kubeconfig, [_webhook(authority)]))
        environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "KUDO_CERT_DIR": str(directory)}
        log = directory / "manager.log"
        with log.open("w") as stream:
            process = subprocess.Popen([Path(ORIGINALS, "bin", "kudo-manager")], stderr=stream, env=environment)
        try:
            while "starting KUDO manager now" not in log.read_text():
                assert process.poll() is None, log.read_text()
            if options == BARE:
                found.create(*(KUDO / "test" / "manifests" / f"{name}.yaml" for name in MANIFESTS))
            yield found
        finally:
            process.kill()
            process.wait(10)


def _certificates(directory: Path) -> bytes:
    """Write the files of a serving certificate, and return the authority."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=kudo -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(directory / "tls.key"), "-out", str(directory / "tls.crt")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return (directory / "tls.crt").read_bytes()


def _webhook(authority: bytes) -> Json:
    rule = {"apiGroups": ["kudo.dev"], "apiVersions": ["v1beta1"], "resources": ["instances"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "kudo"},
        "webhooks": [
            {
                "name": "instance-admission.kudo.dev",
                "admissionReviewVersions": ["v1beta1"],
                "sideEffects": "None",
                "clientConfig": {"url": _WEBHOOK, "caBundle": base64.b64encode(authority).decode()},
                "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
            }
        ],
    }


@contextmanager
def _plane(directory: Path, *options: str) -> Iterator[PlaneProcess]:
    plane = PlaneProcess(directory, *options)
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()
