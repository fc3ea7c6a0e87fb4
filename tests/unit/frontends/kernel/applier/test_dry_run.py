"""A dry run: what would be done, as text."""

from __future__ import annotations

import base64

from tests.stage.controllers import ControllerStage, staged
from tests.unit.frontends.kernel.applier.sets import actions, config_map, marked, namespace, sets


@staged
async def test_a_dry_run_changes_nothing_and_shows_what_would_change(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply(config_map("x", key="1"), config_map("gone"), config_map("same"))
    before = await made.owner()
    desired = (config_map("x", key="2"), config_map("new", "other"), config_map("same"))
    outcome = await made.apply(*desired, dry_run=True)
    assert actions(outcome) == [
        "update ConfigMap default/x",
        "create ConfigMap other/new",
        "none ConfigMap default/same",
        "delete ConfigMap default/gone",
    ]
    assert outcome.diff.splitlines()[:7] == [
        "--- ConfigMap default/x",
        "+++ ConfigMap default/x",
        "@@ -1,6 +1,6 @@",
        " apiVersion: v1",
        " data:",
        '-  key: "1"',
        '+  key: "2"',
    ]
    assert "--- /dev/null\n+++ ConfigMap other/new" in outcome.diff
    assert "--- ConfigMap default/gone\n+++ /dev/null" in outcome.diff
    assert "default/same" not in outcome.diff
    assert await made.owner() == before
    assert await marked(stage) == ["ConfigMap default/gone", "ConfigMap default/same", "ConfigMap default/x"]


@staged
async def test_an_object_in_a_namespace_of_the_same_set_can_be_shown(stage: ControllerStage) -> None:
    made = await sets(stage)
    outcome = await made.apply(namespace("new"), config_map("x", "new"), dry_run=True)
    assert actions(outcome) == ["create Namespace new", "create ConfigMap new/x"]
    assert outcome.errors == []


@staged
async def test_values_of_secrets_are_not_shown(stage: ControllerStage) -> None:
    made = await sets(stage)

    def secret(one: str, **more: str) -> dict[str, object]:
        data = {name: base64.b64encode(value.encode()).decode() for name, value in {"one": one, **more}.items()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}

    await made.apply(secret("hush", two="quiet"))
    text = await made.applier.diff(await made.owner(), [secret("hush2", two="quiet", three="new")], kinds=made.kinds)
    for value in ("hush", "hush2", "quiet", "new"):
        assert base64.b64encode(value.encode()).decode() not in text
    changed = [line for line in text.splitlines() if line[:2] in ("- ", "+ ")]
    assert changed == ["-  one: (redacted)", "+  one: (redacted, changed)", "+  three: (redacted, changed)"]


@staged
async def test_a_recreation_is_shown(stage: ControllerStage) -> None:
    made = await sets(stage)
    await made.apply({**config_map("x", key="1"), "immutable": True})
    outcome = await made.apply(config_map("x", key="2"), dry_run=True, method="Recreate")
    assert actions(outcome) == ["recreate ConfigMap default/x"]
    assert '+  key: "2"' in outcome.diff
