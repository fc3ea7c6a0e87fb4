"""Links of proxied HTML pages: paths on the backend's host become paths through this server.

- Only attribute values that are URLs change; everything else is passed on byte by byte, as it arrives.
- Comments and the text of scripts and styles are not changed.
- A tag longer than 64 KiB is passed on unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Final

_LINKS: Final = {  # attributes that are URLs, by element
    "a": {"href"},
    "applet": {"codebase"},
    "area": {"href"},
    "audio": {"src"},
    "base": {"href"},
    "blockquote": {"cite"},
    "body": {"background"},
    "button": {"formaction"},
    "command": {"icon"},
    "del": {"cite"},
    "embed": {"src"},
    "form": {"action"},
    "frame": {"longdesc", "src"},
    "head": {"profile"},
    "html": {"manifest"},
    "iframe": {"longdesc", "src"},
    "img": {"longdesc", "src", "usemap"},
    "input": {"formaction", "src", "usemap"},
    "ins": {"cite"},
    "link": {"href"},
    "object": {"classid", "codebase", "data", "usemap"},
    "q": {"cite"},
    "script": {"src"},
    "source": {"src"},
    "video": {"poster", "src"},
}
_TEXT: Final = frozenset(
    {"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"}
)  # no tags inside
_LONGEST_TAG: Final = 1 << 16
_NAME: Final = re.compile(rb"<([a-zA-Z][^\s/>]*)")
_TAG_END: Final = re.compile(rb"""(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE: Final = re.compile(rb"""([^\s"'>/=]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)""")


class LinkRewriter:
    """Rewrites a page that arrives in pieces. `rewrite`: returns the new URL for a URL."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite
        self._pending = b""  # the beginning of a tag or comment, or of the end of a text
        self._until = b""  # end tag of the text that is being passed on

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on after another piece."""
        data, self._pending = self._pending + data, b""
        passed: list[bytes] = []
        at = 0
        while at < len(data):
            at = self._pass_text(data, at, passed) if self._until else self._pass_tag(data, at, passed)
            if at < 0:
                break
        return b"".join(passed)

    def close(self) -> bytes:
        """Return the rest of the page."""
        rest, self._pending = self._pending, b""
        return rest

    def _pass_text(self, data: bytes, at: int, passed: list[bytes]) -> int:
        end = data.lower().find(self._until, at)
        if end < 0:
            kept = max(at, len(data) - len(self._until) + 1)
            passed.append(data[at:kept])
            return self._wait(data, kept)
        self._until = b""
        passed.append(data[at:end])
        return end

    def _pass_tag(self, data: bytes, at: int, passed: list[bytes]) -> int:
        """Pass on everything up to the end of the next tag; return the position after it, -1 if more is needed."""
        start = data.find(b"<", at)
        if start < 0:
            passed.append(data[at:])
            return len(data)
        passed.append(data[at:start])
        if data.startswith(b"<!--", start) or (len(data) - start < 4 and b"<!--".startswith(data[start:])):
            end = data.find(b"-->", start + 4)
            if end < 0:
                return self._wait(data, start, passed)
            passed.append(data[start : end + 3])
            return end + 3
        name = _NAME.match(data, start)
        if name is None:
            passed.append(b"<")
            return start + 1
        found = _TAG_END.match(data, name.end())
        if found is None:
            return self._wait(data, start, passed)
        element = name[1].decode("latin-1").lower()
        passed.append(name[0] + self._attributes(element, data[name.end() : found.end()]))
        if element in _TEXT:
            self._until = b"</" + element.encode()
        return found.end()

    def _wait(self, data: bytes, start: int, passed: list[bytes] | None = None) -> int:
        """Keep the rest for the next piece; a tag that is too long is passed on."""
        if passed is not None and len(data) - start > _LONGEST_TAG:
            passed.append(data[start:])
            return len(data)
        self._pending = data[start:]
        return -1

    def _attributes(self, element: str, text: bytes) -> bytes:
        links = _LINKS.get(element)
        if links is None:
            return text

        def replaced(found: re.Match[bytes]) -> bytes:
            if found[1].decode("latin-1").lower() not in links:
                return found[0]
            value = found[3]
            quoted = value[:1] in (b'"', b"'")
            old = html.unescape((value[1:-1] if quoted else value).decode("utf-8", "surrogateescape"))
            new = self._rewrite(old)
            if new == old:
                return found[0]
            return found[1] + found[2] + b'"' + html.escape(new).encode("utf-8", "surrogateescape") + b'"'

        return _ATTRIBUTE.sub(replaced, text)
