"""Values of options in kube-apiserver's notation: booleans and Go durations."""

from __future__ import annotations

import argparse
from typing import Final

from ostinato.cli.error import CommandError

_BOOLEANS: Final = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


def boolean(text: str) -> bool:
    """Parse a boolean, as an argparse `type`."""
    if text.lower() not in _BOOLEANS:
        raise argparse.ArgumentTypeError(f"{text!r}: want true or false")
    return _BOOLEANS[text.lower()]


def seconds(option: str, text: str) -> float:
    """Return the seconds of a Go duration such as 90s or 1h30m; CommandError names the option."""
    from ostinato.api.time import Duration, TimeError  # noqa: PLC0415 - `ostinato --help` does not load it

    try:
        return Duration.parse(text).seconds
    except TimeError:
        raise CommandError(f"{option} {text}: want a duration, for example 90s or 1h30m") from None
