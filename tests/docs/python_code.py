"""Runs the Python blocks of one page in one module and one event loop, with `await` at the top level."""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from ostinato.manager.hosting import Host, hosting
from tests.docs.blocks import ROOT, Block
from tests.docs.outputs import same


class PythonBlocks:
    """`Manager.run` returns at once, as under `ostinato run`; modules in the page's directory can be imported.

    `close` removes the loop and the modules.
    """

    def __init__(self, page: str, directory: Path, modules: Iterable[str]) -> None:
        """`modules`: those that the page writes. Modules of other tests with these names are hidden until `close`."""
        self._directory = directory
        self._hidden = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
        sys.path.insert(0, str(directory))
        self._module = ModuleType("page_" + "".join(c if c.isalnum() else "_" for c in page))
        sys.modules[self._module.__name__] = self._module  # where type hints look for names
        self._runner = asyncio.Runner()

    @property
    def names(self) -> dict[str, Any]:
        return self._module.__dict__

    def run(self, block: Block) -> None:
        # The lines of a traceback are those of the page.
        source = "\n" * (block.line - 1) + block.code
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(source, str(ROOT / block.page), "exec", flags=flags, dont_inherit=True)
        if block.action == "compile":
            return
        printed = StringIO()
        with redirect_stdout(printed), hosting(Host()):
            if code.co_flags & inspect.CO_COROUTINE:
                self.wait(eval(code, self.names))
            else:
                exec(code, self.names)
        if block.output is not None:
            assert same(block.output, printed.getvalue()), (
                f"{block.place}: the page shows:\n{block.output}\nthis was printed:\n{printed.getvalue()}"
            )

    def wait(self, coroutine: Any) -> Any:
        return self._runner.run(coroutine)

    def close(self) -> None:
        self._runner.close()
        sys.path.remove(str(self._directory))
        for name, module in list(sys.modules.items()):
            if module is self._module or str(getattr(module, "__file__", "")).startswith(f"{self._directory}/"):
                del sys.modules[name]
        sys.modules.update(self._hidden)
