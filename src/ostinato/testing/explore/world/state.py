"""State: all objects in a form in which two runs can be compared.

- uids, resourceVersions, times, generations and managedFields differ between any two runs, and are left out. An
  `observedGeneration` is compared as whether it is the current one.
- An object with a generated name is identified by its prefix and owner; several of them are a multiset.
- `Freedom` names what else may differ: fields that two runs without faults do not agree on, and those a user names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.testing.explore.world.disk import Objects

_TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_UID: Final = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
_METADATA: Final = ("labels", "annotations", "finalizers")
_IGNORED: Final = frozenset(
    {
        "events",
        "leases.coordination.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "servicenodeports.ranges",
    }
)
_SERVER_MADE: Final = frozenset({"ipaddresses.networking.k8s.io", "apiservices.apiregistration.k8s.io"})

TOUCHED: Final = "explore.ostinato.dev/touched"  # annotation of a user
HANGING: Final = "explore.ostinato.dev/hangs"  # finalizer of another controller
BYSTANDER: Final = "explore.ostinato.dev/bystander"  # annotation of objects that are not the operator's
_OWN: Final = "explore.ostinato.dev/"

Path = tuple[str, ...]


class Freedom(NamedTuple):
    """What may differ. `paths`: by kind, "" for all kinds; the empty path is the whole object."""

    paths: frozenset[tuple[str, Path]] = frozenset()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Freedom:
        """Read `Secret`, `Secret:data.password` and `status.lastSync`."""
        found: set[tuple[str, Path]] = set()
        for text in texts:
            kind, colon, path = text.partition(":")
            if not colon:
                kind, path = (text, "") if text[:1].isupper() else ("", text)
            found.add((kind, tuple(path.split(".")) if path else ()))
        return cls(frozenset(found))

    def joined(self, others: Iterable[tuple[str, Path]]) -> Freedom:
        return Freedom(self.paths | frozenset(others))

    def has(self, kind: str) -> bool:
        """Whether a kind may differ as a whole."""
        return (kind, ()) in self.paths

    def apply(self, kind: str, value: Any) -> Any:
        """Return the object without what may differ; None if that is all of it."""
        for of, path in self.paths:
            if of in ("", kind):
                if not path:
                    return None
                _remove(value, path)
        return value


class State(NamedTuple):
    """Objects by identity, as `Kind namespace/name`."""

    objects: Mapping[str, Any]

    def differences(self, other: State) -> list[str]:
        """Describe how this state differs from another, the expected one; a line each."""
        lines = []
        for identity in sorted({*self.objects, *other.objects}):
            mine, theirs = self.objects.get(identity), other.objects.get(identity)
            if mine == theirs:
                continue
            if mine is None:
                lines.append(f"{identity}: missing")
            elif theirs is None:
                lines.append(f"{identity}: should not exist")
            else:
                lines += [f"{identity}: {line}" for line in _field_differences(mine, theirs)]
        return lines

    def without_status(self) -> set[str]:
        """Return the kinds none of whose objects has a status."""
        kinds: dict[str, bool] = {}
        for identity, value in self.objects.items():
            kind = identity.partition(" ")[0]
            values = value if isinstance(value, list) else [value]
            kinds[kind] = kinds.get(kind, True) and all(
                isinstance(each, dict) and "status" not in each for each in values
            )
        return {kind for kind, absent in kinds.items() if absent}

    def free_paths(self, other: State) -> list[tuple[str, Path]]:
        """Return the fields in which two runs without faults differ."""
        found = []
        for identity, mine in self.objects.items():
            theirs = other.objects.get(identity)
            if theirs is not None and theirs != mine:
                found += [(identity.partition(" ")[0], path) for path in _differing(mine, theirs, ())]
        return found


def state_of(
    objects: Objects, kinds: Mapping[str, GroupVersionKind], freedom: Freedom, gone: Iterable[str] = ()
) -> State:
    """Return the state of the objects that were written since the image.

    `gone`: identities of objects of the image that were deleted.
    """
    decoded = [
        (kinds[place[0]].kind, msgspec.json.decode(data))
        for place, (_, data) in objects.items()
        if place[0] not in _IGNORED and place[0] not in _SERVER_MADE and place[0] in kinds
    ]
    generated = {
        each["metadata"]["name"]: f"{each['metadata']['generateName']}*"
        for _, each in decoded
        if each["metadata"].get("generateName")
    }
    found: dict[str, Any] = {}
    several: dict[str, list[Any]] = {}
    for kind, each in decoded:
        if BYSTANDER in each["metadata"].get("annotations", ()):
            continue
        value = freedom.apply(kind, normalized(each, generated))
        if value is None:
            continue
        metadata = each["metadata"]
        name = metadata["name"]
        identity = f"{kind} {metadata['namespace']}/{name}" if metadata.get("namespace") else f"{kind} {name}"
        if name in generated:
            owners = ",".join(owner["name"] for owner in value["metadata"].get("ownerReferences", ()))
            identity = identity.removesuffix(name) + generated[name] + (f" of {owners}" if owners else "")
            several.setdefault(identity, []).append(value)
        else:
            found[identity] = value
    for identity, values in several.items():
        found[identity] = sorted(values, key=msgspec.json.encode)
    for identity in gone:
        found[f"{identity} (deleted)"] = True
    return State(found)


def normalized(value: dict[str, Any], generated: Mapping[str, str]) -> dict[str, Any]:
    """Return an object without what differs between any two runs."""
    metadata = value["metadata"]
    kept: dict[str, Any] = {field: each for field in _METADATA if (each := _others(metadata.get(field)))}
    if metadata.get("ownerReferences"):
        kept["ownerReferences"] = [
            {
                "kind": each["kind"],
                "name": generated.get(each["name"], each["name"]),
                "controller": each.get("controller", False),
            }
            for each in metadata["ownerReferences"]
        ]
    if "deletionTimestamp" in metadata:
        kept["deletionTimestamp"] = "set"
    rest = {field: each for field, each in value.items() if field not in ("metadata", "apiVersion", "kind")}
    cleaned: dict[str, Any] = _cleaned(rest, metadata.get("generation"), generated)
    return {"metadata": _cleaned(kept, None, generated), **cleaned}


def _others(value: Any) -> Any:
    """Return annotations, labels or finalizers without those of faults."""
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if not key.startswith(_OWN)}
    return [each for each in value or () if not each.startswith(_OWN)]


def _type_of(value: Any) -> str:
    """Return the type of a condition, "" of other values. Conditions are in the order in which they became true."""
    found = value.get("type") if isinstance(value, dict) and "status" in value else None
    return found if isinstance(found, str) else ""


def _cleaned(value: Any, generation: int | None, generated: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            field: (
                ("unset" if not each else "current" if each == generation else "older")
                if field == "observedGeneration" and generation is not None
                else _cleaned(each, generation, generated)
            )
            for field, each in value.items()
        }
    if isinstance(value, list):
        found = [_cleaned(each, generation, generated) for each in value]
        return sorted(found, key=_type_of) if found and all(map(_type_of, found)) else found
    if isinstance(value, str):
        if len(value) > 19 and (_TIME.match(value) or _UID.match(value)):
            return "..."
        return generated.get(value, value)
    return value


def _remove(value: Any, path: Path) -> None:
    if isinstance(value, list):
        for each in value:
            _remove(each, path)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) == 1:
            del value[path[0]]
        else:
            _remove(value[path[0]], path[1:])
    elif isinstance(value, dict) and path[0] == "*":
        for each in value.values():
            _remove(each, path[1:])


def _differing(mine: Any, theirs: Any, path: Path) -> list[Path]:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return [
            found
            for field in {**mine, **theirs}
            if mine.get(field) != theirs.get(field)
            for found in _differing(mine.get(field), theirs.get(field), (*path, field))
        ]
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        return [found for a, b in zip(mine, theirs, strict=True) if a != b for found in _differing(a, b, path)]
    return [path]


def _field_differences(mine: Any, theirs: Any) -> list[str]:
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) != len(theirs):
        return [f"{len(mine)} objects, expected {len(theirs)}"]
    paths = _differing(mine, theirs, ())
    return list(dict.fromkeys(f"{'.'.join(path)}: {_at(mine, path)}, expected {_at(theirs, path)}" for path in paths))


def _at(value: Any, path: Path) -> str:
    for field in path:
        if isinstance(value, list):
            value = value[0] if value else None
        value = value.get(field) if isinstance(value, dict) else None
    text = "absent" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 160 else f"{text[:157]}..."
