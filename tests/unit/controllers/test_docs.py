"""The examples of the pages about controllers are run."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged_with
from tests.stage.kinds import Widget

import ostinato.controllers
from ostinato.api.meta import ObjectMeta
from ostinato.crd import crd_of
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager.hosting import Host, hosting

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_tutorial_runs_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    module = ModuleType("tutorial")
    sys.modules["tutorial"] = module  # where type hints look for their names
    with hosting(Host()):  # or the manager at its end would run
        for code in blocks("tutorial/controller.md"):
            exec(code, module.__dict__)
    assert capsys.readouterr().out == "replicas: 3\n"


def test_the_tutorial_is_the_example() -> None:
    example = (DOCS.parent / "examples" / "widget.py").read_text()
    code = example.split('"""\n', 1)[1].strip()
    assert blocks("tutorial/controller.md")[0].strip() == code


def test_the_examples_of_the_concepts_are_controllers() -> None:
    names: dict[str, Any] = {name: getattr(ostinato.controllers, name) for name in ostinato.controllers.__all__}
    names |= {"Widget": Widget, "Deployment": Deployment, "ConfigMap": ConfigMap, "client": None}
    names["widgets_using"] = lambda config_map: []
    names["ObjectMeta"] = ObjectMeta
    for code in blocks("concepts/controllers.md"):
        exec(code, names)
    assert names["widgets"].owns == (Deployment,)
    assert names["built"].options.max_concurrent == 4
    assert not names["plain_widgets"].make().reconciler.is_async


@pytest.mark.parametrize(
    ("page", "controllers"),
    [
        ("handle-errors", ["backups"]),
        ("run-daemons-and-timers", ["listen", "check", "poll"]),
        ("compare-with-the-last-reconcile", ["pools", "pools-with-history"]),
        ("choose-namespaces-and-kinds", ["pages"]),
    ],
)
def test_the_examples_of_a_how_to_are_controllers(page: str, controllers: list[str]) -> None:
    module = ModuleType(page.replace("-", "_"))
    sys.modules[module.__name__] = module  # where type hints look for their names
    for code in blocks(f"how-to/{page}.md"):
        with suppress(ostinato.controllers.TemporaryError):  # that the page raises
            exec(code, module.__dict__)
    found = [each for each in vars(module).values() if isinstance(each, ostinato.controllers.ControllerFunction)]
    assert [each.name for each in found] == controllers


@pytest.mark.parametrize("page", ["come-from-kopf", "come-from-controller-runtime"])
def test_the_operator_of_a_page_for_newcomers_makes_its_pages(page: str) -> None:
    module = ModuleType(page.replace("-", "_"))
    sys.modules[module.__name__] = module  # where type hints look for their names
    (code,) = blocks(f"how-to/{page}.md")
    exec(code, module.__dict__)
    sites = module.publish if hasattr(module, "publish") else module.manager.runnables[0]

    @staged_with(crd_of(module.Site))
    async def play(stage: ControllerStage) -> None:
        await stage.user.create(module.Site(metadata=ObjectMeta(name="home"), spec=module.SiteSpec(text="hello")))
        async with stage.running(sites):
            await stage.settle(1)
            await stage.user.delete(ConfigMap, "home")
            await stage.settle(1)
            assert (await stage.user.get(ConfigMap, "home")).data == {"index.html": "hello"}
            await stage.user.delete(module.Site, "home")
            await stage.settle(1)
            assert await stage.user.get(module.Site, "home", missing=None) is None
        assert stage.log.texts() == []

    play()
