"""Release record: a revision of a release, as Helm 3 stores it in a Secret.

The Secret `sh.helm.release.v1.NAME.vREVISION` has labels to find it by, and the record as base64 of gzip of JSON.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
from typing import Any, Final

import msgspec

from ostinato.api.wire import DecodeError, decode_json

Json = dict[str, Any]

DEPLOYED, SUPERSEDED, FAILED, UNINSTALLING = "deployed", "superseded", "failed", "uninstalling"
PENDING_INSTALL, PENDING_UPGRADE, PENDING_ROLLBACK = "pending-install", "pending-upgrade", "pending-rollback"
SECRET_TYPE: Final = "helm.sh/release.v1"  # noqa: S105
DIGEST: Final = "ostinato.dev/chart-digest"  # annotation: of the chart with its subcharts, which the record omits
_PREFIX: Final = "sh.helm.release.v1"
_MAX_RECORD: Final = 64 * 1024 * 1024  # bytes of JSON; a Secret holds 1 MiB compressed


class RecordError(ValueError):
    """A release Secret cannot be read."""


class Info(msgspec.Struct, omit_defaults=True):
    """When the revision was deployed, and its state. Times are RFC 3339, "" if they are not set."""

    first_deployed: str
    last_deployed: str
    deleted: str
    status: str
    description: str = ""
    notes: str = ""


class HookRecord(msgspec.Struct, omit_defaults=True):
    """A hook, and its last run."""

    name: str
    kind: str
    path: str
    manifest: str
    events: list[str]
    last_run: Json = {}
    weight: int = 0
    delete_policies: list[str] = []


class ReleaseRecord(msgspec.Struct, omit_defaults=True):
    """One revision of a release. `digest` is not part of Helm's record."""

    name: str
    info: Info
    chart: Json
    manifest: str
    version: int
    namespace: str
    config: Json | None = None
    hooks: list[HookRecord] | None = None
    digest: str = ""

    @property
    def secret_name(self) -> str:
        return f"{_PREFIX}.{self.name}.v{self.version}"

    @property
    def status(self) -> str:
        return self.info.status

    @property
    def chart_name(self) -> str:
        metadata = self.chart.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def secret_of(record: ReleaseRecord, modified: int) -> Json:
    """Return the Secret of a record. `modified`: seconds since the epoch."""
    plain = msgspec.to_builtins(record)
    plain.pop("digest", None)
    packed = base64.b64encode(gzip.compress(msgspec.json.encode(plain), mtime=0))
    metadata: Json = {
        "name": record.secret_name,
        "namespace": record.namespace,
        "labels": {
            "name": record.name,
            "owner": "helm",
            "status": record.status,
            "version": str(record.version),
            "modifiedAt": str(modified),
        },
    }
    if record.digest:
        metadata["annotations"] = {DIGEST: record.digest}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": SECRET_TYPE,
        "data": {"release": base64.b64encode(packed).decode()},
    }


def record_of(secret: Json) -> ReleaseRecord:
    """Return the record of a Secret. Raises `RecordError`."""
    name = secret.get("metadata", {}).get("name")
    try:
        packed = base64.b64decode(base64.b64decode(secret["data"]["release"], validate=True), validate=True)
        text = _unpacked(packed) if packed[:2] == b"\x1f\x8b" else packed
        record = msgspec.convert(decode_json(text), ReleaseRecord)
    except (KeyError, TypeError, binascii.Error, OSError, EOFError, DecodeError, msgspec.ValidationError) as error:
        raise RecordError(f"Secret {name}: not a release record of Helm 3: {error}") from None
    record.digest = (secret["metadata"].get("annotations") or {}).get(DIGEST, "")
    return record


def _unpacked(packed: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        text = file.read(_MAX_RECORD + 1)
    if len(text) > _MAX_RECORD:
        raise OSError(f"more than {_MAX_RECORD} bytes")
    return text
