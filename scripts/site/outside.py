"""Links from the documentation to files of the repository outside `docs/`: each such file becomes a page.

`[the example](../../examples/widget.py)` leads to the file on a code host, and to a page with its text on the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "source"
LANGUAGES = {
    ".py": "python",
    ".go": "go",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
    ".sh": "sh",
}

_LINK = re.compile(r"\]\((?P<target>[^)#\s:]+?)/?(?P<anchor>#[^)\s]*)?\)")
_BLOCK = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def page_of(path: str) -> str:
    """Return the page of the site that shows a file or directory of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{FOLDER}/{path}" if path.endswith(".md") else f"{FOLDER}/{path}.md"


def location_of(page: str) -> str:
    """Return where the text of a page is in the repository, for its relative links."""
    if not page.startswith(f"{FOLDER}/"):
        return f"docs/{page}"
    path = page.removeprefix(f"{FOLDER}/")
    source = path if (ROOT / path).exists() else path.removesuffix(".md")
    return f"{source}/README.md" if (ROOT / source).is_dir() else source


def rewritten(markdown: str, page: str) -> tuple[str, list[str]]:
    """Return the text of a page with links to pages of the site, and the files outside `docs/` to which it links."""
    found: list[str] = []

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(location_of(page)), match["target"]))
        if path.startswith("..") or not (ROOT / path).exists():
            return match[0]
        if not path.startswith("docs/"):
            found.append(path)
        return f"]({posixpath.relpath(page_of(path), posixpath.dirname(page) or '.')}{match['anchor'] or ''})"

    parts, at = "", 0
    for block in _BLOCK.finditer(markdown):
        parts += _LINK.sub(replace, markdown[at : block.start()]) + block[0]
        at = block.end()
    return parts + _LINK.sub(replace, markdown[at:]), found


def text_of(path: str) -> str:
    """Return the page about a file: its text; or about a directory: its README, and the text of each file."""
    file = ROOT / path
    if file.is_dir():
        readme = file / "README.md"
        head = readme.read_text(encoding="utf-8") if readme.exists() else f"# {path}\n"
        files = sorted(each for each in file.rglob("*") if each.suffix in LANGUAGES and "__pycache__" not in each.parts)
        return head + "".join(f"\n## {each.relative_to(file)}\n\n{_block(each)}" for each in files)
    if path.endswith(".md"):
        return file.read_text(encoding="utf-8")
    return f"# {path}\n\n{_block(file)}"


def _block(file: Path) -> str:
    return f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(encoding='utf-8').rstrip()}\n````\n"
