"""Templates: the files of a project, by version of the template.

- A version is a directory, `templates/1`. It never changes once released: it is the base of later merges.
- `files.yaml` maps templates to paths in the project. `<<name>>` is a value, in paths too; lines between `<<if name>>`
  and `<<end>>` are kept if the value is not empty, those after `<<else>>` if it is.
- A form of operators other than controllers is a directory in it, `templates/1/forms/hooks`, with a `files.yaml` of its
  own: `project` lists its files beside those of every project, `extras` the extras of Ostinato that it needs. Its
  templates replace those of the same name, such as `README.md` and `package.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ostinato.api.wire.yaml import decode_yaml
from ostinato.scaffold.error import ScaffoldError

Values = Mapping[str, str]

ROOT = Path(__file__).with_name("templates")

_VALUE: Final = re.compile(r"<<([a-z_]+)>>")
_BLOCK: Final = re.compile(r"<<(?:if ([a-z_]+)|(else)|(end))>>\n?")


class Templates:
    """One version of the template, for projects with controllers, or with operators of another form."""

    def __init__(self, version: int, form: str = "") -> None:
        """Raises ScaffoldError if the version does not have the form."""
        base = ROOT / str(version)
        self._directories = [base]  # the first that has a template is used
        self._files: dict[str, dict[str, str]] = _index(base)
        self.extras: tuple[str, ...] = ()  # of Ostinato, that the form needs
        if form:
            if form not in forms(version):
                raise ScaffoldError(f"no template {form!r}; templates are default, {', '.join(forms(version))}")
            own = base / "forms" / form
            index = _index(own)
            self._directories.insert(0, own)
            self._files = {"project": {**self._files["project"], **index.get("project", {})}}
            self.extras = tuple(index.get("extras", ()))

    @classmethod
    def recorded(cls, version: int, form: str = "") -> Templates:
        """Return the version of a project's record; ScaffoldError if this release does not have it."""
        if version not in versions():
            raise ScaffoldError(
                f"the project has template {version}, and this release has {', '.join(map(str, versions()))}; "
                "upgrade ostinato"
            )
        return cls(version, form)

    def part(self, name: str, values: Values) -> Iterator[tuple[str, str]]:
        """Yield path and text of each file of a part: `project`, `kind`, `controller` and so on."""
        for template, path in self._files.get(name, {}).items():
            yield _filled(path, values), self.text(template, values)

    def text(self, template: str, values: Values) -> str:
        """Return a filled template."""
        paths = [each / f"{template}.tmpl" for each in self._directories]
        text = next(each for each in paths if each.exists()).read_text(encoding="utf-8")
        return _filled("".join(_kept(text.splitlines(keepends=True), values)), values)


def versions() -> list[int]:
    """Return the versions of the template, oldest first."""
    return sorted(int(each.name) for each in ROOT.iterdir() if each.name.isdigit())


def forms(version: int) -> list[str]:
    """Return the forms of operators that a version has, besides controllers."""
    directory = ROOT / str(version) / "forms"
    return sorted(each.parent.name for each in directory.glob("*/files.yaml"))


def _index(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = decode_yaml((directory / "files.yaml").read_bytes())
    return found


def _filled(text: str, values: Values) -> str:
    return _VALUE.sub(lambda found: values[found[1]], text)


def _kept(lines: list[str], values: Values) -> Iterator[str]:
    keep = True
    for line in lines:
        found = _BLOCK.fullmatch(line)
        if found is None:
            if keep:
                yield line
        elif found[1]:
            keep = bool(values[found[1]])
        else:
            keep = not keep if found[2] else True
