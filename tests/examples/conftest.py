"""The environment of examples whose libraries the environment of the tests cannot have (requirements.txt)."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PACKAGES = "OSTINATO_TESTS_PACKAGES"  # variable with the directory of the packages of the tests' environment
REQUIREMENTS = Path(__file__).resolve().parents[2] / "examples" / "requirements.txt"


@pytest.fixture(scope="session")
def examples_python() -> str:
    """A Python with the requirements of the examples before the packages of this one.

    OSTINATO_EXAMPLES_VENV names the virtual environment, which is created and kept.
    """
    kept = os.environ.get("OSTINATO_EXAMPLES_VENV")
    if not kept:
        pytest.skip("OSTINATO_EXAMPLES_VENV is not set; it names a virtual environment to create and keep")
    directory = Path(kept)
    python = directory / "bin" / "python"
    if not (directory / "ready").exists():
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            str(REQUIREMENTS),
        ]
        for command in ([sys.executable, "-m", "venv", "--clear", str(directory)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"the requirements of the examples cannot be installed: {done.stderr[-300:]}")
        own = Path(sysconfig.get_path("purelib", vars={"base": kept, "platbase": kept}))
        # After its own packages; the environment may be older than this one, and outlive it.
        line = f"import os, sys; sys.path.extend(filter(None, [os.environ.get('{PACKAGES}')]))\n"
        (own / "ostinato_tests.pth").write_text(line)
        (directory / "ready").touch()
    return str(python)
