"""How a page is read, and that mistakes in it are reported with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import MarkupError, parse
from tests.docs.running import run_page
from tests.docs.shell import ShellError, commands


def test_titles_markers_hidden_code_and_outputs_are_read() -> None:
    page = parse(
        '<!-- docs: cluster -->\n```python title="a.py"\nx = 1\n```\n\n<!-- docs: hidden python\ny = 2\n-->\n'
        "<!-- docs: skip needs a cloud -->\n```sh\nrm\n```\n```python\nprint(1)\n```\n```output\n1\n```\n"
        "```\ndrawing\n```\n",
        "p.md",
    )
    assert page.has_cluster
    written, hidden, skipped, run = page.blocks
    assert (written.title, written.place, written.code) == ("a.py", "p.md:3", "x = 1\n")
    assert (hidden.language, hidden.code) == ("python", "y = 2\n")
    assert (skipped.action, skipped.reason) == ("skip", "needs a cloud")
    assert run.output == "1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- docs: skip -->\n```sh\nls\n```", "p.md:1: skip needs a reason"),
        ("<!-- docs: jump -->", "p.md:1: unknown marker 'jump'"),
        ("```sh\nls", "p.md:1: the code block has no end"),
        ("```\n$ ls\n```", "p.md:1: a block with a command needs a language"),
        ("<!-- docs: background -->\ntext", "p.md:2: the marker before this line belongs directly above a block"),
    ],
)
def test_mistakes_are_reported(text: str, message: str) -> None:
    with pytest.raises(MarkupError) as raised:
        parse(text, "p.md")
    assert str(raised.value).startswith(message)


def test_commands_are_separated_from_their_output() -> None:
    first, second = commands("$ cat <<E\n> text\n> E\ntext\n$ true\n")
    assert (first.text, first.output) == ("cat <<E\ntext\nE", "text\n")
    assert (second.text, second.output) == ("true", "")


def nothing() -> Path:
    raise AssertionError("no block uses it")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("```sh\nfalse\ntrue\n```", ShellError, "p.md:2: false"),
        ("```console\n$ false\n```", ShellError, "p.md:2: false"),
        ("```console\n$ echo one\ntwo\n```", ShellError, "two"),
        ("```python\nprint(1)\n```\n```output\n2\n```", AssertionError, "p.md:2: the page shows"),
        ('```python title="a.py"\n```', MarkupError, "p.md:2: no later block uses a.py"),
        ('```text title="../a"\n```', MarkupError, "leads out of the page's directory"),
    ],
)
def test_a_page_that_does_not_do_what_it_says_fails(
    text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as raised:
        run_page(parse(text, "p.md"), tmp_path, nothing, nothing)
    assert message in str(raised.value)


def test_variables_and_directories_hold_to_the_end_of_the_page(tmp_path: Path) -> None:
    text = "```sh\nmkdir a\ncd a\nexport x=1\n```\n\n```console\n$ echo $x $(basename $PWD)\n1 a\n```\n"
    run_page(parse(text, "p.md"), tmp_path, nothing, nothing)


def test_a_program_in_the_background_is_awaited_and_ended(tmp_path: Path) -> None:
    command = "python -c 'import time; print(\"up\", flush=True); time.sleep(900)'"
    run_page(
        parse(f"<!-- docs: background -->\n```console\n$ {command}\nup\n```\n", "p.md"), tmp_path, nothing, nothing
    )
