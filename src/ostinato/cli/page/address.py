"""Where the page listens: `--page [HOST]:PORT`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from ostinato.cli.error import CommandError
from ostinato.manager.serving.endpoints import parse_address
from ostinato.page.page import LOOPBACK
from ostinato.page.serving.access import check_host, is_loopback

PREFIX: Final = "page-"


def page_address(option: str) -> tuple[str, int]:
    """Return host and port. CommandError if they are malformed."""
    try:
        host, port = parse_address(option)
        check_host(host)
    except ValueError as error:
        raise CommandError(f"--page: {error}") from None
    return host or LOOPBACK, port


def check_page(option: str, *, writes: bool) -> None:
    """Raise CommandError for options that cannot be served."""
    if option:
        page_address(option)
    elif writes:
        raise CommandError("--page-writes needs --page [HOST]:PORT")


def announce(url: str, host: str) -> None:
    """Print the URL of the page, and a warning if others can reach it."""
    if not is_loopback(host):
        sys.stderr.write(
            f"warning: the page listens on {host}, over plain HTTP: whoever can read that traffic can use its cookie; "
            "prefer the loopback address and `ssh -L`\n"
        )
    sys.stdout.write(f"page: {url} (the token works once)\n")
    sys.stdout.flush()


def sockets_directory() -> Path:
    """Return the directory for sockets of pages without a state directory. CommandError if it is not this user's."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(runtime) / "ostinato" if runtime else Path(tempfile.gettempdir()) / f"ostinato-{os.geteuid()}"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077 or path.is_symlink():
        raise CommandError(f"{path}: must be a directory of this user with mode 0700; remove it")
    return path


def own_socket() -> Path:
    """Return the socket of a page of this process."""
    return sockets_directory() / f"{PREFIX}{os.getpid()}.sock"
