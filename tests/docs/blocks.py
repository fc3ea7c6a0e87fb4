"""The code blocks of a page of the documentation, with their markers.

A marker is an HTML comment directly above a block; readers do not see it:

- `<!-- docs: skip REASON -->`: the block is not run.
- `<!-- docs: compile REASON -->`: a fragment; it is compiled only.
- `<!-- docs: background -->`: the last command keeps running; it is ready when it has printed the last line shown.
- `<!-- docs: hidden python` … `-->`: code that readers do not need to see, run in its place.
- `<!-- docs: cluster -->`, anywhere: the page has a cluster; `client`, `KUBECONFIG` and kubectl use it.

A block with `title="FILE"` is written to that file. An `output` block has the output of the block before it. The
directory of a page has a link to `examples/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = Path("docs/tutorial")  # each step goes on in the directory and the shell of the one before
RUN = frozenset({"python", "py", "sh", "bash", "shell", "console"})

Action = Literal["run", "skip", "compile", "background"]

_MARKER = re.compile(r"^\s*<!-- docs: (?P<word>[a-z]+)(?P<rest>.*)$")
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w+-]*)(?P<rest>.*)$")
# A command, but not a synopsis such as `ostinato types FILE [-o FILE]`.
_COMMAND = re.compile(r"\$ |(ostinato|kubectl|pip|make|python3?|pytest|curl|openssl|helm|docker) [^\[]*$")


class MarkupError(Exception):
    """A page has a marker or a block that cannot be understood; the message names file and line."""


@dataclass(frozen=True)
class Block:
    """A block; `line` is that of its first line of code, from 1."""

    page: str
    line: int
    language: str
    code: str
    title: str = ""
    action: Action = "run"
    reason: str = ""
    output: str | None = None  # of an `output` block that follows

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_python(self) -> bool:
        return self.language in ("python", "py")


@dataclass(frozen=True)
class Page:
    name: str
    blocks: list[Block]
    has_cluster: bool

    @property
    def shell_blocks(self) -> list[Block]:
        return [block for block in self.blocks if not block.is_python and not block.title and block.action != "skip"]


def pages() -> list[str]:
    """Return every page, as a path from the root of the repository. The steps of the tutorial are one."""
    found = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    return ["README.md", str(TUTORIAL), *sorted(str(path) for path in found if path.parent != TUTORIAL)]


def read(name: str) -> Page:
    if name != str(TUTORIAL):
        return parse((ROOT / name).read_text(encoding="utf-8"), name)
    index = (ROOT / TUTORIAL / "index.md").read_text(encoding="utf-8")
    steps = [read(str(TUTORIAL / step)) for step in re.findall(r"^\d+\. \[[^\]]+\]\(([^)]+)\)", index, re.MULTILINE)]
    return Page(name, [block for step in steps for block in step.blocks], has_cluster=False)


def parse(text: str, name: str) -> Page:
    lines = text.splitlines()
    blocks: list[Block] = []
    has_cluster = False
    action: Action = "run"
    reason = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if marker := _MARKER.match(line):
            start = at
            while "-->" not in lines[at]:
                at += 1
                if at == len(lines):
                    raise MarkupError(f"{name}:{start + 1}: the marker has no end; write -->")
            word, rest = marker["word"], marker["rest"].partition("-->")[0].strip()
            if word == "hidden":
                blocks.append(Block(name, start + 2, rest, "\n".join(lines[start + 1 : at]) + "\n"))
            elif word == "cluster":
                has_cluster = True
            elif word == "background":
                action = "background"
            elif word == "skip" or word == "compile":
                action, reason = word, rest
                if not reason:
                    raise MarkupError(f"{name}:{start + 1}: {word} needs a reason")
            else:
                raise MarkupError(f"{name}:{start + 1}: unknown marker {word!r}; see tests/docs/blocks.py")
            at += 1
            continue
        if fence := _FENCE.match(line):
            start = at + 1
            end = next((n for n in range(start, len(lines)) if lines[n].strip() == fence["fence"]), None)
            if end is None:
                raise MarkupError(f"{name}:{start}: the code block has no end")
            code = "".join(text.removeprefix(fence["indent"]) + "\n" for text in lines[start:end])
            language = fence["language"]
            title = re.search(r'title="([^"]+)"', fence["rest"])
            block = Block(name, start + 1, language, code, title[1] if title else "", action, reason)
            if language == "output":
                if not blocks or blocks[-1].output is not None:
                    raise MarkupError(f"{name}:{start}: an output block needs a block to run before it")
                blocks[-1] = _with_output(blocks[-1], code)
            elif language in RUN or title:
                blocks.append(block)
            elif not language and _COMMAND.match(code):
                raise MarkupError(f"{name}:{start}: a block with a command needs a language: console, sh, or text")
            elif action != "run":
                raise MarkupError(f"{name}:{start}: a marker above a block that is never run; remove it")
            action, reason, at = "run", "", end + 1
            continue
        if line.strip() and action != "run":
            raise MarkupError(f"{name}:{at + 1}: the marker before this line belongs directly above a block")
        at += 1
    return Page(name, blocks, has_cluster)


def _with_output(block: Block, output: str) -> Block:
    return Block(
        block.page, block.line, block.language, block.code, block.title, block.action, block.reason, output=output
    )
