"""One document in all formats; texts of files cannot break them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from reports import DOCUMENT, NASTY, with_texts

from ansor.report.document.document import Document
from ansor.report.html.charts import charts
from ansor.report.html.page import page
from ansor.report.markdown import escaped, markdown
from ansor.report.write import json_text


class Elements(HTMLParser):
    """Counts elements and collects the texts outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.texts = ""
        self._is_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self._is_script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False

    def handle_data(self, data: str) -> None:
        if not self._is_script:
            self.texts += data


def test_nasty_texts_are_shown_and_make_no_element() -> None:
    plain, nasty = (Elements(page(with_texts(DOCUMENT, text))) for text in ("x", NASTY))
    assert nasty.tags == plain.tags
    for text in ("network", "fused_conv2d", "no such", "y <- x", "32 KiB", "all of it"):
        assert text + NASTY[:20] in nasty.texts, text


def test_the_page_names_no_address() -> None:
    text = page(DOCUMENT)
    parser = Elements(text)
    assert not {"link", "img", "iframe"} & parser.tags.keys()
    assert "src=" not in text.split("<script")[0]
    assert "default-src 'none'" in text


def test_specifications_contain_every_row() -> None:
    found = charts(DOCUMENT)
    rows = {name: _rows(spec) for name, spec in found.items()}
    assert rows == {
        "comparison": 2,  # without the untuned network
        "functions": 2,  # with a latency
        "roofline": 2 + 2 + 2 + 2,  # and the ends and the names of two limits
        "network_curve": 3,
        "function_curves": 4,
        "predictions": 2 + 2,  # and the ends of the diagonal
        "failures": 2,
    }


def _rows(spec: object) -> int:
    """Rows of all data in a specification."""
    if isinstance(spec, dict):
        here = len(spec["values"]) if isinstance(spec.get("values"), list) else 0
        return here + sum(_rows(each) for each in spec.values())
    return sum(map(_rows, spec)) if isinstance(spec, list) else 0


def test_an_empty_document_has_a_page_without_plots() -> None:
    empty = Document("empty", absent={"machine": "Run `ansor tune` <first>."})
    assert charts(empty) == {}
    text = page(empty)
    assert "Run <code>ansor tune</code> &lt;first&gt;." in text
    assert 'class="chart"' not in text


def test_long_lists_of_predictions_are_thinned_out() -> None:
    many = replace(DOCUMENT, predictions=DOCUMENT.predictions * 5000)
    assert 500 < _rows(charts(many)["predictions"]) <= 1002


def test_json_contains_the_document() -> None:
    found = json.loads(json_text(DOCUMENT))
    assert found.pop("format") == "ansor-report"
    assert found.pop("version") == 1
    assert found == json.loads(json.dumps(asdict(DOCUMENT)))


@pytest.mark.parametrize("text", ["", NASTY], ids=["plain", "nasty"])
def test_markdown_has_the_tables_of_the_document(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(with_texts(DOCUMENT, text)))
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows == (1 + 3) + (1 + 3) + (1 + 2) + (1 + 2)
    raw = [t.content for t in tokens if t.type == "html_block"]
    assert all(block.startswith(("<details>", "</details>")) for block in raw)
    assert "<script>" not in "".join(raw)


def test_escaped_text_means_itself() -> None:
    html = MarkdownIt("commonmark", {"html": True}).renderInline(escaped(NASTY))
    assert Elements(html).tags == {}
    assert Elements(html).texts == NASTY
