"""Hooks: events per second and memory beside shell-operator, with the same hooks on the same API server.

    python -m bench.hooks --originals DIR [--objects 1000]

- `stream`: objects are created as fast as the API server stores them; events that wait are combined into one run.
- `one at a time`: an object is created when the hook has run for the one before: nothing can be combined.
- `CPU`: processor time of the operator and its hooks for one event, of both; unlike the rates it does not depend on the
  API server and on what else the machine does.
- `memory`: the resident set of the operator afterwards, without its hooks' processes.

Hooks are bash scripts, Python scripts, and, for Ostinato, the same as `@hook` functions in the process.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ostinato.client import Client, Config
from ostinato.client.views import Unstructured

CONFIG = """configVersion: v1
kubernetes:
- name: cms
  kind: ConfigMap
  executeHookOnSynchronization: false
  executeHookOnEvent: [Added]
  labelSelector: {matchLabels: {bench: hooks}}
"""
BASH = f"""#!/usr/bin/env bash
if [[ $1 == --config ]]; then cat <<'EOF'
{CONFIG}EOF
exit 0
fi
all=$(<$BINDING_CONTEXT_PATH)
less=${{all//watchEvent/}}
printf "%*s" $(((${{#all}} - ${{#less}}) / 10)) "" >> $BENCH/runs
"""
PYTHON = f"""#!{sys.executable} -S
import json, os, sys
if sys.argv[1:] == ["--config"]:
    print({CONFIG!r})
else:
    with open(os.environ["BINDING_CONTEXT_PATH"]) as file:
        contexts = json.load(file)
    with open(os.environ["BENCH"] + "/runs", "a") as file:
        file.write(" " * len(contexts))
"""
FUNCTION = """import os
from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.hooks import hook, watch

KIND = GroupVersionKind("", "v1", "ConfigMap")

@hook(watch("cms", KIND, on_synchronization=False, events=["Added"], labels="bench=hooks"))
def run(ctx):
    with open(os.environ["BENCH"] + "/runs", "a") as file:
        file.write(" " * len(ctx.contexts))
"""
SINGLE = 60  # objects
CONFIG_MAP = Unstructured.of("v1", "ConfigMap")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, help="directory with bin/shell-operator")
    parser.add_argument("--objects", type=int, default=1000)
    options = parser.parse_args()
    contenders: list[tuple[str, str, Callable[..., list[str]]]] = []
    for form, text in (("bash", BASH), ("Python script", PYTHON)):
        if options.originals:
            contenders.append((f"shell-operator, {form}", text, lambda *a: _theirs(options.originals, *a)))
        contenders.append((f"ostinato, {form}", text, _ours))
    contenders.append(("ostinato, @hook", FUNCTION, _ours))
    print(f"{'':28}{'stream/s':>18}{'CPU ms':>10}{'one at a time/s':>18}{'CPU ms':>10}{'memory MiB':>14}")
    with tempfile.TemporaryDirectory() as directory, _apiserver(Path(directory)) as kubeconfig:
        for name, text, command in contenders:
            found = asyncio.run(_measure(kubeconfig, text, command, options.objects))
            stream, stream_cpu, single, single_cpu, memory = found
            rates = f"{stream:18.0f}{stream_cpu:10.2f}{single:18.0f}{single_cpu:10.2f}"
            print(f"{name:28}{rates}{memory:14.0f}", flush=True)


async def _measure(
    kubeconfig: Path, text: str, command: Callable[..., list[str]], objects: int
) -> tuple[float, float, float, float, float]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        hooks = root / "hooks"
        hooks.mkdir()
        ending = ".py" if text is FUNCTION else ""
        (hooks / f"hook{ending}").write_text(text)
        (hooks / f"hook{ending}").chmod(0o755)
        (root / "runs").touch()
        log = (root / "log").open("wb")
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs
            command(hooks, kubeconfig, root), stdout=log, stderr=log, env={**os.environ, "BENCH": directory}
        )
        try:
            async with Client.connect(Config.load(path=kubeconfig, namespace="default")) as client:
                return await _events(client, root, process.pid, objects)
        finally:
            process.terminate()
            process.wait(60)
            log.close()


async def _events(client: Client, root: Path, pid: int, objects: int) -> tuple[float, float, float, float, float]:
    runs = root / "runs"
    await client.delete_all_of(CONFIG_MAP, namespace="default", labels="bench")
    await asyncio.sleep(4)
    start, used = time.perf_counter(), _cpu(pid)
    await asyncio.gather(*(_create(client, f"a{number}", "hooks") for number in range(objects)))
    await _until(runs, objects)
    stream, stream_cpu = objects / (time.perf_counter() - start), (_cpu(pid) - used) / objects
    start, used = time.perf_counter(), _cpu(pid)
    for number in range(SINGLE):
        await _create(client, f"b{number}", "hooks")
        await _until(runs, objects + number + 1)
    single, single_cpu = SINGLE / (time.perf_counter() - start), (_cpu(pid) - used) / SINGLE
    return stream, stream_cpu, single, single_cpu, _memory(pid)


async def _create(client: Client, name: str, label: str) -> None:
    metadata = {"name": name, "labels": {"bench": label}}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "x" * 500}})


async def _until(runs: Path, count: int) -> None:
    end = time.perf_counter() + 60
    while (size := runs.stat().st_size) < count:  # noqa: ASYNC240 - a file in memory
        if time.perf_counter() > end:
            raise RuntimeError(f"{size} of {count} events; see the log:\n{_log(runs.parent)}")
        await asyncio.sleep(0.0005)


def _log(root: Path) -> str:
    return (root / "log").read_text()[-3000:]


def _cpu(pid: int) -> float:
    """Return milliseconds of a process and its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _ours(hooks: Path, kubeconfig: Path, _root: Path) -> list[str]:
    return [sys.executable, "-m", "ostinato.cli", "hooks", str(hooks), "--kubeconfig", str(kubeconfig)]


def _theirs(originals: Path, hooks: Path, kubeconfig: Path, root: Path) -> list[str]:
    binary = str(originals / "bin" / "shell-operator")
    port = str(20_000 + os.getpid() % 10_000)
    return [
        *(binary, "start", "--hooks-dir", str(hooks), "--kube-config", str(kubeconfig)),
        *("--tmp-dir", str(root / "tmp"), "--listen-port", port),
    ]


@contextmanager
def _apiserver(state: Path) -> Iterator[Path]:
    command = [sys.executable, "-m", "ostinato.cli", "apiserver", "--listen", "127.0.0.1:0", "--state", str(state)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield state / "admin.kubeconfig"
    finally:
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main()
