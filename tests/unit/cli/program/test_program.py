"""The program of a file: managers, controllers, webhooks, and the definitions of its kinds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load
from ostinato.cli.program.program import Program, definitions_of, program_of
from ostinato.manager.hosting import Choices, Host

KINDS = """
from ostinato import CustomResource, Manager, Struct, controller
from ostinato.api.markers import Foreign, Stored, marked
from ostinato.controllers import Builder
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.webhook import UrlEndpoint, Webhooks, converter, validator

class Spec(Struct):
    size: int = 1

class Widget(CustomResource, group="example.dev", version="v1"):
    spec: Spec

class Gadget(CustomResource, group="example.dev", version="v1"):
    spec: Spec

@controller(Widget, owns=[ConfigMap])
async def widgets(widget: Widget, ctx) -> None: ...

@controller(Gadget)
async def gadgets(gadget: Gadget, ctx) -> None: ...
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What becomes of a file with this text."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)

    def make(text: str, host: Host | None = None, **options: Any) -> Program:
        Path("operator_file.py").write_text(text)
        host = host or Host()
        return program_of([load(find("operator_file.py"), host)], host, **options)

    yield make
    for name in set(sys.modules) - before:
        del sys.modules[name]


def names(program: Program) -> list[list[str]]:
    return [[each.name for each in manager.runnables] for manager in program.managers]


def definitions(program: Program, **options: Any) -> list[str]:
    return [each["metadata"]["name"] for each in definitions_of(program, **options)]


def test_without_a_manager_all_controllers_run_in_one_manager(program: Any) -> None:
    text = """
@validator(Widget)
def check(widget): ...

hooks = Webhooks(check, endpoint=UrlEndpoint("https://127.0.0.1:9443"))
again = widgets
built = Builder("built").watch_for(Widget).complete(lambda request, ctx: None)
"""
    host = Host(choices=Choices(leader_election="lease"))
    found = program(KINDS + text, host)
    assert names(found) == [["widgets", "gadgets", "webhooks", "built"]]
    assert found.managers[0].leader_election.name == "lease"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Manager().add(widgets).run()", [["widgets"]]),
        ("manager = Manager()\nmanager.add(gadgets)", [["gadgets"]]),
        ("manager = Manager().add(gadgets)\nmanager.run()\nManager().add(widgets).run()", [["gadgets"], ["widgets"]]),
        ("if __name__ == '__main__':\n    Manager().add(widgets).run()", [["widgets", "gadgets"]]),
        ("m = Manager()\nm.build('built').watch_for(Widget).complete(lambda request: None)", [["built"]]),
    ],
)
def test_the_managers_of_a_file_are_the_program(program: Any, text: str, expected: list[list[str]]) -> None:
    assert names(program(KINDS + text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "operator_file.py: nothing to run; add a @controller"),
        ("from ostinato import Manager\nManager().run()", "or a manager with runnables"),
        (KINDS.split("@controller")[0] + "b = Builder().watch_for(Widget)", "b is a Builder: assign the result of its"),
        (KINDS + "@controller(Widget, name='gadgets')\ndef more(w): ...", "add() runnable 'gadgets' exists"),
    ],
)
def test_a_file_with_nothing_to_run_is_an_error(program: Any, text: str, message: str) -> None:
    with pytest.raises(CommandError) as failure:
        program(text)
    assert message in str(failure.value)


def test_reconciled_and_defined_kinds_have_definitions(program: Any) -> None:
    found = program(KINDS + "Manager().add(widgets).run()")
    assert definitions(found) == ["gadgets.example.dev", "widgets.example.dev"]


def test_foreign_kinds_have_definitions_only_with_all_kinds(program: Any) -> None:
    text = """
@marked(Foreign())
class Their(CustomResource, group="example.org", version="v1"):
    spec: Spec

@controller(Their, owns=[Widget])
async def theirs(each, ctx) -> None: ...
"""
    found = program(KINDS + text)
    assert definitions(found) == ["gadgets.example.dev", "widgets.example.dev"]
    assert definitions(found, all_kinds=True) == ["gadgets.example.dev", "theirs.example.org", "widgets.example.dev"]


def test_imported_kinds_have_definitions_only_if_reconciled(program: Any) -> None:
    Path("their_kinds.py").write_text(KINDS)
    found = program(
        "from ostinato import controller\nfrom their_kinds import Gadget, Widget\n"
        "@controller(Widget, owns=[Gadget])\ndef mine(widget, ctx): ..."
    )
    assert definitions(found) == ["widgets.example.dev"]


def test_all_versions_are_in_one_definition_with_their_conversion(program: Any) -> None:
    text = """
class SpecV2(Struct):
    length: int = 1

@marked(Stored())
class WidgetV2(CustomResource, group="example.dev", version="v2", kind="Widget"):
    spec: SpecV2

@converter
def up(old: Widget) -> WidgetV2: ...

@converter
def down(new: WidgetV2) -> Widget: ...

Manager().add(widgets, Webhooks(up, down, endpoint=UrlEndpoint("https://127.0.0.1:9443"))).run()
"""
    _, widget = definitions_of(program(KINDS + text))
    assert [(each["name"], each["storage"]) for each in widget["spec"]["versions"]] == [("v2", True), ("v1", False)]
    assert widget["spec"]["conversion"]["strategy"] == "Webhook"
    with pytest.raises(CommandError, match="class WidgetV2: one version must be marked"):
        definitions_of(program(KINDS + text.replace("@marked(Stored())", "")))


def test_a_front_end_in_a_module_is_found(program: Any) -> None:
    text = """
from ostinato.controllers import FrontEnd

class Hooks(FrontEnd):
    def __init__(self, name):
        self.name = name

    async def run(self, dependencies): ...

hooks = Hooks("hooks")
"""
    assert names(program(KINDS + text)) == [["widgets", "gadgets", "hooks"]]
