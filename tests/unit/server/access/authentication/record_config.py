"""Records what kube-apiserver says of `config_cases`, from the top of the repository:

python -m tests.unit.server.access.authentication.record_config KUBE-APISERVER KEY-FILE DIRECTORY
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.server.access.authentication.config_cases import CASES, text


def first_line(log: str) -> str:
    """The first line of the error with which it ended, without the quoting of the log."""
    told = log.rpartition('"command failed" err=')[2]
    lines = told.splitlines()
    told = json.loads(lines[0]) if told.startswith('"') else lines[1].strip()
    return told.partition("invalid authentication configuration: ")[2] or told


def main() -> None:
    program, key, directory = sys.argv[1:]
    answers = {}
    for name, case in CASES.items():
        file = Path(directory) / "config.json"
        file.write_text(text(case))
        flags = [
            "--etcd-servers=http://127.0.0.1:1",
            "--secure-port=17999",
            f"--cert-dir={directory}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--authentication-config={file}",
        ]
        ended = subprocess.run([program, *flags], capture_output=True, text=True, timeout=60, check=False)
        answers[name] = first_line(ended.stderr)
    json.dump(answers, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
