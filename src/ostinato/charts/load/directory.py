"""Charts as directories."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ostinato.charts.chart import ChartError, File
from ostinato.charts.load.archive import MAX_CHART, MAX_FILE
from ostinato.charts.load.ignore import IgnoreRules

_BOM: Final = b"\xef\xbb\xbf"
_DEEPEST: Final = 64  # directories, which links can nest without an end


def directory_files(directory: Path) -> list[File]:
    """Return the files of a chart's directory in the order of their names, without those that .helmignore names.

    Links are followed, as by Helm: a directory is the user's own. Devices and sockets are refused.
    """
    listed = directory / ".helmignore"
    rules = IgnoreRules(listed.read_text("utf-8", "surrogateescape") if listed.is_file() else "")
    files: list[File] = []
    size = 0
    for name, path in _walk(directory, "", rules, 0):
        mode = path.stat()
        if not stat.S_ISREG(mode.st_mode):
            raise ChartError(f"cannot load irregular file {path} as it has file mode type bits set")
        if mode.st_size > MAX_FILE:
            raise ChartError(f'chart file "{path.name}" is larger than the maximum file size {MAX_FILE}')
        size += mode.st_size
        if size > MAX_CHART:
            raise ChartError(f"chart {directory} is larger than the maximum size {MAX_CHART}")
        files.append(File(name, path.read_bytes().removeprefix(_BOM)))
    return files


def _walk(directory: Path, prefix: str, rules: IgnoreRules, depth: int) -> Iterator[tuple[str, Path]]:
    if depth > _DEEPEST:
        raise ChartError(f"{directory}: directories are nested too deeply; is a symbolic link a loop?")
    for name in sorted(os.listdir(directory)):
        path = directory / name
        inner = prefix + name
        if path.is_dir():
            if not rules.ignores(inner, directory=True):
                yield from _walk(path, inner + "/", rules, depth + 1)
        elif not rules.ignores(inner, directory=False):
            yield inner, path
