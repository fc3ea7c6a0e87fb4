"""Mistakes in decorators and functions, each with one message that says what to write."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import on
from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load
from ostinato.cli.program.program import program_of
from ostinato.frontends.handlers.operator import Handlers
from ostinato.manager.hosting import Host


def wrong_argument() -> None:
    handlers = Handlers("test")

    @on.create("sites", registry=handlers)
    def create(spek: Any) -> None: ...

    handlers.make()


def same_id() -> None:
    handlers = Handlers("test")
    for number in (1, 2):

        @on.create("sites", registry=handlers)
        def create(number: int = number) -> None: ...

    handlers.make()


def positional() -> None:
    handlers = Handlers("test")

    @on.create("sites", registry=handlers)
    def create(spec: Any, /) -> None: ...

    handlers.make()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (wrong_argument, "'spek' is not an argument of create handlers; did you mean spec?"),
        (same_id, "two create handlers have the id 'create'; rename the function or give one of them id="),
        (positional, "arguments are passed by name"),
        (lambda: on.create()(print), "a handler needs a kind"),
        (lambda: on.create(lambda: None), r"@on.create needs arguments; write @on.create\(...\) above def <lambda>"),
        (lambda: on.create("sites", retry=5), "unknown option 'retry'; options are "),
        (lambda: on.field("sites"), r'needs a field; write @on.field\(Site, field="spec.text"\)'),
        (lambda: on.create("sites", errors="permanent", registry=Handlers())(print), "is not an ErrorsMode"),
        (lambda: on.create("sites", timeout=-1, registry=Handlers())(print), "timeout: -1 is not a number of seconds"),
        (lambda: on.create("sites", retries=1.5, registry=Handlers())(print), "retries: 1.5 is not a number"),
        (lambda: on.subhandler(id="x"), "sub-handlers can be registered only in a"),
        (lambda: on.handlers(types.ModuleType("empty")), "module empty has no handlers"),
        (on.handlers, "needs a module"),
        (lambda: Handlers("!!"), "'!!' is not a name of an operator"),
    ],
)
def test_a_mistake_is_reported_with_what_to_write(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, LookupError, RuntimeError), match=message):
        mistake()


def test_handlers_of_imported_modules_belong_to_the_program(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part_of_handlers.py").write_text("from ostinato import on\n@on.create('sites')\ndef made(**_): ...\n")
    main = tmp_path / "sites_operator.py"
    main.write_text("import part_of_handlers\nfrom ostinato import on\n@on.delete('sites')\ndef gone(**_): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    host = Host()
    program = program_of([load(find(str(main)), host)], host)
    (found,) = program.runnables
    assert found.name == "sites-operator"
    assert [each.id for each in found.handlers] == ["made", "gone"]


def test_the_command_reports_a_wrong_handler_with_its_line(tmp_path: Any) -> None:
    main = tmp_path / "wrong_sites.py"
    main.write_text("from ostinato import on\n@on.create('sites')\ndef made(spek): ...\n")
    host = Host()
    module = load(find(str(main)), host)
    with pytest.raises(CommandError, match=r"wrong_sites.py:2: made: 'spek' is not an argument"):
        program_of([module], host)
