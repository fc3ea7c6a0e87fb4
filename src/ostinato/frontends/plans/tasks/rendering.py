"""Rendering of templates: Go's text/template with sprig's functions, without those that read this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ostinato.gotemplate import TemplateError, Templates
from ostinato.gotemplate.library import kudo_functions
from ostinato.world import World

_ACTION: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_UNSTABLE: Final = re.compile(
    r"\b(rand[A-Z]\w*|shuffle|uuidv4|gen[A-Z]\w*|htpasswd|bcrypt|encryptAES|now|ago|date\w*|htmlDate\w*)\b"
)


class RenderError(Exception):
    """A template cannot be parsed, or fails. The message is Go's, with line and column."""


def render(name: str, text: str, values: Mapping[str, Any], world: World) -> str:
    """Render a template. A missing key is an error. Raises RenderError.

    `world`: of times and random values.
    """
    try:
        return _parsed(name, text, world).render(name, dict(values))
    except TemplateError as error:
        raise RenderError(str(error)) from None


def is_unstable(text: str) -> bool:
    """Return whether a template gives another text each time: it has random values, or the time."""
    return any(_UNSTABLE.search(each) for each in _ACTION.findall(text))


@lru_cache(maxsize=512)
def _parsed(name: str, text: str, world: World) -> Templates:
    templates = Templates(kudo_functions(world), missing_key="error")
    templates.parse(name, text)
    return templates
