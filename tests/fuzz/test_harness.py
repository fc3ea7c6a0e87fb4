"""A short, seeded run of the fuzz harness, without a fuzzer."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path as File
from types import ModuleType

import pytest

from ostinato.api.protobuf import encode, watch_event


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, File(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


harness = load("harness")

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}]},
}

CORPUS = {
    "json": [b'{"a":[1,2.5e3,null,true,"x\\u00e9\\ud83d\\ude00"],"b":{"c":-9223372036854775808}}', b'{"a":1,"a" :2}'],
    "yaml": [
        b"a: &x {b: [1, yes, ~]}\nc: *x\nd: {<<: *x}\n",
        b"- |\n  text\n- >-\n  more\n- !!int '3'\n---\n? k\n: v\n",
    ],
    "protobuf": [encode(POD), watch_event("ADDED", encode(POD))],
}


def mutated(data: bytes, rng: random.Random) -> bytes:
    result = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(result) + 1)
        match rng.randrange(4):
            case 0:
                result[at:at] = rng.randbytes(rng.randint(1, 3))
            case 1:
                del result[at : at + rng.randint(1, 5)]
            case 2:
                result[at : at + 1] = bytes([rng.randrange(256)])
            case _:
                start = rng.randrange(len(result) + 1)
                result[at:at] = result[start : start + rng.randint(1, 20)]
    return bytes(result)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("target", CORPUS)
def test_mutations_of_valid_input_are_parsed_or_rejected(target: str, number: int) -> None:
    rng = random.Random(f"{target} {number}")
    check = getattr(harness, f"check_{target}")
    for seed in CORPUS[target]:
        check(seed)
        for _ in range(100):
            check(mutated(seed, rng))


def test_the_first_byte_picks_the_decoder() -> None:
    for byte in range(4):
        harness.check(bytes([byte]) + b"{}")
    harness.check(b"")
