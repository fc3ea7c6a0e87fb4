"""Extra variables of a run: the spec in snake_case, the object, and the variables of the watch.

| variable | value |
|---|---|
| each field of the spec, in snake_case at every level | as in the spec |
| `ansible_operator_meta` | `namespace` and `name` of the object |
| `_GROUP_KIND`, such as `_cache_example_com_memcached` | the whole object |
| `_GROUP_KIND_spec` | its spec |
| those of `vars`, and of the finalizer's `vars` during its run | as given |

Later rows win over earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api import accessors as access

Json = dict[str, Any]

_ACRONYMS: Final = ("HTTP", "URL", "IP")
_NUMBERS: Final = re.compile(r"([a-zA-Z])(\d+)([a-zA-Z]\d+)")
_NAME: Final = re.compile(r"[.-]")


def parameters_of(
    instance: Json, *extra: Mapping[str, Any], snake_case: bool = True, mark_unsafe: bool = False
) -> Json:
    """Return the extra variables.

    - `extra`: further variables, which win.
    - `snake_case`: convert the names of the spec. Defaults to True.
    - `mark_unsafe`: have Ansible take strings of the object as text, never as templates. Defaults to False.
    """
    spec = instance.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    guard: Callable[[Any], Any] = _unsafe if mark_unsafe else lambda value: value
    found = _renamed(spec) if snake_case else dict(spec)
    gvk, key = access.gvk(instance), access.key(instance)
    whole = _NAME.sub("_", f"_{gvk.group}_{gvk.kind.lower()}")
    found = {name: guard(value) for name, value in found.items()}
    found["ansible_operator_meta"] = {"namespace": key.namespace, "name": key.name}
    found[whole] = guard(instance)
    found[f"{whole}_spec"] = guard(spec)
    for each in extra:
        found.update(each)
    return found


def to_snake(name: str) -> str:
    """Convert a name as ansible-operator does: `egressIPs` is `egress_ips`, `Size` is `_size`, `JSONData` `_json_data`.

    A word ends where the case of letters changes; HTTP, URL and IP are words, with a plural s too.
    """
    spaced = _NUMBERS.sub(r"\1 \2 \3", name).strip(" ")
    if not spaced:
        return name
    words = _words(_with_acronyms(spaced))
    starts_capital = spaced[0].isascii() and spaced[0].isupper() and words[0].upper() not in _ACRONYMS
    return ("_" if starts_capital else "") + "_".join(words)


def _with_acronyms(text: str) -> str:
    """Separate the first HTTP, URL and IP from what is around them."""
    for word in _ACRONYMS:
        before, found, after = text.partition(word)
        if not found:
            continue
        if after.startswith("s"):
            found, after = f"{found}S", after[1:]
        text = (f"{before}_" if before or not after else "") + found + (f"_{after}" if after else "")
    return text


def _words(text: str) -> list[str]:
    """Split at separators and where the case changes, in lower case."""
    words, word = [], ""
    for at, character in enumerate(text):
        following = text[at + 1 : at + 2]
        if word and not word.endswith("_") and _is_turn(character, following):
            if character.isupper():
                words.append(word)
                word = character
            else:
                words.append(word + character)
                word = ""
        elif character in " _-":
            words.append(word)
            word = ""
        else:
            word += character
    return [each.lower() for each in (*words, word)]


def _is_turn(one: str, other: str) -> bool:
    """Whether one is a capital letter and the other a small one, or vice versa."""
    if not (one.isascii() and one.isalpha() and other.isascii() and other.isalpha()):
        return False
    return one.isupper() != other.isupper()


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_snake(name): _renamed(each) for name, each in value.items()}
    return [_renamed(each) for each in value] if isinstance(value, list) else value


def _unsafe(value: Any) -> Any:
    """Mark every string, as Ansible's JSON decoder understands it."""
    if isinstance(value, dict):
        return {name: _unsafe(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_unsafe(each) for each in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value
