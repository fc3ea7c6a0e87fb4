"""The contenders: the command of each operator, and the reasons for skipped ones."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ostinato"
KOPF = CACHE / "kopf-venv"
BYTECODE = CACHE / "bench-bytecode"

OSTINATO, CREATING, POSTING = "ostinato", "ostinato, creating", "ostinato, posting"
WAYS = {OSTINATO: "apply", CREATING: "create", POSTING: "post"}
HANDLERS = "ostinato, handlers"
RUNTIME = "controller-runtime"
KOPF_NAME, KOPF_QUIET = "kopf", "kopf, bare"
KOPF_NEEDS = ("kopf", "kubernetes_asyncio", "uvloop")
WORKERS = (1, 16)
AT_ONCE = 64  # workers of ours beside kopf, which has as many as there are objects

Commands = dict[
    str, list[str]
]  # by contender; the kubeconfig, the namespace and the state directory are put in for {…}


def named(name: str, workers: int) -> str:
    return f"{name}, {workers} worker{'s' if workers > 1 else ''}"


def one_process(name: str) -> str:
    """Return the command of an operator that includes its server."""
    return f"{name}, one process"


EMBEDDED = frozenset(one_process(way) for way in WAYS)
ON_OURS = EMBEDDED | {named(way, AT_ONCE) for way in WAYS}  # are measured on our own server alone


def commands(directory: Path) -> tuple[Commands, dict[str, str]]:
    """Return the commands, and the reason for each skipped one."""
    found: Commands = {}
    reasons: dict[str, str] = {}
    program, reason = _go(directory)
    if reason:
        reasons[RUNTIME] = reason
    for count in WORKERS:
        if program:
            found[named(RUNTIME, count)] = [program, "{kubeconfig}", "{namespace}", str(count)]
    for count, (name, way) in itertools.product((*WORKERS, AT_ONCE), WAYS.items()):
        ours = [sys.executable, "-m", "bench.operators.ostinato_operator", "{kubeconfig}", "{namespace}"]
        found[named(name, count)] = [*ours, str(count), way]
    ours = [sys.executable, "-m", "bench.operators.ostinato_operator", "{kubeconfig}", "{namespace}"]
    found[named(HANDLERS, AT_ONCE)] = [*ours, str(AT_ONCE), "handlers"]
    for name, way in WAYS.items():
        ours = [sys.executable, "-m", "bench.operators.embedded_operator", "{state}", "{namespace}"]
        found[one_process(name)] = [*ours, str(AT_ONCE), way]
    python, reason = _kopf()
    if reason:
        reasons[KOPF_NAME] = reason
    else:
        program = str(HERE / "kopf_operator.py")
        found[KOPF_NAME] = [python, "-m", "kopf", "run", "--standalone", "--namespace", "{namespace}", program]
        found[KOPF_QUIET] = [python, program]
    return found, reasons


def environment(kubeconfig: Path, namespace: str) -> dict[str, str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    ours = {"PYTHONPATH": path, "OPERATOR_KUBECONFIG": str(kubeconfig), "OPERATOR_NAMESPACE": namespace}
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**given, **ours, "PYTHONPYCACHEPREFIX": str(BYTECODE)}


def _go(directory: Path) -> tuple[str, str]:
    if shutil.which("go") is None:
        return "", "there is no go command"
    program = str(directory / "operator")
    command = ["go", "build", "-o", program, "."]
    build = subprocess.run(command, cwd=ROOT / "bench" / "go" / "operator", capture_output=True, text=True, check=False)
    if build.returncode:
        return "", (build.stderr.strip().splitlines() or ["it cannot be built"])[-1]
    return program, ""


def _kopf() -> tuple[str, str]:
    python = KOPF / "bin" / "python"
    if not python.exists():
        venv.create(KOPF, with_pip=True)
    probe = [str(python), "-c", "import kopf, kubernetes_asyncio, uvloop"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return str(python), ""
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *KOPF_NEEDS]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        return "", "kopf cannot be installed: " + (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return str(python), ""
