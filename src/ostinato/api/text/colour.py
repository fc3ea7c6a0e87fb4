"""Colours on terminals: ANSI codes, and whether a stream takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

BOLD: Final = "1"
FAINT: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"


def colour_enabled(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the stream is a terminal with colours and NO_COLOR (https://no-color.org) is unset or empty."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def coloured(text: str, codes: str) -> str:
    """Return the text with ANSI codes; unchanged for the codes ""."""
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text
