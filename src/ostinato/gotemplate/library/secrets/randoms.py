"""Random texts and numbers, of the world: in a simulation they follow from the seed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.world import World

_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS: Final = _UPPER + _UPPER.lower()
_DIGITS: Final = "0123456789"
_ASCII: Final = "".join(map(chr, range(32, 127)))
_LONGEST: Final = 1 << 20


def random_functions(world: World) -> Registry:
    """Return the functions that draw random numbers."""
    register = Registry()
    for name, alphabet in (
        ("randAlphaNum", _LETTERS + _DIGITS),
        ("randAlpha", _LETTERS),
        ("randNumeric", _DIGITS),
        ("randAscii", _ASCII),
    ):
        register.add(name, "int", _texts(world, alphabet))
    register.add("randBytes", "int", lambda count: base64.b64encode(world.ids.token(_bounded(count))).decode())
    register.add("uuidv4", "", world.ids.uid)
    register.add("randInt", "int, int", lambda low, high: _number(world, low, high))
    register.add("shuffle", "string", lambda text: _shuffled(world, text))
    return register


def _bounded(count: int) -> int:
    if count < 0:
        raise PanicError("runtime error: makeslice: len out of range")
    if count > _LONGEST:
        raise TemplateError(f"{count} random characters are too many; the limit is {_LONGEST}")
    return count


def _texts(world: World, alphabet: str) -> Callable[[int], str]:
    def text(count: int) -> str:
        made: list[str] = []
        wanted = _bounded(max(count, 0))
        limit = 256 - 256 % len(alphabet)  # bytes above it would make some characters more likely
        while len(made) < wanted:
            made += (alphabet[byte % len(alphabet)] for byte in world.ids.token(2 * wanted) if byte < limit)
        return "".join(made[:wanted])

    return text


def _number(world: World, low: int, high: int) -> int:
    if high <= low:
        raise PanicError("invalid argument to Intn")
    return world.rng.randrange(low, high)


def _shuffled(world: World, text: str) -> str:
    characters = list(text)
    world.rng.shuffle(characters)
    return "".join(characters)
