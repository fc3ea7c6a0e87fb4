"""Paths with slashes, as Go's package path has them; `os` variants are those of Linux."""

from __future__ import annotations

import posixpath
from typing import Final

from ostinato.gotemplate.library.registry import Registry

PATHS: Final = Registry()
_register = PATHS


@_register("clean osClean", "string")
def clean(path: str) -> str:
    made = posixpath.normpath(path) if path else "."
    return made[1:] if made.startswith("//") else made


@_register("base osBase", "string")
def base(path: str) -> str:
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


@_register("dir osDir", "string")
def dir_(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return clean(head + slash)


@_register("ext osExt", "string")
def ext(path: str) -> str:
    name = path.rpartition("/")[2]
    _, dot, end = name.rpartition(".")
    return dot + end if dot else ""


@_register("isAbs osIsAbs", "string")
def is_abs(path: str) -> bool:
    return path.startswith("/")
