"""Project: the answers that the files of a project are generated from, and the file that records them.

`.ostinato.yaml` is written by the commands. It names the template's version, so that a later version knows what was
generated, and what the user changed since.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.object import plural_of
from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.kinds.index import MODULES
from ostinato.scaffold import names
from ostinato.scaffold.error import ScaffoldError

RECORD: Final = ".ostinato.yaml"
_HEADER: Final = "# Written by `ostinato init`, `add` and `upgrade-template`; keep it in version control.\n"


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    group: str
    version: str
    kind: str
    module: str  # prefix of the names of its modules: widget_v1, widget_controller, widget_webhook

    @property
    def key(self) -> tuple[str, str, str]:
        return self.group, self.version, self.kind

    @property
    def label(self) -> str:
        return f"{self.kind} {self.group}/{self.version}".replace(" /", " ")


class Kind(_Part, frozen=True):
    """A version of a custom kind."""

    plural: str = ""  # defaults to the usual plural
    namespaced: bool = True
    image: str = ""  # default of spec.image; "" for a kind without one

    @property
    def resource(self) -> str:
        return self.plural or plural_of(self.kind)


class _Use(_Part, frozen=True):
    """`source`: module of the package that has the class, for kinds of others; group and version are then empty."""

    source: str = ""


class Controller(_Use, frozen=True):
    """A controller: of a kind of the project, of a built-in one, or of one of others."""


class Webhook(_Use, frozen=True):
    """The hooks of a version of a kind. `conversion`: between the stored version and all others."""

    validating: bool = False
    mutating: bool = False
    conversion: bool = False


class Project(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    template: int
    name: str
    package: str
    form: str = ""  # of the operator: "hooks", "chart" and so on; "" for controllers
    kinds: tuple[Kind, ...] = ()
    controllers: tuple[Controller, ...] = ()
    webhooks: tuple[Webhook, ...] = ()

    def versions(self, group: str, kind: str) -> list[Kind]:
        """Return the versions of a kind; the first is the stored one."""
        return [each for each in self.kinds if (each.group, each.kind) == (group, kind)]

    def encode(self) -> str:
        return _HEADER + encode_yaml(msgspec.json.decode(msgspec.json.encode(self))).decode()


def find_project(directory: Path) -> Path:
    """Return the nearest directory with a record, from a directory upwards; the directory itself if there is none."""
    full = directory.resolve()
    found = (each for each in (full, *full.parents) if (each / RECORD).is_file())
    return next(found, full)


def load_project(root: Path) -> Project:
    """Read the record of a project; ScaffoldError if there is none, or an invalid one."""
    path = root / RECORD
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise ScaffoldError(
            f"{root} is not a project: it has no {RECORD}; run the command in a directory made by ostinato init"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScaffoldError(f"cannot read {path}: {error}") from None
    try:
        project = msgspec.convert(decode_yaml(text), Project)
        _check(project)
    except (DecodeError, msgspec.ValidationError, ScaffoldError) as error:
        raise ScaffoldError(f"{path}: {error}; restore it from version control") from None
    return project


def _check(project: Project) -> None:
    """Check all names of a record: they become parts of paths and of code."""
    names.check_project(project.name)
    names.check_package(project.package)
    if project.form:
        names.check_form(project.form)
    for each in project.kinds:
        names.check_version(each.version)
        names.check_module(each.module)
        names.check_group(each.group)
        names.check_kind(each.kind)
        names.check_plural(each.resource)
        if each.image:
            names.check_image(each.image)
    known = {*MODULES, *(each.key for each in project.kinds)}
    for part in (*project.controllers, *project.webhooks):
        names.check_module(part.module)
        names.check_any_kind(part.kind)
        if part.source:
            names.check_module(part.source)
        elif part.key not in known:
            raise ScaffoldError(f"{part.label} is neither a kind of this project nor of Kubernetes")
