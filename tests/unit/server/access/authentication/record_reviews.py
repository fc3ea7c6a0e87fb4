"""Records what kube-apiserver makes of `review_cases`, from the top of the repository:

    python -m tests.unit.server.access.authentication.record_reviews serve DIRECTORY PORT   # writes webhook.kubeconfig
    kube-apiserver --authentication-token-webhook-config-file DIRECTORY/webhook.kubeconfig \
        --authentication-token-webhook-version v1 ...
    python -m tests.unit.server.access.authentication.record_reviews ask https://127.0.0.1:6443 TOKEN-FILE
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.unit.server.access.authentication.issuing import HttpsIssuer
from tests.unit.server.access.authentication.record_mutations import ask
from tests.unit.server.access.authentication.review_cases import CASES
from tests.unit.server.access.authentication.tokens.test_webhook_tokens import settings

from ostinato.world import World


async def serve(directory: Path, port: int) -> None:
    backend = HttpsIssuer(World.real(), directory)
    backend.reviews = CASES
    await backend.start(port)
    settings(backend, directory)
    await asyncio.Event().wait()


def record(server: str, token_file: str) -> None:
    admin, answers = Path(token_file).read_text().strip(), {}
    for token in CASES:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = ask(f"{server}/apis/authentication.k8s.io/v1/tokenreviews", admin, review)["status"]
        answers[token] = status.get("user") if status.get("authenticated") else status["error"]
    json.dump(answers, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        place = Path(sys.argv[2])
        place.mkdir(exist_ok=True)
        asyncio.run(serve(place, int(sys.argv[3])))
    else:
        record(*sys.argv[2:])
