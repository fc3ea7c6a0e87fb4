"""Warnings about overlapping file paths in a volume."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ostinato.api.text.go_format import quote
from ostinato.server.resources.strategy import Json


class _File(NamedTuple):
    path: str
    source: str  # the source of the file, "" if the volume has one source

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def path_warnings(volumes: Iterable[Json]) -> list[str]:
    """Warn about paths of a volume that are equal, or prefixes of each other."""
    found: list[str] = []
    for volume in volumes:
        name = quote(volume.get("name", ""))
        for what, files in _files_of(volume):
            found += [f"volume {name} ({what}): overlapping paths: {text}" for text in _overlaps(files)]
        for source in (volume.get("projected") or {}).get("sources") or ():
            if not source:
                found.append(f"volume {name} (Projected) has no sources provided")
    return found


def _files_of(volume: Json) -> Iterator[tuple[str, list[_File]]]:
    for kind, what, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(kind) or {}
        yield f"{what} {quote(source.get(named, ''))}", _items(source, "")
    yield "DownwardAPI", _items(volume.get("downwardAPI") or {}, "")
    sources = (volume.get("projected") or {}).get("sources") or ()
    yield "Projected", [file for source in sources for file in _projected(source)]


def _items(source: Json, origin: str) -> list[_File]:
    return [_File(item.get("path", "").rstrip("/"), origin) for item in source.get("items") or ()]


def _projected(source: Json) -> list[_File]:
    for kind, what in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (source.get(kind) or {}).get("items"):
            return _items(source[kind], f"{what} {quote(source[kind].get('name', ''))}")
    if (source.get("downwardAPI") or {}).get("items"):
        return _items(source["downwardAPI"], "DownwardAPI")
    if "serviceAccountToken" in source:
        return [_File(source["serviceAccountToken"].get("path", "").rstrip("/"), "ServiceAccountToken")]
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        name = quote(bundle.get("name", bundle.get("signerName", "")))
        return [_File(bundle.get("path", "").rstrip("/"), f"ClusterTrustBundle {name}")]
    certificate = source.get("podCertificate") or {}
    parts = {"certificateChainPath": "chain", "keyPath": "key", "credentialBundlePath": "credential bundle"}
    return [
        _File(certificate[field].rstrip("/"), f"PodCertificate {part}")
        for field, part in parts.items()
        if certificate.get(field)
    ]


def _overlaps(files: list[_File]) -> list[str]:
    return [
        f"{file} with {other}"
        for i, file in enumerate(files)
        for other in files[:i]
        if file.path and other.path and _overlap(file.path, other.path)
    ]


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
