"""Records what kube-apiserver answers to `oidc_cases`, from the top of the repository:

python -m tests.unit.server.access.authentication.record_oidc serve DIRECTORY PORT      # the issuer; writes config.yaml
kube-apiserver --authentication-config DIRECTORY/config.yaml ...
python -m tests.unit.server.access.authentication.record_oidc ask DIRECTORY PORT https://127.0.0.1:6443 TOKEN-FILE
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.unit.server.access.authentication.issuing import HttpsIssuer, Key
from tests.unit.server.access.authentication.oidc_cases import cases, configuration
from tests.unit.server.access.authentication.record_mutations import ask

from ostinato.world import World


def keys(directory: Path) -> list[Key]:
    found = []
    for name in ("one", "two"):
        key, path = Key(name), directory / f"{name}.key"
        if path.exists():
            key.key = load_pem_private_key(path.read_bytes(), None)
        else:
            path.write_bytes(key.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        found.append(key)
    return found


async def serve(directory: Path, port: int) -> None:
    issuer = HttpsIssuer(World.real(), directory)
    issuer.keys = keys(directory)[:1]
    await issuer.start(port)
    (directory / "config.yaml").write_text(json.dumps(configuration(issuer.url, issuer.authority.read_text())))
    await asyncio.Event().wait()


def record(directory: Path, port: int, server: str, token_file: str) -> None:
    admin, url = Path(token_file).read_text().strip(), f"https://127.0.0.1:{port}"
    one, two = keys(directory)
    answers = {}
    for name, token in cases(url, int(time.time()), one, two):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = ask(f"{server}/apis/authentication.k8s.io/v1/tokenreviews", admin, review)["status"]
        told = json.dumps(status.get("user") if status.get("authenticated") else status["error"])
        answers[name] = json.loads(told.replace(str(port), "PORT"))
    json.dump(answers, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    what, where, number, *rest = sys.argv[1:]
    place = Path(where)
    place.mkdir(exist_ok=True)
    if what == "serve":
        asyncio.run(serve(place, int(number)))
    else:
        record(place, int(number), *rest)
