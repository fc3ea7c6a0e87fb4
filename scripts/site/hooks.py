"""What MkDocs calls: navigation from the index pages, generated reference pages, pages about linked files."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))  # MkDocs loads this file, not a package

import tables
from api_pages import MODULES, module_page, page_name
from navigation import navigation
from outside import page_of, rewritten, text_of


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation(Path(config.docs_dir))
    return config


logger = logging.getLogger("mkdocs.hooks.site")  # a warning fails a strict build
LOADED = re.compile(r"""(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref)=["']?((?:https?:)?//[^"' >]+)""")
GENERATED = {
    "reference/commands.md": tables.commands_page,
    "reference/metrics.md": tables.metrics_page,
    "reference/configuration.md": tables.configuration_page,
    "reference/errors.md": tables.errors_page,
    "reference/python/index.md": tables.index_page,
}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for name, make in GENERATED.items():
        files.append(File.generated(config, name, content=make()))
    for module in MODULES:
        files.append(File.generated(config, page_name(module), content=module_page(module)))
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    made: set[str] = set()
    while texts:
        page, text = texts.popitem()
        for path in rewritten(text, page)[1]:
            if path in made:
                continue
            made.add(path)
            texts[page_of(path)] = content = text_of(path)
            files.append(File.generated(config, page_of(path), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    del config, files
    return rewritten(markdown, page.file.src_uri)[0]


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Report what a browser would load from elsewhere; links are not loaded."""
    del config
    for address in LOADED.findall(output):
        logger.warning("%s loads %s; the site must load nothing from elsewhere", page.file.src_uri, address)
    return output
