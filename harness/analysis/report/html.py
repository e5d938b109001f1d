"""Fills the template: one file that needs no network, with styles, script and images inside."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.analysis.report.pages import items_of, pages_of
from harness.analysis.study.study import Study
from harness.analysis.trace_grid import STATES

PACKAGE = "harness.analysis.report"


def report(study: Study) -> str:
    """The report as the text of an HTML file; the same bytes for the same records."""
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    items = items_of(study)
    return environment.get_template("report.html").render(
        style=_asset("report.css"),
        script=_asset("report.js"),
        figures=[item for item in items if item.image],
        tables=[item for item in items if item.sheet],
        missing=[item for item in items if item.missing],
        pages=pages_of(study),
        runs=study.runs,
        notices=study.notices,
        states=STATES,
    )


def _asset(name: str) -> Markup:
    return Markup((files(PACKAGE) / "templates" / name).read_text())
