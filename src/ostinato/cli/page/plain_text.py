"""Plain text for terminals: what objects and errors contain must not control the terminal that shows it."""

from __future__ import annotations

from typing import Final

_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS.update({0x0A: " ", 0x0D: " ", 0x09: " "})  # a line stays one


def plain(text: str) -> str:
    """Return the text with control characters, such as those of escape sequences, made visible."""
    return text if text.isprintable() else text.translate(_CONTROLS)
