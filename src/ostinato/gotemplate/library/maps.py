"""The functions that each tool gives its templates, by name.

- `sprig_functions`: github.com/Masterminds/sprig v3.3, without those that read the environment.
- `helm_functions`: Helm v3's, without those of its engine (`include`, `tpl`, `required`, `lookup`), which are in
  `ostinato.charts`.
- `kudo_functions`: KUDO's.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.functions import Function
from ostinato.gotemplate.library.dates import date_functions
from ostinato.gotemplate.library.defaults import DEFAULTS
from ostinato.gotemplate.library.dicts import DICTS
from ostinato.gotemplate.library.formats.encodings import ENCODINGS
from ostinato.gotemplate.library.formats.json import JSON
from ostinato.gotemplate.library.formats.toml import TOML
from ostinato.gotemplate.library.formats.yaml import YAML, to_yaml
from ostinato.gotemplate.library.lists import LISTS
from ostinato.gotemplate.library.numbers import NUMBERS
from ostinato.gotemplate.library.paths import PATHS
from ostinato.gotemplate.library.reflection import REFLECTION
from ostinato.gotemplate.library.regex import REGEX
from ostinato.gotemplate.library.registry import PanicError
from ostinato.gotemplate.library.secrets.certificates import certificate_functions
from ostinato.gotemplate.library.secrets.passwords import password_functions
from ostinato.gotemplate.library.secrets.randoms import random_functions
from ostinato.gotemplate.library.semver import SEMVER
from ostinato.gotemplate.library.strings import STRINGS
from ostinato.gotemplate.library.urls import URLS
from ostinato.gotemplate.library.words import WORDS
from ostinato.world import World

Functions = dict[str, Function]

_NOT_IN_KUDO: Final = ("base", "dir", "clean", "ext", "isAbs")


def _fail(message: str) -> str:
    raise PanicError(message)


def _no_host(_: str) -> str:
    """Names are not resolved: rendering does not depend on a network."""
    return ""


def _kudo_yaml(value: Any) -> str:
    """KUDO keeps the newline that Helm cuts."""
    return f"{to_yaml(value)}\n"


def sprig_functions(world: World) -> Functions:
    """Return sprig's functions. Times and random values are of the world."""
    fixed = (
        STRINGS, WORDS, NUMBERS, DEFAULTS, LISTS, DICTS, JSON, ENCODINGS, REFLECTION, PATHS, REGEX, SEMVER, URLS
    )  # fmt: skip
    of_world = (date_functions, random_functions, password_functions, certificate_functions)
    made: Functions = {}
    for part in (*fixed, *(functions(world) for functions in of_world)):
        made |= part
    made["fail"] = Function(_fail, ["string"])
    made["getHostByName"] = Function(_no_host, ["string"])
    return made


def helm_functions(world: World) -> Functions:
    """Return Helm's functions, as far as they do not need its engine."""
    return sprig_functions(world) | YAML | TOML


def kudo_functions(world: World) -> Functions:
    """Return KUDO's functions: sprig's without those of paths, and `toYaml`."""
    made = sprig_functions(world)
    for name in _NOT_IN_KUDO:
        del made[name]
    made["toYaml"] = Function(_kudo_yaml, ["interface {}"])
    return made
