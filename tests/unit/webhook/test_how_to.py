"""The examples of the how-to run as they are written."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.unit.webhook.samples import Answered, admission_review, conversion_review, posted, widget

from ostinato.webhook.webhooks import Webhooks
from ostinato.world import World

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "write-a-webhook.md"


def test_the_examples_of_the_how_to_run() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        # Without inherited flags: the annotations of the page are those of a plain module.
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), names)  # the page is ours
    webhooks: Webhooks = names["webhooks"]

    async def main() -> None:
        world = World.real()
        dispatcher = webhooks.dispatcher(world)

        async def ask(review: Any, path: str) -> Answered:
            return Answered(await dispatcher.handle(posted(review, path)))

        odd = await ask(admission_review(widget(replicas=3, image="a:latest")), "/validate-example-dev-v1-widget")
        assert odd.message == 'Widget.example.dev "a" is invalid: spec.replicas: Invalid value: 3: must be even'
        assert odd.warnings == ["spec.image: latest moves, name a version"]
        filled = await ask(admission_review(widget()), "/mutate-example-dev-v1-widget")
        assert filled.applied_to(widget()) == widget(replicas=2)
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 101}}
        dispatcher.add([names["few"], names["no_shells"]])
        many = await ask(admission_review(scale, operation="UPDATE", subResource="scale"), "/few")
        assert many.message == "too many"
        shell = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}
        entering = admission_review(shell, operation="CONNECT", subResource="exec", name="p")
        assert (await ask(entering, "/validate--v1-pod")).message.endswith("may not enter p")
        converted = await ask(conversion_review([widget(replicas=4)]), "/convert")
        assert converted.response["convertedObjects"][0]["spec"] == {"count": 4}
        world.executor.close()

    asyncio.run(main())
