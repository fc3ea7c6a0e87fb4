"""The peers that `pip` cannot install: Kubernetes and kwok, built from their Go modules.

    python -m bench.peers            build all of them (about ten minutes on two cores, once)
    python -m bench.peers --list     show where each is

- etcd, kube-apiserver, kube-controller-manager, kube-scheduler: the versions of `bench/go/kubernetes/go.mod`.
- kwok: `go install sigs.k8s.io/kwok/cmd/kwok@VERSION`; its stages are read from the module's directory.
- They are kept in `$OSTINATO_PEERS`, by default `~/.cache/ostinato/peers`. Nothing is written to the repository.
- `OSTINATO_REAL=PROGRAM` names another program that starts Kubernetes, with the commands of `bench.kubernetes_plane`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ostinato"
PEERS = Path(os.environ.get("OSTINATO_PEERS", CACHE / "peers"))
MODULE = HERE / "go" / "kubernetes"
KUBERNETES = "v1.36.4"
KWOK = "v0.8.0"
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")  # kustomize/stage/fast of kwok's module

Command = list[str]


class Missing(Exception):  # noqa: N818 - a state
    """A peer that is not at hand; the message says how to get it."""


def kubernetes(given: str | Path | None = None) -> Command:
    """Return the command that starts Kubernetes: given, of `OSTINATO_REAL`, or of this repository. Raises Missing."""
    named = str(given or os.environ.get("OSTINATO_REAL", ""))
    if named:
        command = shlex.split(named)
        if shutil.which(command[0]) is None:
            raise Missing(f"{command[0]} does not exist")
        return command
    absent = [name for name in PACKAGES if not (PEERS / name).exists()]
    if absent:
        raise Missing(f"no {', '.join(absent)} in {PEERS}: `python -m bench.peers` builds them with Go")
    return [sys.executable, "-m", "bench.kubernetes_plane"]


def binaries(command: Sequence[str]) -> Path:
    """Return the directory with etcd and kube-apiserver."""
    if list(command[1:]) == ["-m", "bench.kubernetes_plane"]:
        return PEERS
    said = subprocess.run([*command, "bin", "kube-apiserver"], capture_output=True, text=True, check=True)
    return Path(said.stdout.strip()).parent


def kwok() -> Path:
    """Return the program. Raises Missing."""
    if not (PEERS / "kwok").exists():
        raise Missing(f"no kwok in {PEERS}: `python -m bench.peers` builds it with Go")
    return PEERS / "kwok"


def stages() -> str:
    """Return kwok's fast stages: Nodes become ready and renew their leases, Pods run, Pods are deleted."""
    file = PEERS / "kwok-stages.yaml"
    if not file.exists():
        raise Missing(f"no {file}: `python -m bench.peers` writes it")
    return file.read_text()


def build() -> None:
    go = shutil.which("go")
    if go is None:
        raise Missing("no `go` on PATH")
    PEERS.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamp = " ".join(
        f"-X {each}.gitVersion={KUBERNETES} -X {each}.gitMajor=1 -X {each}.gitMinor=36" for each in packages
    )
    for name, package in PACKAGES.items():
        if (PEERS / name).exists():
            continue
        print(f"building {name}", file=sys.stderr, flush=True)
        command = [go, "build", "-trimpath", "-ldflags", f"-s -w {stamp}", "-o", str(PEERS / f"{name}.new"), package]
        subprocess.run(command, cwd=MODULE, env=environment, check=True)
        (PEERS / f"{name}.new").rename(PEERS / name)
    if not (PEERS / "kwok").exists():
        print("building kwok", file=sys.stderr, flush=True)
        install = [go, "install", "-trimpath", f"sigs.k8s.io/kwok/cmd/kwok@{KWOK}"]
        quiet = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(PEERS), "GOFLAGS": "-buildvcs=false"}
        subprocess.run(install, cwd=PEERS, env=quiet, check=True)
    if not (PEERS / "kwok-stages.yaml").exists():
        (PEERS / "kwok-stages.yaml").write_text(_stages_of_module(go))


def _stages_of_module(go: str) -> str:
    download = [go, "mod", "download", "-json", f"sigs.k8s.io/kwok@{KWOK}"]
    quiet = {**os.environ, "GOFLAGS": ""}
    said = subprocess.run(download, cwd=PEERS, env=quiet, capture_output=True, text=True, check=True)
    place = Path(json.loads(said.stdout)["Dir"]) / "kustomize" / "stage"
    files = [
        file for each in STAGES for file in sorted((place / each).glob("*.yaml")) if file.name != "kustomization.yaml"
    ]
    return "\n---\n".join(file.read_text() for file in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show what is there instead of building it")
    options = parser.parse_args()
    try:
        if not options.list:
            build()
        for name in (*PACKAGES, "kwok", "kwok-stages.yaml"):
            file = PEERS / name
            print(f"{name:<26} {file if file.exists() else '-'}")
    except Missing as error:
        raise SystemExit(f"bench.peers: {error}") from None


if __name__ == "__main__":
    main()
