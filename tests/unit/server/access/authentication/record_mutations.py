"""Records what kube-apiserver answers to `mutations`, from the top of the repository.

It takes the server's URL, a file with an administrator's token, and the file of the private key with which the server
signs service account tokens. The service account default/robot must exist.

    python -m tests.unit.server.access.authentication.record_mutations https://127.0.0.1:6443 TOKEN-FILE KEY-FILE
"""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from tests.unit.server.access.authentication.mutations import Minter, every


def ask(url: str, token: str, sent: Any = None) -> Any:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if sent is None else json.dumps(sent).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), context=context) as answer:
        return json.load(answer)


def main() -> None:
    server, token_file, key_file = sys.argv[1:]
    admin = Path(token_file).read_text().strip()
    key: Any = load_pem_private_key(Path(key_file).read_bytes(), None)
    uid = ask(f"{server}/api/v1/namespaces/default/serviceaccounts/robot", admin)["metadata"]["uid"]
    answers = {}
    for name, token in every(Minter(key, int(time.time()), uid)):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = ask(f"{server}/apis/authentication.k8s.io/v1/tokenreviews", admin, review)["status"]
        answers[name] = "" if status.get("authenticated") else status["error"].replace(uid, "UID")
    json.dump(answers, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
