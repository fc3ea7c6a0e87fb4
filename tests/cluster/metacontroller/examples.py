"""Hooks of metacontroller's examples as processes of this machine; only the address that they listen on differs."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import yaml

_HOST = re.compile(r"https?://([a-z0-9-]+\.metacontroller)[:/]")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def hosts_of(example: Path) -> set[str]:
    """The hosts of the hooks' URLs."""
    found: set[str] = set()
    for file in example.rglob("*.yaml"):
        found.update(_HOST.findall(file.read_text()))
    return found


@contextmanager
def running_hooks(example: Path, manifest: Path, work: Path, kubeconfig: Path) -> Iterator[list[str]]:
    """Run the hooks of an example; yields the options --resolve for them."""
    port = free_port()
    with (work / "hooks.log").open("w") as log:
        process = _started(example, manifest, work, port, kubeconfig, log)
    try:
        yield [f"--resolve={host}=127.0.0.1:{port}" for host in sorted(hosts_of(example) | hosts_of(manifest))]
    finally:
        process.kill()
        process.wait()


def _started(
    example: Path, manifest: Path, work: Path, port: int, kubeconfig: Path, log: TextIO
) -> subprocess.Popen[bytes]:
    if (manifest / "sync.js").exists():
        (work / "hooks").mkdir()
        shutil.copy(manifest / "sync.js", work / "hooks")
        server = (example.parent / "nodejs" / "server.js").read_text().replace("listen(80)", f"listen({port})")
        (work / "server.js").write_text(server)
        return subprocess.Popen(["node", "server.js"], cwd=work, stdout=log, stderr=log)
    if list(manifest.glob("*.jsonnet")):
        command = [sys.executable, "-m", "tests.cluster.metacontroller.jsonnet_server", str(manifest), str(port)]
        return subprocess.Popen(command, stdout=log, stderr=log)
    if example.name == "webhook-auth":
        command = [sys.executable, "-m", "tests.cluster.metacontroller.examples", str(manifest), str(port)]
        return subprocess.Popen(
            [*command, str(work)], stdout=log, stderr=log, env={**os.environ, "KUBECONFIG": str(kubeconfig)}
        )
    script = re.sub(r"\(['\"]{2}, 80\)", f"('127.0.0.1', {port})", _script(manifest))
    (work / "sync.py").write_text(script)
    return subprocess.Popen([sys.executable, "-u", "sync.py"], cwd=work, stdout=log, stderr=log)


def _script(manifest: Path) -> str:
    """The Python hook: a file, or in a ConfigMap."""
    file = manifest / "sync.py"
    if file.exists():
        return file.read_text()
    documents = [each for path in manifest.glob("*.yaml") for each in yaml.safe_load_all(path.read_text()) if each]
    return next(each["data"]["sync.py"] for each in documents if "sync.py" in (each.get("data") or {}))


def _serve_with_mounted_secrets(manifest: Path, port: int, work: Path) -> None:
    """Run the hook of webhook-auth as a Pod would: when its Secrets exist, with their files."""
    for name, folder in (("webhook-auth-server", "certs"), ("webhook-auth-token", "token")):
        (work / folder).mkdir()
        command = ["kubectl", "get", "secret", name, "-n", "metacontroller", "-o", "json"]
        while (found := subprocess.run(command, capture_output=True, check=False)).returncode:
            time.sleep(0.2)
        for key, value in json.loads(found.stdout)["data"].items():
            (work / folder / key).write_bytes(base64.b64decode(value))
    script = (manifest / "sync.py").read_text().replace("8443", str(port))
    script = script.replace('"/certs', f'"{work}/certs').replace('"/token', f'"{work}/token')
    (work / "sync.py").write_text(script)
    os.execv(sys.executable, [sys.executable, "-u", str(work / "sync.py")])


if __name__ == "__main__":
    _serve_with_mounted_secrets(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
