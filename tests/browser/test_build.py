"""The built page is that of its sources: reproducible, without markup from strings, without addresses of registries."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
ASSETS = ROOT / "src" / "ostinato" / "page" / "assets"
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function")


def test_no_source_makes_markup_or_code_from_a_string() -> None:
    sources = [path for path in (WEB / "src").rglob("*") if path.suffix in {".ts", ".tsx"}]
    assert len(sources) > 20
    assert [str(path) for path in sources if MARKUP.search(path.read_text())] == []


def test_the_document_has_no_inline_script_or_style() -> None:
    document = (ASSETS / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", document) == []


def test_no_asset_asks_another_host() -> None:
    for path in ASSETS.iterdir():
        if path.name in {"LICENSES.txt", "shell.js"}:  # xterm names web sites in messages
            continue
        found = set(re.findall(r"https?://[\w.-]+", path.read_text()))
        assert found <= {"http://www.w3.org"}, path.name  # names of XML


def test_the_lock_file_names_no_registry() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert all("integrity" in entry for name, entry in packages.items() if name)


def test_the_assets_are_built_from_the_sources_byte_for_byte(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    install = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, capture_output=True, text=True, check=False
    )
    if install.returncode:
        pytest.skip(f"npm ci failed: {install.stderr[-200:]}")
    subprocess.run(["npm", "run", "build", "--", str(tmp_path / "assets")], cwd=copy, check=True, capture_output=True)
    built = {path.name: path.read_bytes() for path in (tmp_path / "assets").iterdir()}
    assert built == {path.name: path.read_bytes() for path in ASSETS.iterdir()}
