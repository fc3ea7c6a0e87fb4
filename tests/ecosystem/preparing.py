"""Install what a script of `programs/` needs, once: Go programs, Python and Node packages, Java libraries."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class NotAvailableError(Exception):
    """A package or a tool cannot be had here."""


class Needs(NamedTuple):
    """The head of a script."""

    program: str
    go: tuple[str, ...] = ()
    kubectl: tuple[str, ...] = ()  # versions
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    maven: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # that must be on PATH
    options: tuple[str, ...] = ()  # of `ostinato up`
    timeout: float = 300.0  # seconds


def read_needs(script: Path) -> Needs:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^# (\w+): (.+)$", script.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    values = {name: tuple(" ".join(found[name]).split()) for name in found if name not in ("program", "timeout")}
    needs = Needs(found["program"][0], **values)
    return needs._replace(timeout=float(found["timeout"][0])) if "timeout" in found else needs


def prepare(needs: Needs, name: str, cache: Path) -> dict[str, str]:
    """Install what is missing; return the variables of the script's environment. Raises NotAvailableError."""
    programs = cache / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    environment = {}
    path = [str(programs)]
    for package in needs.go:
        _build(package, programs)
    for version in needs.kubectl:
        _build_kubectl(version, programs)
    if needs.pip:
        path.insert(0, str(_environment(needs.pip, cache) / "bin"))
    if needs.npm:
        environment["NODE_PATH"] = str(_modules(needs.npm, cache) / "node_modules")
    if needs.maven:
        environment["CLASSPATH"] = _class_path(needs.maven, cache)
    environment["PATH"] = os.pathsep.join([*path, os.environ["PATH"]])
    for command in ("kubectl", *needs.commands):
        if shutil.which(command, path=environment["PATH"]) is None:
            raise NotAvailableError(f"{command} is not on PATH")
    return environment


_COMMON = re.compile(r"v\d+|controller|operator|cmd|\.|")  # parts of a package's path that do not name the program


def _build(package: str, programs: Path) -> None:
    """Build `PACKAGE@VERSION`, or `MODULE//PACKAGE@VERSION` if the module has replacements of its own."""
    path, _, version = package.partition("@")
    module, _, inner = path.partition("//")
    name = next(
        part
        for part in reversed(path.split("/"))
        if part and not re.fullmatch(r"v\d+|controller|operator|cmd|\.", part)
    )
    target = programs / name
    if target.exists():
        return
    go = _go()
    environment = _go_environment()
    if not inner:
        place = programs / f".{name}"
        _run([go, "install", "-ldflags=-s -w", f"{module}@{version}"], {**environment, "GOBIN": str(place)})
        (made,) = place.iterdir()
        made.rename(target)
        place.rmdir()
        return
    downloaded = json.loads(_run([go, "mod", "download", "-json", f"{module}@{version}"], environment))["Dir"]
    source = programs / f".{name}-source"
    shutil.copytree(downloaded, source, copy_function=shutil.copyfile, dirs_exist_ok=True)
    try:
        _drop_absent_replacements(go, source)
        command = [go, "build", "-mod=mod", "-ldflags=-s -w", "-o", str(target), f"./{inner}"]
        _run(command, environment, source)
    finally:
        shutil.rmtree(source)


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        raise NotAvailableError("go is not on PATH")
    return go


def _go_environment() -> dict[str, str]:
    flags = f"{os.environ.get('GOFLAGS', '')} -buildvcs=false"
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": flags}


def _build_kubectl(version: str, programs: Path) -> None:
    """Build `kubectl-1.35.10` from the library k8s.io/kubectl 0.35.10."""
    target = programs / f"kubectl-{version}"
    if target.exists():
        return
    go, environment, source = _go(), _go_environment(), programs / f".kubectl-{version}-source"
    source.mkdir(exist_ok=True)
    (source / "go.mod").write_text("module kubectl\n\ngo 1.25\n")
    (source / "main.go").write_text(_KUBECTL)
    stamp = f"-s -w -X k8s.io/component-base/version.gitVersion=v{version}"
    try:
        # Programs with the golang.org/x/sys that old versions require do not compile with a current Go.
        required = [f"k8s.io/kubectl@v0.{version.partition('.')[2]}", "golang.org/x/sys@v0.46.0"]
        _run([go, "get", *required], environment, source)
        _run([go, "build", "-mod=mod", f"-ldflags={stamp}", "-o", str(target), "."], environment, source)
    finally:
        shutil.rmtree(source)


_KUBECTL = """package main

import (
	"os"

	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
}
"""


def _drop_absent_replacements(go: str, source: Path) -> None:
    """Use published modules in place of directories that a module's zip leaves out: modules of their own."""
    described = json.loads(_run([go, "mod", "edit", "-json"], cwd=source))
    for replacement in described.get("Replace") or []:
        target = replacement["New"]["Path"]
        if target.startswith(".") and not (source / target).exists():
            _run([go, "mod", "edit", f"-dropreplace={replacement['Old']['Path']}"], cwd=source)


def _environment(packages: tuple[str, ...], cache: Path) -> Path:
    place = cache / "python" / _digest(packages)
    if not place.exists():
        _run([sys.executable, "-m", "venv", str(place)])
        try:
            _run([str(place / "bin" / "pip"), "install", "--quiet", *packages])
        except NotAvailableError:
            shutil.rmtree(place)
            raise
    return place


def _modules(packages: tuple[str, ...], cache: Path) -> Path:
    place = cache / "node" / _digest(packages)
    if not (place / "node_modules").exists():
        place.mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--silent", "--prefix", str(place), *packages])
    return place


def _class_path(artifacts: tuple[str, ...], cache: Path) -> str:
    place = cache / "java" / _digest(artifacts)
    listed = place / "classpath"
    if not listed.exists():
        place.mkdir(parents=True, exist_ok=True)
        dependencies = "".join(_dependency(*each.split(":")) for each in artifacts)
        (place / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        _run(["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"], cwd=place)
    return listed.read_text().strip()


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>dev.ostinato</groupId><artifactId>programs</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>
"""


def _dependency(group: str, artifact: str, version: str) -> str:
    named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
    return f"<dependency>{named}<version>{version}</version></dependency>"


def _digest(packages: tuple[str, ...]) -> str:
    return hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]


def _run(command: list[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise NotAvailableError(f"{command[0]} is not on PATH") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout).strip().splitlines()[-1:]
        raise NotAvailableError(f"{' '.join(command[:3])}: {''.join(last)}") from None
    return done.stdout
