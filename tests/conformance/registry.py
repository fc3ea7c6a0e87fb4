"""A registry of the suite's images on this machine: for specs that pull although an image is present.

Serves the read-only part of the OCI distribution API from the archives, over HTTP on loopback.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

HOST: Final = "registry.k8s.io"
_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar"


class _Blob(NamedTuple):
    archive: Path
    name: str
    size: int


class ImageRegistry:
    """Manifests by repository and tag or digest, and blobs by digest, of all archives in a directory."""

    def __init__(self, images: Path) -> None:
        self.manifests: dict[tuple[str, str], bytes] = {}
        self._blobs: dict[str, _Blob] = {}
        for archive in sorted(images.glob("*.tar")):
            self._add(archive)

    def blob(self, digest: str) -> bytes | None:
        found = self._blobs.get(digest)
        if found is None:
            return None
        with tarfile.open(found.archive) as archive:
            content = archive.extractfile(found.name)
            assert content is not None
            return content.read()

    def _add(self, path: Path) -> None:
        with tarfile.open(path) as archive:
            members = {each.name: each for each in archive.getmembers()}
            content = archive.extractfile("manifest.json")
            assert content is not None
            for image in json.load(content):
                names = [image["Config"], *image["Layers"]]
                kinds = [_CONFIG, *(_LAYER for _ in image["Layers"])]
                parts = [
                    {"mediaType": kind, "digest": f"sha256:{Path(name).stem}", "size": members[name].size}
                    for name, kind in zip(names, kinds, strict=True)
                ]
                for name, part in zip(names, parts, strict=True):
                    self._blobs[str(part["digest"])] = _Blob(path, name, members[name].size)
                described = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": parts[0], "layers": parts[1:]}
                manifest = json.dumps(described).encode()
                for reference in image["RepoTags"]:
                    repository, _, tag = reference.removeprefix(f"{HOST}/").rpartition(":")
                    for version in (tag, digest_of(manifest)):
                        self.manifests[repository, version] = manifest


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextlib.contextmanager
def running_registry(images: Path) -> Iterator[str]:
    """Serve the images and yield the URL."""
    registry = ImageRegistry(images)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, _, rest = urlsplit(self.path).path.partition("/v2/")
            repository, _, version = rest.rpartition("/")
            name, _, kind = repository.rpartition("/")
            content = None
            if kind == "manifests":
                content, media = registry.manifests.get((name, version)), _MANIFEST
            elif kind == "blobs":
                content, media = registry.blob(version), "application/octet-stream"
            elif not rest:
                content, media = b"{}", "application/json"
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", digest_of(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - named by the base class

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
