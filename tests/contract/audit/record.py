"""Record the audit events of a kube-apiserver: `python -m tests.contract.audit.record URL TOKEN LOG [GROUP]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.contract.audit_events import HERE, Numbered, events_of, scenarios


def main(url: str, token: str, log: str, group: str = "audit") -> None:
    server = Numbered(url, token, None)
    found = {scenario["name"]: events_of(server, Path(log), scenario) for scenario in scenarios(group)}
    target = HERE / "recorded" / f"{group}.json"
    target.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"{target}: {sum(map(len, found.values()))} requests")


if __name__ == "__main__":
    main(*sys.argv[1:])
