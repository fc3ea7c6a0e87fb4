"""Masking of Secrets: their values never enter the page's memory, so nothing that it shows can contain them.

- Each value becomes `***` and a keyed digest, so that a change is seen. What is shown is `***` alone.
- Annotations with a JSON document, such as kubectl's last-applied-configuration, may repeat the values: masked too.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

from ostinato.cache.store.entry_decoder import Transform

MASK: Final = "***"
_VALUES: Final = ("data", "stringData")


def masking(key: bytes) -> Transform:
    """Return the transform of Secrets. `key`: random, of this process."""

    def masked(value: object) -> str:
        digest = blake2b(str(value).encode(), key=key, digest_size=8).hexdigest()
        return f"{MASK}{digest}"

    def transform(secret: dict[str, Any]) -> dict[str, Any]:
        for field in _VALUES:
            values = secret.get(field)
            if isinstance(values, dict):
                secret[field] = {name: masked(value) for name, value in values.items()}
            elif values is not None:
                secret[field] = masked(values)
        metadata = secret.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(annotations, dict):
            metadata["annotations"] = {
                name: masked(value) if str(value).lstrip().startswith(("{", "[")) else value
                for name, value in annotations.items()
            }
        return secret

    return transform


def shown(value: Any) -> Any:
    """Return a value of a Secret as it is shown: without the digests."""
    if isinstance(value, str):
        return MASK if value.startswith(MASK) else value
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value
