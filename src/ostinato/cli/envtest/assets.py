"""Assets directory: the entry points that envtest looks for in KUBEBUILDER_ASSETS.

Each is a shell script that replaces itself with the program, so that signals reach it. Files are replaced atomically
and only if they differ: several processes may write the same directory while others start programs from it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

from ostinato.cli.envtest import apiserver_flags, etcd_flags
from ostinato.cli.error import CommandError
from ostinato.version import VERSION

_PROGRAM: Final = """#!/bin/sh
# Written by `ostinato envtest`.
if [ "$1" = --help ]; then  # asked before each start
  cat <<'END OF HELP'
{help}END OF HELP
  exit
fi
# -P: the working directory is not searched for Python modules.
exec {python} -P -m ostinato.cli.envtest {program} "$@"
"""

_KUBECTL: Final = """#!/bin/sh
# Written by `ostinato envtest`: runs the first other kubectl on PATH.
set -f
IFS=:
for directory in $PATH; do
  program="${directory:-.}/kubectl"
  if [ -f "$program" ] && [ -x "$program" ] && ! [ "$program" -ef "$0" ]; then
    unset IFS
    exec "$program" "$@"
  fi
done
echo "kubectl: not found on PATH; install kubectl, or set TEST_ASSET_KUBECTL to its path" >&2
exit 127
"""


def write_assets(directory: Path | None) -> Path:
    """Write the entry points and return their directory; CommandError if that fails. Defaults to a cache directory."""
    place = (_default_directory() if directory is None else directory).absolute()
    python = shlex.quote(sys.executable)
    scripts = {
        name: _PROGRAM.format(python=python, program=name, help=parser.format_help())
        for name, parser in (("etcd", etcd_flags.make_parser()), ("kube-apiserver", apiserver_flags.make_parser()))
    }
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in {**scripts, "kubectl": _KUBECTL}.items():
            _write(place / name, text)
    except OSError as error:
        named = error.filename or place
        raise CommandError(f"cannot write {named}: {error.strerror or error}; use --bin-dir") from None
    return place


def _default_directory() -> Path:
    """The directory of this installation: others on this machine have their own."""
    cache = os.environ.get("XDG_CACHE_HOME")
    installation = hashlib.sha256(f"{VERSION} {sys.executable}".encode()).hexdigest()[:12]
    return (Path(cache) if cache else Path.home() / ".cache") / "ostinato" / "envtest" / installation


def _write(path: Path, text: str) -> None:
    """Replace a script if it differs. Never written in place: a file that is open for writing cannot be executed."""
    try:
        if path.read_text() == text and os.access(path, os.X_OK):
            return
    except (OSError, UnicodeDecodeError):
        pass
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        new.chmod(0o755)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
