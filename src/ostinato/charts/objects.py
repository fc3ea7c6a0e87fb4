"""What templates see of a chart: `.Chart`, `.Files`, `.Release`, `.Values`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

from ostinato.charts.chart import Chart, File
from ostinato.charts.glob import glob_match
from ostinato.charts.metadata import Dependency, Metadata, wire_name
from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.library.formats.yaml import to_yaml
from ostinato.gotemplate.library.kinds import StringMap
from ostinato.gotemplate.strings import decode
from ostinato.gotemplate.values import List, Map, Object, Strings

_ACRONYMS: Final = {"api_version": "APIVersion"}


class ValuesMap(Map):
    """A chartutil.Values: a map with another name, which `dig` refuses as in Helm."""

    go_type = "chartutil.Values"


@dataclass(frozen=True, slots=True)
class Release:
    """`.Release`: the installation that is rendered."""

    name: str = "release-name"
    namespace: str = "default"
    revision: int = 1
    upgrade: bool = False

    def value(self) -> dict[str, Any]:
        return {
            "Name": self.name,
            "Namespace": self.namespace,
            "IsUpgrade": self.upgrade,
            "IsInstall": not self.upgrade,
            "Revision": self.revision,
            "Service": "Helm",
        }


class _Struct(Object):
    """A Go struct with the names of its fields in JSON; empty ones are left out of it."""

    def __init__(self, go_type: str, values: dict[str, tuple[str, Any]], always: Iterable[str] = ()) -> None:
        super().__init__({name: value for name, (_, value) in values.items()}, go_type=go_type)
        kept = frozenset(always)
        self._json = {key: value for name, (key, value) in values.items() if value or name in kept}

    def json_fields(self) -> dict[str, Any]:
        return self._json


class _ChartValue(_Struct):
    """Metadata in a struct of its own, as it is printed, with one field more."""

    def text(self) -> str:
        *metadata, is_root = map(sprint, self.fields.values())
        return f"{{{{{' '.join(metadata)}}} {is_root}}}"


def chart_value(chart: Chart) -> Object:
    """Return `.Chart`."""
    metadata = chart.metadata
    values = {_go_name(each.name): (wire_name(each.name), _typed(each.name, metadata)) for each in fields(Metadata)}
    values["IsRoot"] = ("IsRoot", chart.parent is None)
    go_type = "struct { chart.Metadata; IsRoot bool }"
    return _ChartValue(go_type, values, always=["IsRoot"])


def _go_name(name: str) -> str:
    return _ACRONYMS.get(name) or "".join(part.capitalize() for part in name.split("_"))


def _typed(name: str, metadata: Metadata) -> Any:
    value = getattr(metadata, name)
    match name:
        case "sources" | "keywords":
            return Strings(value)
        case "annotations":
            return StringMap(value)
        case "maintainers":
            made = [
                _Struct("*chart.Maintainer", {_maintainer(key): (key, each[key]) for key in each}) for each in value
            ]
            return _Maintainers(made)
        case "dependencies":
            return _Dependencies(_dependency(each) for each in value)
        case _:
            return value


def _maintainer(key: str) -> str:
    return "URL" if key == "url" else key.capitalize()


def _dependency(dependency: Dependency) -> Object:
    values = {
        _go_name(each.name): (wire_name(each.name), getattr(dependency, each.name)) for each in fields(Dependency)
    }
    values["Tags"] = ("tags", Strings(dependency.tags))
    return _Struct("*chart.Dependency", values, always=["Name", "Repository"])


class _Maintainers(List):
    go_type = "[]*chart.Maintainer"
    element = "*chart.Maintainer"


class _Dependencies(List):
    go_type = "[]*chart.Dependency"
    element = "*chart.Dependency"


class Files(Map):
    """`.Files`: the files of a chart that are not templates, by name."""

    go_type = "engine.files"
    element = "[]uint8"

    def __init__(self, files: Iterable[tuple[str, bytes]]) -> None:
        super().__init__(files)
        self.methods = {
            "Get": self._text,
            "GetBytes": self._bytes,
            "Glob": self._glob,
            "AsConfig": self._as_config,
            "AsSecrets": self._as_secrets,
            "Lines": self._lines,
        }

    @staticmethod
    def of(files: Iterable[File]) -> Files:
        return Files((each.name, each.data) for each in files)

    def _bytes(self, name: str) -> bytes:
        found: bytes = self.get(name, b"")
        return found

    def _text(self, name: str) -> str:
        return decode(self._bytes(name))

    def _glob(self, pattern: str) -> Files:
        return Files((name, data) for name, data in self.items() if glob_match(pattern, name))

    def _as_config(self) -> str:
        return to_yaml({name.rpartition("/")[2]: decode(self[name]) for name in sorted(self)})

    def _as_secrets(self) -> str:
        return to_yaml({name.rpartition("/")[2]: b64encode(self[name]).decode() for name in sorted(self)})

    def _lines(self, name: str) -> Strings:
        data = self._bytes(name)
        return Strings(decode(data.removesuffix(b"\n")).split("\n") if data else [])
