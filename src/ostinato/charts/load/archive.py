"""Charts as `.tgz` archives. They are not trusted: names and sizes are checked, nothing is unpacked to disk."""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Final, cast

from ostinato.charts.chart import ChartError, File

MAX_CHART: Final = 100 * 1024 * 1024  # bytes, unpacked
MAX_FILE: Final = 5 * 1024 * 1024
_DRIVE: Final = re.compile(r"[a-zA-Z]:/")
_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b\x08"


def archive_files(data: bytes, name: str) -> list[File]:
    """Return the files of an archive, without the directory that holds them. `name` is for errors."""
    if not data.startswith(_GZIP):
        hint = "seems to be a YAML file, but expected" if name.endswith((".yml", ".yaml")) else "is not"
        raise ChartError(f"file '{name}' {hint} a gzipped archive")
    try:
        files = list(_files(data))
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise ChartError(f"file '{name}' is not a valid chart archive: {error}") from None
    if not files:
        raise ChartError(f"file '{name}': no files in chart archive")
    return files


def _files(data: bytes) -> Iterator[File]:
    left = MAX_CHART
    stream = cast("IO[bytes]", _Unzipped(data))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isdir():
                continue
            name = _safe_name(member.name)
            if member.size > left:
                raise ChartError(f"decompressed chart is larger than the maximum file size {MAX_CHART}")
            if member.size > MAX_FILE:
                limit = f"is larger than the maximum file size {MAX_FILE}"
                raise ChartError(f'decompressed chart file "{member.name}" {limit}')
            left -= member.size
            content = archive.extractfile(member) if member.isreg() else None  # links have no contents in Helm either
            yield File(name, content.read().removeprefix(_BOM) if content is not None else b"")


def _safe_name(name: str) -> str:
    delimiter = "\\" if "\\" in name else "/"
    first, *rest = name.split(delimiter)
    inner = "/".join(rest)
    if inner.startswith("/"):
        raise ChartError("chart illegally contains absolute paths")
    inner = posixpath.normpath(inner) if inner else "."
    if inner == ".":
        raise ChartError(f'chart illegally contains content outside the base directory: "{name}"')
    if inner.startswith(".."):
        raise ChartError("chart illegally references parent directory")
    if _DRIVE.match(inner):
        raise ChartError("chart contains illegally named files")
    if first == "Chart.yaml":
        raise ChartError("chart yaml not in base directory")
    return inner


class _Unzipped(io.RawIOBase):
    """The unzipped bytes of an archive, made as they are read: a bomb is never unpacked beyond the limit."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self._zip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = 1 << 16 if size < 0 else size
        made = b""
        while len(made) < wanted:
            if self._zip.eof:
                self._data = self._zip.unused_data
                if not self._data.startswith(_GZIP):
                    break
                self._zip = zlib.decompressobj(zlib.MAX_WBITS | 16)
            part = self._zip.decompress(self._data, wanted - len(made))
            self._data = self._zip.unconsumed_tail
            if not part and not self._data and not self._zip.eof:
                break
            made += part
        self._read += len(made)
        if self._read > 2 * MAX_CHART:  # headers and padding included
            raise ChartError(f"decompressed chart is larger than the maximum file size {MAX_CHART}")
        return made
