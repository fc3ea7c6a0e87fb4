"""Masking of Secrets: their values never enter the page's memory, so nothing that it shows can contain them.

- Each value becomes `***` and a keyed digest, so that a change is seen. What is shown is `***` alone.
- Annotations may repeat the values: kubectl's last-applied-configuration does so as JSON, other tools do so compressed.
  Only short plain ones that contain none of the values are kept.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final

from ostinato.cache.store.entry_decoder import Transform

MASK: Final = "***"
_VALUES: Final = ("data", "stringData")
_LONGEST: Final = 256  # characters of an annotation that is kept
_SHORTEST: Final = 4  # characters of a value that is looked for in annotations
_DOCUMENT: Final = ("{", "[", "<", "---")  # JSON, XML, YAML


def masking(key: bytes) -> Transform:
    """Return the transform of Secrets. `key`: random, of this process."""

    def masked(value: object) -> str:
        digest = blake2b(str(value).encode(), key=key, digest_size=8).hexdigest()
        return f"{MASK}{digest}"

    def transform(secret: dict[str, Any]) -> dict[str, Any]:
        values = [secret[field] for field in _VALUES if field in secret]
        for field in _VALUES:
            found = secret.get(field)
            if isinstance(found, dict):
                secret[field] = {name: masked(value) for name, value in found.items()}
            elif found is not None:
                secret[field] = masked(found)
        metadata = secret.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(annotations, dict):
            texts = {*_texts(values)}
            metadata["annotations"] = {
                name: value if _is_plain(value, texts) else masked(value) for name, value in annotations.items()
            }
        return secret

    return transform


def _is_plain(annotation: object, values: Iterable[str]) -> bool:
    """Whether an annotation can be kept."""
    text = str(annotation)
    return (
        len(text) <= _LONGEST
        and "\n" not in text
        and not text.lstrip().startswith(_DOCUMENT)
        and not any(value in text for value in values)
    )


def _texts(value: object) -> Iterator[str]:
    """Yield the values of a Secret as they are stored, and decoded; except very short ones, which are part of words."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
        return
    text = str(value)
    for each in (text, _decoded(text)):
        if len(each.strip()) >= _SHORTEST:
            yield each.strip()


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except (Error, ValueError):  # not base64, or not text
        return ""


def shown(value: Any) -> Any:
    """Return a value of a Secret as it is shown: without the digests."""
    if isinstance(value, str):
        return MASK if value.startswith(MASK) else value
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value
