"""Record the answers of a kube-apiserver with other admission plugins.

    python -m tests.contract.admission.record GROUP PLACE URL TOKEN-FILE

The options for the kube-apiserver are printed first; recording begins when it responds at URL.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.contract import conversations
from tests.contract.admission_servers import HERE, options

SECONDS = 120  # for kube-apiserver to start


def main(group: str, place: str, url: str, token: str) -> None:
    Path(place).mkdir(parents=True, exist_ok=True)
    with options(group, Path(place)) as wanted:
        (Path(place) / "options").write_text("\n".join(wanted))
        print(" ".join(wanted), flush=True)
        server = _ready(url, Path(token))
        cases = [scenario for scenario, _ in conversations.scenarios(group, HERE, recorded=False)]
        answers = {
            case["name"].replace(" ", "-"): conversations.run_scenario(server, case, conversations.IGNORED)
            for case in cases
        }
    target = HERE / "recorded" / f"{group}.json"
    target.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    print(f"{target}: {sum(map(len, answers.values()))} answers")


def _ready(url: str, token: Path) -> conversations.Server:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            server = conversations.Server(url, token.read_text().strip(), None)
            connection, response = server.request("GET", "/readyz", {}, None)
            connection.close()
            if response.status == 200:
                return server
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit(f"{url}: not ready after {SECONDS} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
