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
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    maven: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # that must be on PATH
    options: tuple[str, ...] = ()  # of `ostinato up`


def read_needs(script: Path) -> Needs:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^# (\w+): (.+)$", script.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    values = {name: tuple(" ".join(found[name]).split()) for name in found if name != "program"}
    return Needs(found["program"][0], **values)


def prepare(needs: Needs, name: str, cache: Path) -> dict[str, str]:
    """Install what is missing; return the variables of the script's environment. Raises NotAvailableError."""
    programs = cache / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    environment = {}
    path = [str(programs)]
    for package in needs.go:
        _build(package, programs)
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


def _build(package: str, programs: Path) -> None:
    """Build `PACKAGE@VERSION`, or `MODULE//PACKAGE@VERSION` if the module has replacements of its own."""
    path, _, version = package.partition("@")
    module, _, inner = path.partition("//")
    name = next(
        part for part in reversed(path.split("/")) if part and not re.fullmatch(r"v\d+|controller|operator|cmd", part)
    )
    target = programs / name
    if target.exists():
        return
    go = shutil.which("go")
    if go is None:
        raise NotAvailableError("go is not on PATH")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
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
        command = [go, "build", "-mod=mod", "-ldflags=-s -w", "-o", str(target), f"./{inner}"]
        _run(command, environment, source)
    finally:
        shutil.rmtree(source)


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
