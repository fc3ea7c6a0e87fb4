"""Replay kubectl sessions against a server, and compare their output with that against a kube-apiserver.

A transcript is a list of shell commands (kubectl/transcripts/*.yaml); kubectl/recorded/*.json has the normalised
output. kubectl/README.md describes the keys of a transcript.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent / "kubectl"
SECONDS = 30  # timeout of a kubectl call


class Kubectl:
    """A kubectl binary and the one cluster of a kubeconfig, under fixed names."""

    def __init__(self, binary: str, kubeconfig: Path):
        self.binary = shutil.which(binary) or sys.exit(f"no such binary: {binary}")
        view = ["config", "view", "--raw", "--flatten", "--minify", "-o", "json"]
        found = json.loads(self.call(view, {**os.environ, "KUBECONFIG": str(kubeconfig)}))
        self.cluster, self.user = found["clusters"][0]["cluster"], found["users"][0]["user"]
        self.server = self.cluster["server"]

    def call(self, arguments: list[str], environment: dict) -> str:
        done = subprocess.run(
            [self.binary, *arguments], env=environment, capture_output=True, timeout=SECONDS, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def kubeconfig(self, namespace: str) -> str:
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "cluster", "cluster": self.cluster}],
                "users": [{"name": "user", "user": self.user}],
                "contexts": [
                    {"name": "context", "context": {"cluster": "cluster", "user": "user", "namespace": namespace}}
                ],
                "current-context": "context",
            }
        )

    def versions(self, environment: dict) -> str:
        found = json.loads(self.call(["version", "-o", "json"], environment))
        return "".join(
            f"{name} {found.get(key, {}).get('gitVersion')}\n"
            for name, key in (("kubectl", "clientVersion"), ("server", "serverVersion"))
        )


class Sandbox:
    """A temporary home: kubeconfig, empty discovery cache, a kubectl with a time limit, a working directory."""

    def __init__(self, kubectl: Kubectl, namespace: str):
        self.directory = tempfile.TemporaryDirectory(prefix="transcript-")
        self.root = Path(self.directory.name)
        for name in ("bin", "tmp", "work"):
            (self.root / name).mkdir()
        self.work = self.root / "work"
        (self.root / "kubeconfig").write_text(kubectl.kubeconfig(namespace))
        wrapper = self.root / "bin" / "kubectl"
        wrapper.write_text(f'#!/bin/sh\nexec timeout "$KUBECTL_SECONDS" {shlex.quote(kubectl.binary)} "$@"\n')
        wrapper.chmod(0o755)
        self.environment = {
            "PATH": f"{wrapper.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.root),
            "TMPDIR": str(self.root / "tmp"),
            "KUBECONFIG": str(self.root / "kubeconfig"),
            "KUBECACHEDIR": str(self.root / "cache"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def run(self, command: str, seconds: float = SECONDS) -> tuple[str, str, int | str]:
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=self.work,
            env={**self.environment, "KUBECTL_SECONDS": str(seconds)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=2 * seconds)
            return stdout, stderr, process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return *process.communicate(), "timeout"


AGE = r"(?:(?:\d+[mhdy])?\d+[shd]|\d+y)"  # never a bare 100m, which is a quantity


class Normaliser:
    """Replaces the volatile parts of one transcript's output with placeholders."""

    RULES = [
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d)", "<time>"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"(?m)^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w.-]+):\d+\]", r"\1 \2]"),
        (rf"(?m)(?:^|(?<=  )){AGE}(?=  |$)", "<age>"),
        (rf"{AGE} \(x(\d+) over {AGE}\)", r"<age> (x\1 over <age>)"),
        (r"\b(LIVE|MERGED|kubectl-edit)-\d+", r"\1-<random>"),
    ]
    HEADER = re.compile(r"[A-Z][A-Z0-9_./()%-]*( +[A-Z0-9_./()%-]+)*\s*")
    UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
    VERSION = re.compile(r'(?i)(\bresource ?version\\?"?: *\\?"?)([1-9]\d*)')
    ADDRESS = re.compile(r"\b(?!127\.)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
    NODE_PORT = re.compile(r"(?<!-)\b3[0-2]\d{3}\b(?!-)")

    def __init__(self, namespace: str, server: str, root: Path, text: str):
        self.text = text  # an address or port in the transcript itself is not volatile
        self.words = [
            (namespace, "<ns>"),
            (server, "<server>"),
            (server.split("//")[-1], "<server>"),
            (str(root), "<home>"),
        ]
        self.generated = [
            re.compile(rf"\b({re.escape(prefix)})[bcdfghjklmnpqrstvwxz2456789]{{5}}\b")
            for prefix in {"kube-api-access-", *re.findall(r"generateName\"?: *\"?([\w.-]+)", text)}
        ]
        self.seen: dict[str, dict[str, str]] = {}

    def name(self, kind: str, value: str) -> str:
        table = self.seen.setdefault(kind, {})
        return table.setdefault(value, f"<{kind}-{len(table) + 1}>")

    def foreign(self, kind: str, value: str) -> str:
        return value if value in self.text else self.name(kind, value)

    def tables(self, text: str):
        """Put three spaces between the cells of a table, whose widths depend on volatile values."""
        starts: list[int] = []
        for line in text.split("\n"):
            if self.HEADER.fullmatch(line):
                starts = [m.start() for m in re.finditer(r"(?:^|(?<=  ))\S", line)]
            elif not line:
                starts = []
            if not starts:
                yield line
            elif all(line[s - 1 : s] in ("", " ") for s in starts[1:]):
                ends = [*starts[1:], None]
                yield "   ".join(line[a:b].strip() for a, b in zip(starts, ends, strict=False)).rstrip()
            else:
                yield re.sub(r"(?<=\S) {2,}", "   ", line)

    def __call__(self, text: str, extra: list[str]) -> str:
        text = "\n".join(self.tables(text))
        for value, placeholder in self.words:
            text = text.replace(value, placeholder)
        for pattern in extra:
            text = re.sub(pattern, "<any>", text)
        for pattern in self.generated:
            text = pattern.sub(lambda m: m[1] + self.name("generated", m[0]), text)
        for pattern, placeholder in self.RULES:
            text = re.sub(pattern, placeholder, text)
        text = self.UID.sub(lambda m: self.name("uid", m[0]), text)
        text = self.VERSION.sub(lambda m: m[1] + self.name("rv", m[2]), text)
        text = self.ADDRESS.sub(lambda m: self.foreign("ip", m[0]), text)
        return self.NODE_PORT.sub(lambda m: self.foreign("port", m[0]), text)


def run_transcript(kubectl: Kubectl, transcript: dict) -> list[dict]:
    """Run the commands; return one normalised answer per command."""
    namespace = f"k-{int(time.time() * 1000) % 10**10:010}"
    commands = [c if isinstance(c, dict) else {"run": c} for c in transcript["commands"]]
    text = yaml.safe_dump(transcript, width=10**6)
    answers = []
    with Sandbox(kubectl, namespace) as box:
        normalise = Normaliser(namespace, kubectl.server, box.root, text)
        for name, content in transcript.get("files", {}).items():
            file = box.work / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content.replace("${ns}", namespace))
        box.run(f"kubectl create namespace {namespace}; kubectl create serviceaccount default")
        for command in commands:
            run = command["run"].replace("${ns}", namespace)
            stdout, stderr, code = box.run(run, command.get("seconds", SECONDS))
            answer = {"stdout": stdout, "stderr": stderr}
            if "only" in command:
                answer = {"stdout": stdout} if command["only"] == "stdout" else {}
            for stream, output in answer.items():
                lines = normalise(output, command.get("normalise", [])).split("\n")
                # kubectl's own watch may log that it was ended by kubectl's own --timeout: a race within kubectl.
                lines = [line for line in lines if " reflector.go]" not in line]
                answer[stream] = sorted(lines) if command.get("sort") else lines
            if command.get("only") != "stdout":
                answer["exit"] = code
            answers.append({"command": command["run"], **answer})
        for command in transcript.get("cleanup", []):
            box.run(command.replace("${ns}", namespace))
        # Without a namespace controller a Service would keep its address and ports.
        box.run(f"kubectl delete services --all -n {namespace}; kubectl delete namespace {namespace} --wait=false")
    return answers


def groups() -> list[str]:
    return [file.stem for file in sorted((HERE / "transcripts").glob("*.yaml"))]


def transcripts(group: str) -> list[tuple[dict, list[dict]]]:
    """The transcripts of a group, each with its recording."""
    recorded = json.loads((HERE / "recorded" / f"{group}.json").read_text())
    found = yaml.safe_load((HERE / "transcripts" / f"{group}.yaml").read_text())
    return [(transcript, recorded[transcript["name"].replace(" ", "-")]) for transcript in found]


def check(kubectl: Kubectl, transcript: dict, expected: list[dict]) -> tuple[int, str]:
    """The number of commands with the recorded output, and the differences."""
    answers = run_transcript(kubectl, transcript)
    good, differences = 0, []
    for i, want in enumerate(expected):
        got = answers[i] if i < len(answers) else {}
        if got == want:
            good += 1
            continue
        a, b = (yaml.safe_dump(x, width=10**6, sort_keys=False).splitlines() for x in (want, got))
        differences.append(f"--- {transcript['name']} command {i + 1}: {want['command'].strip()}")
        differences += difflib.unified_diff(a, b, "kube-apiserver", "this server", n=2, lineterm="")
    return good, "\n".join(differences)
