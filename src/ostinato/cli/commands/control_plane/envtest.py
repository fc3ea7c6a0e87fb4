"""`ostinato envtest`: write the assets directory of envtest, and run a command with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from ostinato.cli.envtest.assets import write_assets
from ostinato.cli.error import CommandError


def path(directory: Path | None) -> None:
    """Write the directory and print its path."""
    sys.stdout.write(f"{write_assets(directory)}\n")


def run(directory: Path | None, command: list[str]) -> NoReturn:
    """Replace this process with the command, with KUBEBUILDER_ASSETS set."""
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(write_assets(directory))}
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - the user's own command
    except OSError as error:
        raise CommandError(f"cannot run {command[0]}: {error.strerror}") from None
