"""Load a program's file without running it, as `ostinato run` does."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ostinato.manager.hosting import Host, hosting


def load(path: str | Path) -> Any:  # Any: the names of the file
    """Import a file; `Manager.run()` at its end returns at once. For a file that can be imported, import it."""
    file = Path(path).resolve()
    taken = file.stem in sys.stdlib_module_names  # `operator.py` must not hide the module of this name
    spec = spec_from_file_location(f"{file.stem}_program" if taken else file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FileNotFoundError(f"{path}: not a Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where annotations and pickles look names up
    with hosting(Host()):
        spec.loader.exec_module(module)
    return module
