"""Templates from manifests: expressions, conditional items and whole objects, in YAML.

An object is encoded with a token in place of each expression. Then `{{` in literal text is escaped, and the tokens are
replaced by actions. The value of an expression is inserted as JSON, which is YAML on one line: neither its type nor its
characters matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.manifest import Expression, Items, Manifest, When

Json = dict[str, Any]
Condition = Callable[[str], str]  # the pipeline of a feature's switch; "" if it is always on

_OPEN: Final = "{{"
_ESCAPED: Final = '{{ "{{" }}'


def template_text(manifests: list[Manifest], condition: Condition) -> str:
    """Return the template of one file."""
    return "".join(_document(each, condition) for each in manifests)


def escaped(text: str) -> str:
    """Return a template whose result is the text."""
    return text.replace(_OPEN, _ESCAPED)


def _document(manifest: Manifest, condition: Condition) -> str:
    text = f"---\n{_Encoding(manifest.object, condition).text()}"
    switch = condition(manifest.feature)
    return f"{{{{- if {switch} }}}}\n{text}{{{{- end }}}}\n" if switch else text


class _Encoding:
    """The encoding of one object."""

    def __init__(self, value: Json, condition: Condition) -> None:
        self._condition = condition
        self._prefix = "zz-action-"
        while self._prefix in repr(value):  # a token must not occur in the literal text
            self._prefix += "z-"
        self._actions: list[str] = []  # by number of the token
        self._lines: list[Callable[[str], str]] = []  # by number of the token: lines for an indentation
        self._value = value

    def text(self) -> str:
        literal = escaped(encode_yaml(self._marked(self._value)).decode())
        own_line = re.compile(rf"^( *)- {self._prefix}line-(\d+)-z$", re.MULTILINE)
        lines = own_line.sub(lambda found: self._lines[int(found[2])](found[1]), literal)
        return re.sub(rf"{self._prefix}(\d+)-z", lambda found: self._actions[int(found[1])], lines)

    def _marked(self, value: Any) -> Any:
        if isinstance(value, Expression):
            self._actions.append(f"{{{{ {value.pipeline} | toJson }}}}")
            return f"{self._prefix}{len(self._actions) - 1}-z"
        if isinstance(value, dict):
            return {key: self._marked(each) for key, each in value.items()}
        if isinstance(value, list):
            return [marked for each in value for marked in self._marked_item(each)]
        return value

    def _marked_item(self, item: Any) -> list[Any]:
        if isinstance(item, Items):
            return [self._line(lambda indent: _range(indent, item.pipeline))]
        if isinstance(item, When):
            switch = self._condition(item.feature)
            begin = self._line(lambda indent: f"{indent}{{{{- if {switch} }}}}")
            return [begin, self._marked(item.item), self._line(lambda indent: f"{indent}{{{{- end }}}}")]
        return [self._marked(item)]

    def _line(self, lines: Callable[[str], str]) -> str:
        self._lines.append(lines)
        return f"{self._prefix}line-{len(self._lines) - 1}-z"


def _range(indent: str, pipeline: str) -> str:
    return f"{indent}{{{{- range {pipeline} }}}}\n{indent}- {{{{ toJson . }}}}\n{indent}{{{{- end }}}}"
