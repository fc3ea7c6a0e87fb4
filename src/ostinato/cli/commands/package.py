"""`ostinato package`: install.yaml, a Helm chart, kustomize, an OLM bundle, or monitoring of an operator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.program.operator import load_program, operator_of
from ostinato.cli.program.program import Program
from ostinato.cli.program.targets import targets
from ostinato.packaging import (
    Overrides,
    Package,
    PackageError,
    check_files,
    helm_chart,
    install_yaml,
    kustomize_files,
    make_package,
    monitoring_files,
    olm_bundle,
    read_overrides,
    read_project,
    read_samples,
    write_files,
)

Format = Literal["yaml", "helm", "kustomize", "olm", "monitoring"]

_OVERRIDES: Final = Path("deploy/overrides.yaml")
_DIRECTORIES: Final = {
    "helm": "dist/chart",
    "kustomize": "dist/kustomize",
    "olm": "dist/bundle",
    "monitoring": "dist/monitoring",
}


class PackageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato package --help`."""

    format: Format
    files: Sequence[str] = ()
    overrides: str | None = None
    image: str = ""
    samples: str = "samples"
    output: str | None = None
    check: bool = False


def package(options: PackageOptions) -> int:
    """Write, print or check the package; return the exit code: 1 if a check finds differences."""
    made, _ = read_package(options.files, options.overrides, options.image, options.samples)
    if options.format == "yaml" and options.output is None:
        if options.check:
            raise CommandError("--check needs --output FILE, the file to compare with")
        sys.stdout.write(_files(options.format, made)["install.yaml"])
        return 0
    files = _files(options.format, made)
    directory = Path(options.output or _DIRECTORIES[options.format])
    if options.format == "yaml":
        directory, files = directory.parent, {directory.name: files["install.yaml"]}
    return _write(options, files, directory)


def read_package(files: Sequence[str], overrides: str | None, image: str, samples: str) -> tuple[Package, Program]:
    """Load a program and return its package. CommandError for what cannot be packaged."""
    file = Path(overrides) if overrides is not None else _OVERRIDES
    try:
        chosen = read_overrides(file) if overrides is not None or file.exists() else Overrides()
        if image:
            chosen = msgspec.structs.replace(chosen, image=image)
        chosen_files = targets(files)
        loaded = load_program(chosen_files, namespaced=chosen.namespaced)
        project = read_project(Path("pyproject.toml"))
        operator = operator_of(loaded, chosen_files)
        return make_package(operator, chosen, project, str(file), read_samples(Path(samples))), loaded
    except PackageError as error:
        raise CommandError(str(error)) from None


def _files(name: Format, made: Package) -> dict[str, str]:
    formats: dict[Format, Callable[[Package], dict[str, str]]] = {
        "yaml": lambda package: {"install.yaml": install_yaml(package)},
        "helm": helm_chart,
        "kustomize": kustomize_files,
        "olm": olm_bundle,
        "monitoring": monitoring_files,
    }
    try:
        return formats[name](made)
    except PackageError as error:
        raise CommandError(str(error)) from None


def _write(options: PackageOptions, files: dict[str, str], directory: Path) -> int:
    try:
        if not options.check:
            for name in write_files(files, directory):
                sys.stdout.write(f"{directory / name}\n")
            return 0
        problems = check_files(files, directory)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename or directory}: {error.strerror}") from None
    sys.stdout.write("".join(problems))
    if problems:
        sys.stderr.write(f"ostinato package: {directory} is out of date; run the command without --check\n")
    return 1 if problems else 0
