"""Files of a package: operator.yaml, params.yaml and templates, from a directory or a .tgz archive.

- Unknown files are ignored: a package may hold the packages that it depends on, and documentation.
- An archive is never unpacked on disk, and symbolic links that leave a directory are not followed.
- Every problem names its file; YAML errors name the line.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

import msgspec
import yaml

from ostinato.api.markers import Nullable
from ostinato.api.struct import Struct
from ostinato.api.wire.json import DecodeError
from ostinato.frontends.plans.api import API_VERSION, Maintainer, Plan, Task
from ostinato.frontends.plans.parameters import load_yaml

OPERATOR: Final = "operator.yaml"
PARAMS: Final = "params.yaml"
TEMPLATES: Final = "templates"
_MAX_FILE: Final = 4 << 20  # bytes
_MAX_TOTAL: Final = 32 << 20
_MAX_FILES: Final = 5_000


class PackageError(Exception):
    """A package cannot be read, or is not valid. The message names the file."""


class Group(Struct):
    """How a user interface shows parameters together."""

    name: str = ""
    display_name: str = ""
    description: str = ""
    prio: int = 0


class FileParameter(Struct):
    """A parameter as params.yaml has it: values have their own type, not that of a string."""

    name: str = ""
    display_name: str = ""
    description: str = ""
    required: bool | None = None
    default: Any = None
    trigger: str = ""
    type: str = ""
    immutable: bool | None = None
    enum: list[Any] | None = None
    group: str = ""
    advanced: bool | None = None
    hint: str = ""


class ParamsFile(Struct):
    api_version: str = ""
    groups: Annotated[list[Group] | None, Nullable()] = None
    parameters: Annotated[list[FileParameter] | None, Nullable()] = None


class OperatorFile(Struct):
    api_version: str = ""
    name: str = ""
    description: str = ""
    operator_version: str = ""
    app_version: str = ""
    kudo_version: str = ""
    kubernetes_version: str = ""
    maintainers: Annotated[list[Maintainer] | None, Nullable()] = None
    url: str = ""
    tasks: Annotated[list[Task] | None, Nullable()] = None
    plans: Annotated[dict[str, Plan] | None, Nullable()] = None
    namespace_manifest: str = ""


class PackageFiles(msgspec.Struct, frozen=True):
    """The content of a package. `source`: where it was read, for messages and for relative dependencies."""

    source: str
    operator: OperatorFile
    params: ParamsFile
    templates: dict[str, str]
    others: dict[str, bytes]  # files that are not part of the package proper, by path


def read_package(path: Path) -> PackageFiles:
    """Read a directory or an archive. Raises PackageError."""
    if path.is_dir():
        return parse_files(_directory(path), str(path))
    if path.is_file():
        return read_archive(path.read_bytes(), str(path))
    raise PackageError(f"{path}: no such package; give a directory with {OPERATOR}, or a .tgz file")


def read_archive(data: bytes, source: str) -> PackageFiles:
    """Read a .tgz archive. Raises PackageError."""
    return parse_files(dict(_archived(data, source)), source)


def parse_files(files: Mapping[str, bytes], source: str) -> PackageFiles:
    """Parse the files of a package, by their path in it. Raises PackageError."""
    for needed in (OPERATOR, PARAMS):
        if needed not in files:
            raise PackageError(f"{source}: operator package missing {needed}")
    templates: dict[str, str] = {}
    others: dict[str, bytes] = {}
    for name, content in files.items():
        path = PurePosixPath(name)
        if path.parts[0] == TEMPLATES and len(path.parts) > 1 and ".yaml" in path.name:
            templates[str(PurePosixPath(*path.parts[1:]))] = _decoded(content, f"{source}/{name}")
        elif name not in (OPERATOR, PARAMS):
            others[name] = content
    operator = _parsed(OperatorFile, files[OPERATOR], f"{source}/{OPERATOR}")
    params = _parsed(ParamsFile, files[PARAMS], f"{source}/{PARAMS}")
    for found, name in ((operator.api_version, OPERATOR), (params.api_version, PARAMS)):
        if found not in ("", API_VERSION):
            raise PackageError(f"{source}/{name}: apiVersion: expecting {API_VERSION}, found {found}")
    if not operator.name:
        raise PackageError(f"{source}/{OPERATOR}: name: an operator needs a name")
    return PackageFiles(source, operator, params, templates, others)


def _directory(root: Path) -> dict[str, bytes]:
    resolved, total = root.resolve(), 0
    found: dict[str, bytes] = {}
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(resolved):
            raise PackageError(f"{path}: a link that leaves the package; copy the file into it")
        size = path.stat().st_size
        total += size
        name = path.relative_to(root).as_posix()
        _check_size(f"{root}/{name}", size, total, len(found))
        found[name] = path.read_bytes()
    return found


def _archived(data: bytes, source: str) -> Iterator[tuple[str, bytes]]:
    total = count = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                if not member.isfile():
                    if member.issym() or member.islnk():
                        raise PackageError(f"{source}: {member.name}: links in archives are not supported")
                    continue
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise PackageError(f"{source}: {member.name}: a path that leaves the archive")
                total, count = total + member.size, count + 1
                _check_size(f"{source}: {member.name}", member.size, total, count)
                content = archive.extractfile(member)
                yield str(path), b"" if content is None else content.read()
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, OSError) as error:
        raise PackageError(f"{source}: not a .tgz archive: {error}") from None


def _check_size(name: str, size: int, total: int, count: int) -> None:
    if size > _MAX_FILE:
        raise PackageError(f"{name}: {size} bytes; a file of a package has at most {_MAX_FILE}")
    if total > _MAX_TOTAL or count > _MAX_FILES:
        raise PackageError(f"{name}: the package is too large; at most {_MAX_TOTAL} bytes and {_MAX_FILES} files")


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PackageError(f"{name}: not UTF-8: {error}") from None


def _parsed(form: type[Any], content: bytes, name: str) -> Any:  # Any: an OperatorFile or a ParamsFile
    text = _decoded(content, name)
    try:
        document = load_yaml(text)
    except DecodeError as error:
        raise PackageError(f"{name}{_line(text)}: not YAML: {error}") from None
    if not isinstance(document, dict):
        raise PackageError(
            f"{name}: expected a map, found {'nothing' if document is None else type(document).__name__}"
        )
    try:
        return msgspec.convert(_without_nulls(_texts(document)), form, strict=False)
    except msgspec.ValidationError as error:
        raise PackageError(f"{name}: {error}") from None


def _line(text: str) -> str:
    """Return the line of the first error, as :LINE; "" if it is not one of the syntax."""
    try:
        for _ in yaml.parse(text):
            pass
    except yaml.MarkedYAMLError as error:
        return "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
    return ""


_NUMERIC_TEXTS: Final = ("operatorVersion", "appVersion", "kudoVersion", "kubernetesVersion")


def _texts(document: dict[str, Any]) -> dict[str, Any]:
    """Read versions that were written without quotes, such as `kubernetesVersion: 1.13`, as texts."""
    return {
        name: str(value) if name in _NUMERIC_TEXTS and isinstance(value, int | float) else value
        for name, value in document.items()
    }


def _without_nulls(value: Any) -> Any:
    """Treat a null field as absent, as Go does."""
    if isinstance(value, dict):
        return {str(name): _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
