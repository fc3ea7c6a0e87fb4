"""One tenant floods the API server; measure the latency of another tenant's `get`.

    python -m bench.fairness [--real PROGRAM] [--connections 4,16,64] [--mixes get,list,...] [--seconds 4] [--pin]

- Two ServiceAccounts, each with a role in its own namespace. One floods the server with a mix of requests over 4, 16
  and 64 connections; the other reads one small ConfigMap at a time. Both use TLS, each in its own process (a Go
  program, built first).
- With `--real`, kube-apiserver and etcd are measured in the same run (see `bench.apiserver`).
- Prints p50 and p99 of the second tenant, and the p50 as a multiple of that of the idle server, measured before and
  after.
- `--pin`: servers run on the first processor, the load on the second. Otherwise all share the processors.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apiserver import HERE, Target, ours, real

MIXES = (
    "get",
    "write",
    "list",
    "list-large",
    "table",
    "yaml",
    "merge-patch",
    "strategic-patch",
    "json-patch",
    "apply",
    "update",
    "create",
    "regular-expression",
    "cel",
    "handshake",
    "fresh",
)
FLOOD, VICTIM = "fairness-flood", "fairness-victim"
SMALL, LARGE = 2000, 100  # objects of the flooding tenant: of 1 kB, of 1 MB
WARM_SECONDS = 1.0


@dataclass
class Side:
    """A server and the tokens of its two tenants."""

    name: str
    target: Target
    tokens: dict[str, str]


class Administrator:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._context = ssl.create_default_context(cafile=str(target.authority))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded response; 409 AlreadyExists is not an error."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._target.token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(self._target.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, context=self._context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return None
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from error


RULE = "self.all(x, self.exists_one(y, y == x) || x > 0)"
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fairness.example"},
    "spec": {
        "group": "fairness.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "pattern": "^(a|aa|aaa|b){1,100}(a*)*(b|c)?$"},
                            "numbers": {
                                "type": "array",
                                "maxItems": 1000,
                                "items": {"type": "integer"},
                                "x-kubernetes-validations": [{"rule": RULE}],
                            },
                        },
                    }
                },
            }
        ],
    },
}


def prepare(name: str, target: Target, *, widgets: bool) -> Side:
    """Create two tenants, each with all permissions in its own namespace only."""
    admin = Administrator(target)
    tokens = {}
    rules = [{"apiGroups": ["", "fairness.example"], "resources": ["configmaps", "widgets"], "verbs": ["*"]}]
    for tenant in (FLOOD, VICTIM):
        meta = {"name": tenant, "namespace": tenant}
        admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": tenant}})
        admin.ask("POST", f"/api/v1/namespaces/{tenant}/serviceaccounts", {"metadata": meta})
        access = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{tenant}"
        admin.ask("POST", f"{access}/roles", {"metadata": meta, "rules": rules})
        binding = {
            "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": tenant},
            "subjects": [{"kind": "ServiceAccount", "name": tenant, "namespace": tenant}],
        }
        admin.ask("POST", f"{access}/rolebindings", binding)
        asked = f"/api/v1/namespaces/{tenant}/serviceaccounts/{tenant}/token"
        tokens[tenant] = admin.ask("POST", asked, {"spec": {"expirationSeconds": 7200}})["status"]["token"]
        _config_map(admin, tenant, "small", {"value": "x" * 900}, {})
    for number in range(SMALL):
        _config_map(admin, FLOOD, f"small-{number}", {"value": "x" * 900}, {"size": "small"})
    for number in range(LARGE):
        _config_map(admin, FLOOD, f"large-{number}", {"value": "x" * 1_000_000}, {"size": "large"})
    huge = {f"k{number:05}": "0" for number in range(40_000)}
    for number in range(64):
        _config_map(admin, FLOOD, f"huge-{number}", huge if number < 4 else {}, {})
    if widgets:
        admin.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
    return Side(name, target, tokens)


def _config_map(admin: Administrator, namespace: str, name: str, data: dict[str, str], labels: dict[str, str]) -> None:
    body = {"metadata": {"name": name, "labels": labels}, "data": data}
    admin.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)


class Load:
    """The Go program, for one server."""

    def __init__(self, program: Path, *, pinned: bool) -> None:
        self._program = program
        self._before = ["taskset", "-c", "1"] if pinned else []

    def command(self, side: Side, tenant: str, **options: Any) -> list[str]:
        options |= {"server": side.target.url, "ca": side.target.authority, "token": side.tokens[tenant]}
        options["namespace"] = tenant
        return [*self._before, str(self._program), *(f"-{name}={value}" for name, value in options.items())]

    def probe(self, side: Side, seconds: float, *, fresh: bool) -> dict[str, Any]:
        command = self.command(side, VICTIM, role="probe", seconds=seconds, fresh=str(fresh).lower())
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return found

    @contextmanager
    def flood(self, side: Side, mix: str, connections: int, into: dict[str, Any]) -> Iterator[None]:
        command = self.command(side, FLOOD, role="flood", mix=mix, connections=connections)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            time.sleep(WARM_SECONDS)
            yield
        finally:
            out, _ = process.communicate(timeout=60)
            into.update(json.loads(out))


def row(load: Load, side: Side, mix: str, connections: int, seconds: float) -> tuple[float, str]:
    fresh = mix == "fresh"
    quiet = load.probe(side, seconds / 2, fresh=fresh)
    flooded: dict[str, Any] = {}
    with load.flood(side, mix, connections, flooded):
        busy = load.probe(side, seconds, fresh=fresh)
    quiet_p50 = min(quiet["p50_ms"], load.probe(side, seconds / 2, fresh=fresh)["p50_ms"])
    ratio = busy["p50_ms"] / quiet_p50
    codes = ", ".join(f"{number} x {code}" for code, number in sorted(flooded["codes"].items()))
    wrong = {code: number for code, number in busy["codes"].items() if code != "200"}
    text = (
        f"| {mix} | {connections} | {side.name} | {quiet_p50:.2f} | {busy['p50_ms']:.2f} | {busy['p99_ms']:.1f} "
        f"| {ratio:.1f} | {flooded['per_second']:.0f} | {codes} |"
    )
    return ratio, text + (f" second tenant: {wrong}" if wrong else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, help="program that starts kube-apiserver and etcd")
    parser.add_argument("--connections", default="4,16,64")
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each probe")
    parser.add_argument("--pin", action="store_true", help="servers on the first processor, the load on the second")
    options = parser.parse_args()
    go = shutil.which("go")
    if go is None:
        raise SystemExit("no `go` on PATH: the load generator cannot be built")
    mixes = options.mixes.split(",")
    widgets = not {"regular-expression", "cel"}.isdisjoint(mixes)
    missed = False
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        here = Path(temporary)
        program = here / "fairness"
        subprocess.run([go, "build", "-o", str(program), "."], cwd=HERE / "go" / "fairness", check=True)
        targets = {"ostinato": stack.enter_context(ours(_made(here / "ours"), here / "bytecode"))}
        if options.real is not None:
            targets["kube-apiserver"] = stack.enter_context(real(options.real, _made(here / "real")))
        sides = [prepare(name, target, widgets=widgets) for name, target in targets.items()]
        if options.pin:
            for pid in [pid for side in sides for pid in side.target.pids]:
                subprocess.run(["taskset", "-acp", "0", str(pid)], check=True, stdout=subprocess.DEVNULL)
        load = Load(program, pinned=options.pin)
        print(f"{os.cpu_count()} processors, {'pinned' if options.pin else 'not pinned'}\n")
        print("| flood | connections | server | idle p50 ms | p50 ms | p99 ms | x idle | flood /s | its responses |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        for mix in mixes:
            for connections in map(int, options.connections.split(",")):
                ratios = []
                for side in sides:
                    ratio, text = row(load, side, mix, connections, options.seconds)
                    print(text, flush=True)
                    ratios.append(ratio)
                missed |= ratios[0] > 5
    sys.exit(missed)


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    main()
