"""The operators on pages for users of other frameworks do what these did; `tests/docs` runs all pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.stage.controllers import ControllerStage, staged_with

from ostinato.api.meta import ObjectMeta
from ostinato.crd import crd_of
from ostinato.kinds.core_v1 import ConfigMap

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python[^\n]*\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["come-from-kopf", "come-from-controller-runtime"])
def test_the_operator_of_a_page_for_newcomers_makes_its_pages(page: str) -> None:
    module = ModuleType(page.replace("-", "_"))
    sys.modules[module.__name__] = module  # where type hints look for their names
    code = blocks(f"how-to/{page}.md")[-1]
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
