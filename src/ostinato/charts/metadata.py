"""Chart.yaml: the metadata of a chart, and the charts that it depends on."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ostinato.gotemplate.library.formats.wire import scalar_text
from ostinato.gotemplate.library.semver import SemverError, parse_version

_ALIAS: Final = re.compile(r"[a-zA-Z0-9_-]+")


class MetadataError(ValueError):
    """Chart.yaml is invalid; the message names the field."""


@dataclass(slots=True)
class Dependency:
    """An entry of `dependencies`: which chart, under which name, and when."""

    name: str = ""
    version: str = ""
    repository: str = ""
    condition: str = ""
    tags: list[str] = field(default_factory=list)
    enabled: bool = False
    import_values: list[Any] = field(default_factory=list)
    alias: str = ""


@dataclass(slots=True)
class Metadata:
    """Chart.yaml, in the order in which Helm writes its fields."""

    name: str = ""
    home: str = ""
    sources: list[str] = field(default_factory=list)
    version: str = ""
    description: str = ""
    keywords: list[str] = field(default_factory=list)
    maintainers: list[dict[str, str]] = field(default_factory=list)
    icon: str = ""
    api_version: str = ""
    condition: str = ""
    tags: str = ""
    app_version: str = ""
    deprecated: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    kube_version: str = ""
    dependencies: list[Dependency] = field(default_factory=list)
    type: str = ""

    def copy(self) -> Metadata:
        return replace(self, dependencies=[replace(each) for each in self.dependencies])

    def update(self, document: Any) -> None:
        """Take over the fields of a document: Chart.yaml, or requirements.yaml of an old chart."""
        if document is None:
            return
        if not isinstance(document, dict):
            raise MetadataError(f"cannot unmarshal {_json_kind(document)} into Go value of type chart.Metadata")
        for each in fields(self):
            value = document.get(wire_name(each.name))
            if value is None:
                continue
            setattr(self, each.name, _READERS.get(each.name, _READERS.get(str(each.type), _text))(each.name, value))

    def validate(self) -> None:
        """Clean the texts and check the fields that must be present."""
        for name in ("name", "description", "home", "icon", "condition", "tags", "app_version", "kube_version"):
            setattr(self, name, _clean(getattr(self, name)))
        self.sources = [_clean(each) for each in self.sources]
        self.keywords = [_clean(each) for each in self.keywords]
        if not self.api_version:
            raise MetadataError("validation: chart.metadata.apiVersion is required")
        if not self.name:
            raise MetadataError("validation: chart.metadata.name is required")
        if self.name in (".", ".."):
            raise MetadataError(f'validation: chart.metadata.name "{self.name}" is not allowed')
        if self.name != posixpath.basename(self.name.rstrip("/")):
            raise MetadataError(f'validation: chart.metadata.name "{self.name}" is invalid')
        if not self.version:
            raise MetadataError("validation: chart.metadata.version is required")
        try:
            parse_version(self.version)
        except SemverError:
            raise MetadataError(f'validation: chart.metadata.version "{self.version}" is invalid') from None
        if self.type not in ("", "application", "library"):
            raise MetadataError("validation: chart.metadata.type must be application or library")
        self._validate_dependencies()

    def _validate_dependencies(self) -> None:
        seen: set[str] = set()
        for each in self.dependencies:
            for name in ("name", "version", "repository", "condition"):
                setattr(each, name, _clean(getattr(each, name)))
            each.tags = [_clean(tag) for tag in each.tags]
            if each.alias and not _ALIAS.fullmatch(each.alias):
                raise MetadataError(f'validation: dependency "{each.name}" has disallowed characters in the alias')
            key = each.alias or each.name
            if key in seen:
                raise MetadataError(f'validation: more than one dependency with name or alias "{key}"')
            seen.add(key)


def wire_name(name: str) -> str:
    """Return the key of a field in Chart.yaml."""
    if name == "import_values":
        return "import-values"
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _text(name: str, value: Any) -> str:
    text = scalar_text(value)
    if text is None:
        raise MetadataError(_mismatch(name, value, "string"))
    return text


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise MetadataError(_mismatch(name, value, "bool"))
    return value


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise MetadataError(_mismatch(name, value, "[]string"))
    return ["" if each is None else _text(name, each) for each in value]


def _annotations(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise MetadataError(_mismatch(name, value, "map[string]string"))
    return {key: "" if each is None else _text(name, each) for key, each in value.items()}


def _maintainers(name: str, value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise MetadataError(_mismatch(name, value, "[]*chart.Maintainer"))
    made = []
    for each in value:
        if not isinstance(each, dict):
            raise MetadataError("validation: maintainers must not contain empty or null nodes")
        made.append({key: _clean(_text(name, each.get(key) or "")) for key in ("name", "email", "url")})
    return made


def _dependencies(name: str, value: Any) -> list[Dependency]:
    if not isinstance(value, list):
        raise MetadataError(_mismatch(name, value, "[]*chart.Dependency"))
    made = []
    for each in value:
        if not isinstance(each, dict):
            raise MetadataError("validation: dependencies must not contain empty or null nodes")
        read = Dependency()
        for part in fields(Dependency):
            found = each.get(wire_name(part.name))
            if found is not None:
                setattr(read, part.name, _READERS.get(str(part.type), _text)(f"dependencies.{part.name}", found))
        made.append(read)
    return made


def _any_list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise MetadataError(_mismatch(name, value, "[]interface {}"))
    return value


_READERS: Final = {
    "maintainers": _maintainers,
    "dependencies": _dependencies,
    "annotations": _annotations,
    "list[str]": _texts,
    "list[Any]": _any_list,
    "bool": _flag,
}


def _mismatch(name: str, value: Any, wanted: str) -> str:
    return (
        f"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {_json_kind(value)} into Go struct "
        f"field Metadata.{wire_name(name)} of type {wanted}"
    )


def _json_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _clean(text: str) -> str:
    """Replace white space by spaces and remove characters that cannot be printed."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or c.isprintable())
