"""The page of a report."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup, escape

from ansor.report.document.document import Document
from ansor.report.formatting import microseconds, milliseconds, percent, significant
from ansor.report.html.charts import charts
from ansor.version import __version__

_FILES = files("ansor.report.html") / "files"


def page(document: Document) -> str:
    """A report as HTML; texts of the document are escaped."""
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(_file),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    template: Any = environment.get_template("page.html.j2")
    text: str = template.render(
        document=document,
        charts=charts(document),
        limits=_limits(document),
        shares={row.name: row.share for row in document.functions},
        style=_file("page.css"),
        script=_file("page.js"),
        vega=_vega(),
        version=__version__,
    )
    return text


def _file(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which cannot end its element."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])  # of the specifications
    bundle: Callable[..., str] = vl_convert.javascript_bundle
    return bundle(vl_version=version).replace("</script", "<\\/script")


def _limits(document: Document) -> list[str]:
    """The limits of the machine as text."""
    machine, found = document.machine, list[str]()
    if machine is not None and machine.peak_flops is not None:
        found.append(f"{machine.peak_flops / 1e9:.0f} GFLOP/s in float32")
    if machine is not None and machine.memory_bandwidth is not None:
        found.append(f"{machine.memory_bandwidth / 1e9:.1f} GB/s of memory")
    return found


def _code(text: str) -> Markup:
    """A text whose parts between grave accents are code."""
    parts = str(escape(text)).split("`")
    return Markup("".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts)))


_FILTERS: dict[str, Callable[..., Any]] = {
    "ms": milliseconds,
    "us": microseconds,
    "percent": lambda share: percent(share, 1.0),
    "number": lambda value: "-" if value is None else significant(value),
    "breakable": lambda name: Markup("_<wbr>").join(str(name).split("_")),
    "flat": lambda text: " ".join(str(text).split()),
    "code": _code,
}
