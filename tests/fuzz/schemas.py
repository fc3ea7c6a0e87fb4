"""Requests that schemathesis makes of the server's own OpenAPI documents, valid and not: none is answered with a 500.

    pip install schemathesis
    PYTHONPATH=src python -m tests.fuzz.schemas --examples 5 [--paths api/v1 apis/apps/v1]

A server of its own is started and asked about every path of each group. Every answer with a 500 is printed, with the
request; the README lists those that are kube-apiserver's own. What the server logs as its own error is a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

_TOKEN = "fuzz"

# Loaded by schemathesis: ends watches, and writes one line for each answer.
_HOOKS = """
import json, os, schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.query, dict) and "watch" in case.query:
        case.query["timeoutSeconds"] = "1"

@schemathesis.hook
def after_call(context, case, response):
    asked = response.request
    line = {"status": response.status_code, "method": asked.method, "url": asked.url}
    if response.status_code >= 500:
        line |= {"type": asked.headers.get("Content-Type"), "body": str(asked.body)[:2000]}
        line["answer"] = response.text[:500]
    with open(os.environ["ANSWERS"], "a") as answers:
        answers.write(json.dumps(line) + chr(10))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="ask a server of its own what its OpenAPI documents suggest")
    parser.add_argument("--examples", type=int, default=5, help="of each operation and each sort of test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemathesis", default="schemathesis", help="the command")
    parser.add_argument("--paths", nargs="*", help="groups and versions; defaults to all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(_run(Path(directory), options))


def _run(directory: Path, options: argparse.Namespace) -> int:
    tokens, log = directory / "tokens.csv", directory / "log"
    tokens.write_text(f'{_TOKEN},admin,1,"system:masters"\n')
    (directory / "hooks.py").write_text(_HOOKS)
    command = [sys.executable, "-c", "from ostinato.cli import main; main()", "apiserver", "--store", "memory"]
    command += ["--listen", "127.0.0.1:0", "--state", str(directory / "state"), "--token-auth-file", str(tokens)]
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as server:
        assert server.stdout is not None
        url = next(word for word in server.stdout.readline().split() if word.startswith("https://"))
        try:
            for path in options.paths or _documents(url):
                print(path, _ask(f"{url}/openapi/v3/{path}", url, options, directory), flush=True)
            alive = server.poll() is None
        finally:
            server.terminate()
    faults = [line for line in log.read_text().splitlines() if "Traceback" in line or "ERROR" in line]
    answers = [json.loads(line) for line in (directory / "answers").read_text().splitlines()]
    for answer in answers:
        if answer["status"] >= 500:
            print(json.dumps(answer))
    print(f"{len(answers)} answers: {sorted(Counter(answer['status'] for answer in answers).items())}")
    print(f"{len(faults)} faults; the server {'lives' if alive else 'is dead'}")
    print("\n".join(log.read_text().splitlines()[-60:]) if faults else "")
    return 1 if faults or not alive else 0


def _documents(url: str) -> list[str]:
    context = ssl._create_unverified_context()
    asked = urllib.request.Request(f"{url}/openapi/v3", headers={"Authorization": f"Bearer {_TOKEN}"})
    with urllib.request.urlopen(asked, context=context) as answer:
        return sorted(path for path in json.load(answer)["paths"] if path.count("/") > 0)


def _ask(document: str, url: str, options: argparse.Namespace, directory: Path) -> str:
    command = [options.schemathesis, "run", document, "--url", url, "--tls-verify", "false"]
    command += ["-H", f"Authorization: Bearer {_TOKEN}", "--checks", "not_a_server_error", "--mode", "all"]
    command += ["--max-examples", str(options.examples), "--seed", str(options.seed), "--request-timeout", "5"]
    command += ["--phases", "fuzzing", "--exclude-path-regex", "/watch/|/proxy|/exec|/attach|/portforward|/log"]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "ANSWERS": str(directory / "answers")}
    environment["PYTHONPATH"] = str(directory)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environment)
    said = [line.strip() for line in done.stdout.splitlines() if "test case" in line.lower() or "generated" in line]
    return " ".join(said[-2:]) or done.stdout[-300:] + done.stderr[-300:]


if __name__ == "__main__":
    main()
