"""Record what a bare kube-apiserver answers: python -m tests.contract.dual_stack.record URL TOKEN RANGES FILE

`RANGES`: which of `cases.RANGES` its --service-cluster-ip-range has. `FILE` keeps what it has of the others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.contract.conversations import Server
from tests.contract.dual_stack.cases import observe


def main(url: str, token: str, ranges: str, file: Path) -> None:
    recorded = json.loads(file.read_text()) if file.exists() else {}
    recorded[ranges] = observe(Server(url, token, None), ranges)
    of_server = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(case)}: {json.dumps(seen, separators=(',', ':'))}" for case, seen in cases.items())
        + "\n}"
        for name, cases in sorted(recorded.items())
    )
    file.write_text("{\n" + ",\n".join(of_server) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
