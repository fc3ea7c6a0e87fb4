"""What MkDocs calls: navigation from the index pages, generated reference pages, pages about linked files."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent))  # MkDocs loads this file, not a package

from navigation import navigation
from outside import page_of, rewritten, text_of


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation(Path(config.docs_dir))
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
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
