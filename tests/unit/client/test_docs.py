"""What the how-to shows works as it stands there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from tests.stage.client import Stage, staged

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "read-and-write-objects.md"


@staged
async def test_the_examples_run_one_after_another(stage: Stage) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 9
    names: dict[str, Any] = {}
    source = "async def example(client):\n" + textwrap.indent("\n".join(blocks), "    ")
    exec(compile(source, str(PAGE), "exec"), names)
    await names["example"](stage.client)
