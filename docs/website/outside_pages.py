"""A hook of MkDocs: the pages of the repository's root become pages of the site.

The README is the home page. The list of documents in ``docs/index.md`` is for readers of the
repository and not on the site, which has a navigation. Links between both places are rewritten.
Other files outside ``docs/`` are no part of the site, so a link to one fails the strict build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# From a file of the repository to its place on the site.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.txt",
}
_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files of `PLACES`."""
    index = files.get_file_from_path("index.md")
    if index is not None:
        files.remove(index)
    for source, place in PLACES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites links that begin or end outside `docs/`."""
    place = page.file.src_uri
    return with_site_links(markdown, place)


def with_site_links(markdown: str, place: str) -> str:
    """The text of a page of the site, whose links are those of a file of the repository."""
    sources = {there: source for source, there in PLACES.items()}
    source = sources.get(place, f"docs/{place}")

    def on_site(link: re.Match[str]) -> str:
        opening, path, anchor, closing = link.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = PLACES.get(target, target.removeprefix("docs/"))
        relative = posixpath.relpath(there, posixpath.dirname(place) or ".")
        return f"{opening}{relative}{anchor or ''}{closing}"

    return _LINK.sub(on_site, markdown)
