"""Descriptions of built-in kinds and their fields, from the models of the official Python client, if it is installed.

Ostinato itself carries no prose of Kubernetes. The extra `ostinato[explain]` installs the client, and `kubectl explain`
then shows its texts.

- The sources of the models are searched, not imported: importing them all takes seconds.
- A model is read when its definition is first published.
- Texts of query parameters are those of one of the client's smaller APIs, which has all methods of ordinary resources.
- The client may be of another version: fields that it does not have remain without a description.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

_PACKAGE: Final = "kubernetes"
# Models of pydantic, from client 37 on.
_CLASS: Final = re.compile(r'^class \w+\(BaseModel\):\n    """\n(.*?)\n\n    Attributes:', re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r'^    (\w+): .*?\bdescription=("(?:[^"\\\n]|\\.)*")', re.MULTILINE)
_ALIAS: Final = re.compile(r'\bserialization_alias="([^"]+)"')
# Properties with docstrings, before.
_PROPERTY: Final = re.compile(
    r'    def (\w+)\(self\):\n        """Gets the [^\n]*\n\n        (.*?)  # noqa: E501\n\n        :return'
)
_NAMES: Final = re.compile(r"^        '(\w+)': '([^']+)',?$", re.MULTILINE)


_API: Final = "scheduling_v1_api.py"
_PARAMETER: Final = re.compile(
    r"^        :param (?:[\w\[\]]+ )?_?(\w+): (.+?)(?: \(required\))?(?:  # noqa: E501)?$", re.MULTILINE
)


class Description(NamedTuple):
    """The text of a definition, "" if it has none, and the texts of its fields by their names in JSON."""

    text: str
    fields: Mapping[str, str]


_NONE: Final = Description("", {})


class Descriptions:
    """Descriptions by the names of definitions. `models`: the directory of the client's models; None without one."""

    def __init__(self, models: Path | None) -> None:
        self._api = None if models is None else models.parent / "api" / _API
        self._files = {} if models is None else {file.stem.replace("_", ""): file for file in models.glob("*.py")}

    @classmethod
    def installed(cls) -> Descriptions:
        """Descriptions of the installed client; none if it is not installed."""
        found = find_spec(_PACKAGE)
        if found is None or found.origin is None:
            return cls(None)
        return cls(Path(found.origin).parent / "client" / "models")

    def of(self, definition: str) -> Description:
        """Return the description of a definition, such as `io.k8s.api.core.v1.PodSpec`."""
        *_, group, version, kind = ("", "", *definition.split("."))
        for key in (f"{group}{version}{kind}", f"{version}{kind}"):  # with the group if several groups have the kind
            file = self._files.get(key.replace("-", "").lower())
            if file is not None:
                return _read(file)
        return _NONE

    def of_parameters(self, names: Iterable[str]) -> dict[str, str]:
        """Return the descriptions of query parameters by name, of those that have one."""
        try:
            source = "" if self._api is None else self._api.read_text(encoding="utf-8")
        except OSError:
            return {}
        found: dict[str, str] = {}
        for name, text in _PARAMETER.findall(source):
            found.setdefault(name.replace("_", ""), text.replace('\\"', '"'))
        return {name: found[name.lower()] for name in names if name.lower() in found}


def _read(file: Path) -> Description:
    try:
        source = file.read_text(encoding="utf-8")
    except OSError:
        return _NONE
    found = _CLASS.search(source)
    if found is None:
        return Description("", _docstrings(source))
    fields = {}
    for match in _FIELD.finditer(source):
        alias = _ALIAS.search(match[0])
        fields[alias[1] if alias else match[1]] = str(ast.literal_eval(match[2]))
    return Description(" ".join(found[1].split()), fields)


def _docstrings(source: str) -> dict[str, str]:
    names = dict(_NAMES.findall(source.partition("attribute_map = {")[2].partition("}")[0]))
    return {names.get(name, name): text for name, text in _PROPERTY.findall(source)}
