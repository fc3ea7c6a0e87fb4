"""The examples of the pages about the manager are run, as far as they can be without a cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ostinato.cache import InformerSettings
from ostinato.client.config.config import Config
from ostinato.controllers import Context, Dependencies, Request, controller
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager import Manager

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("concepts/manager.md", "how-to/run-in-production.md")


class Database:
    def ping(self) -> None: ...


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Manager] = []

    def run(manager: Manager) -> None:
        ran.append(manager)

    monkeypatch.setattr(Manager, "run", run)

    @controller(ConfigMap)
    async def widgets(source: ConfigMap, ctx: Context) -> None: ...

    async def report(dependencies: Dependencies) -> None: ...

    async def reconcile(request: Request) -> None: ...

    def copies_of(secret: Secret) -> Request:
        return Request("default", secret.metadata.name)

    class Recorder:
        def event(self, *args: Any, **kwargs: Any) -> None: ...

    class Around:
        recorder = Recorder()

    names: dict[str, Any] = {
        "widgets": widgets,
        "report": report,
        "reconcile": reconcile,
        "copies_of": copies_of,
        "manager": Manager(),
        "ConfigMap": ConfigMap,
        "Secret": Secret,
        "InformerSettings": InformerSettings,
        "database": Database(),
        "dependencies": Around(),
        "widget": None,
        "deployment": None,
        "other_config": Config(server="http://127.0.0.1:1"),
    }
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert ran
