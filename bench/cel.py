"""Custom objects with ten CEL rules: creations per second beside kube-apiserver, and the time of one validation.

    python -m bench.cel [--real PROGRAM] [--seconds 4]

Servers, load and `--real` are those of `bench.apiserver`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bench.apiserver import Target, build_load, load_command, ours, real
from ostinato.server.schema.rules.evaluation import check_rules, rule_tree

_TEXT = {"type": "string", "maxLength": 64}
_PART = {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "weight": {"type": "integer"}}}
_RULES = [
    "self.min <= self.max",
    "self.replicas >= self.min && self.replicas <= self.max",
    "self.name.startsWith('app-') && self.name.size() < 40",
    "self.image.matches('^[a-z0-9./-]+:[a-z0-9.-]+$')",
    "self.parts.all(p, p.weight > 0 && p.weight <= 100)",
    "self.parts.map(p, p.weight).sum() <= 100",
    "self.parts.all(a, self.parts.exists_one(b, b.name == a.name))",
    "!has(self.host) || isURL(self.host)",
    "quantity(self.memory).isLessThan(quantity('8Gi'))",
    "self.labels.all(k, k.size() < 20 && self.labels[k] != '')",
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                **{name: {"type": "integer"} for name in ("min", "max", "replicas")},
                **dict.fromkeys(("name", "image", "host", "memory"), _TEXT),
                "parts": {"type": "array", "maxItems": 8, "items": _PART},
                "labels": {"type": "object", "maxProperties": 8, "additionalProperties": _TEXT},
            },
            "x-kubernetes-validations": [{"rule": rule} for rule in _RULES],
        }
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ruled.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "scope": "Namespaced",
        "names": {"plural": "ruled", "kind": "Ruled"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}
OBJECT = {
    "apiVersion": "bench.example.com/v1",
    "kind": "Ruled",
    "metadata": {"name": "<name>"},
    "spec": {
        "min": 1,
        "max": 9,
        "replicas": 3,
        "name": "app-web",
        "image": "registry.example.com/team/web:1.2.3",
        "host": "https://web.example.com/",
        "memory": "512Mi",
        "parts": [{"name": f"part-{i}", "weight": 10 + i} for i in range(4)],
        "labels": {"team": "web", "tier": "front", "stage": "test"},
    },
}
_PATH = "/apis/bench.example.com/v1/namespaces/default/ruled"


def define(target: Target) -> None:
    """Create the definition and wait until it is served."""
    context = ssl.create_default_context(cafile=str(target.authority))
    headers = {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = json.dumps(DEFINITION).encode()
    urllib.request.urlopen(urllib.request.Request(target.url + path, body, headers), context=context).close()
    for _ in range(100):
        try:
            urllib.request.urlopen(urllib.request.Request(target.url + _PATH, headers=headers), context=context).close()
        except urllib.error.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the definition is not served")


def create(side: AbstractContextManager[Target], program: Path, directory: Path, seconds: float) -> dict[str, Any]:
    template = directory / "object.json"
    template.write_text(json.dumps(OBJECT))
    with side as target:
        define(target)
        command = [*load_command(program, target, seconds), "-phases=create-custom", f"-custom={_PATH}"]
        done = subprocess.run([*command, f"-template={template}"], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if result["errors"]:
        raise SystemExit(f"{result['errors']} errors, such as {result['error']}")
    return result


def evaluations(count: int = 3000) -> float:
    """Return the microseconds for the ten rules of one object."""
    tree = rule_tree(SCHEMA)
    assert tree is not None
    began = time.perf_counter()
    for _ in range(count):
        assert not check_rules(tree, OBJECT, None).errors
    return (time.perf_counter() - began) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, help="program that starts kube-apiserver and etcd")
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    print(f"ten rules of one object: {evaluations():.0f} us")
    go = shutil.which("go")
    if go is None:
        raise SystemExit("no `go` on PATH: the load generator cannot be built")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        program = build_load(go, directory)
        mine = create(ours(directory, directory / "bytecode"), program, directory, options.seconds)
        print(f"create, ostinato: {mine['per_second']:.0f} /s, p99 {mine['p99_ms']:.1f} ms")
        if options.real is None:
            return
        other = create(real(options.real, directory / "real"), program, directory, options.seconds)
        print(f"create, kube-apiserver + etcd: {other['per_second']:.0f} /s, p99 {other['p99_ms']:.1f} ms")
        print(f"ratio: {mine['per_second'] / other['per_second']:.2f} (target: 1)")


if __name__ == "__main__":
    main()
