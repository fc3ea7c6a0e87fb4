"""All animals, by name."""

from __future__ import annotations

from tests.zoo import caches, clouds, conflicts, crashes, memory, ownership, processes
from tests.zoo.animals import Animal

_MODULES = (crashes, memory, caches, conflicts, ownership, clouds, processes)

ANIMALS: dict[str, Animal] = {each.name: each for module in _MODULES for each in module.ANIMALS}
