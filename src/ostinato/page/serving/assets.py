"""The files of the front end, built from `web/` and shipped in the package. Read once; no path is opened."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files
from typing import Final

from ostinato.http.server import HttpRequest, HttpResponse

INDEX: Final = "index.html"
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
_NOT_BUILT: Final = b"""<!doctype html><meta charset="utf-8"><title>Ostinato</title>
<p>The front end is not part of this installation; build it with <code>make page</code>. The API below /api works.
"""


class Assets:
    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}  # by name: content, media type, ETag
        for file in files("ostinato.page").joinpath("assets").iterdir():
            kind = _TYPES.get(file.name.rpartition(".")[2])
            if file.is_file() and kind is not None:
                data = file.read_bytes()
                self._files[file.name] = (data, kind, f'"{blake2b(data, digest_size=12).hexdigest()}"')

    def answer(self, request: HttpRequest, name: str) -> HttpResponse:
        """Return a file; 304 if the browser has it."""
        found = self._files.get(name)
        if found is None:
            if name == INDEX:
                return HttpResponse(200, _NOT_BUILT, _TYPES["html"], [("Cache-Control", "no-cache")])
            return HttpResponse(404, b'{"error":"no such file"}', "application/json")
        data, kind, tag = found
        headers = [("ETag", tag), ("Cache-Control", "no-cache")]
        if request.headers.get("if-none-match") == tag:
            return HttpResponse(304, b"", kind, headers)
        return HttpResponse(200, data, kind, headers)
