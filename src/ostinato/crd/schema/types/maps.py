"""Keys of maps: strings; a map with enum keys is an object with properties in the schema."""

from __future__ import annotations

from typing import Any

from ostinato.api.markers import Doc, Example, Title
from ostinato.crd.schema.annotations import name_of, read
from ostinato.crd.schema.place import Place
from ostinato.crd.schema.types.unions import is_enumeration, values_of


def map_keys(core: Any, key: Any, at: Place) -> list[str]:
    """Return the possible keys of a map with an enum as key type; [] for any string."""
    reading = read(key, at)
    if claims := [marker for marker in reading.markers if not isinstance(marker, Doc | Example | Title)]:
        raise at.error(f"{claims[0]!r} does not apply to keys of a map: put a Rule on the field")
    if reading.core is str or reading.core is Any:
        return []
    names = values_of(reading.core) if is_enumeration(reading.core) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise at.error(f"{name_of(core)}: JSON keys are strings: use dict[str, ...]")
    return [str(name) for name in names]
