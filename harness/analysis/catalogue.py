"""Everything that is made from records, by name, and the folder it is written to.

What cannot be made says why in the index; it never stops the rest.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from harness.analysis import canvas
from harness.analysis.figures import distributions
from harness.analysis.figures.calls import calls_figure
from harness.analysis.figures.iteration import iteration_figure
from harness.analysis.figures.ratios import ratio_figure
from harness.analysis.figures.time_shares import time_figure
from harness.analysis.paper.comparison import comparison_table
from harness.analysis.paper.published import read_published
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import Study
from harness.analysis.table import Table
from harness.analysis.tables import absolute as measurement_tables
from harness.analysis.tables import cost as cost_tables
from harness.analysis.tables import paired as paired_tables
from harness.analysis.tables.divergence import divergence_table, trajectory_table
from harness.analysis.tables.roofline import roofline
from harness.analysis.tables.wall_time import wall_table
from harness.errors import UserError, unknown

INDEX = "index.md"


@dataclass(frozen=True)
class Product:
    """A figure or table, not made yet.

    Attributes:
      what: for the index.
    """

    name: str
    what: str
    make: Callable[[Study], Figure | Table]


@dataclass(frozen=True)
class Made:
    """What became of a product: its files, or why there are none."""

    product: Product
    files: Sequence[Path]
    missing: str = ""


def products(study: Study) -> Mapping[str, Product]:
    """All products; temperatures other than the paper's 0 and 1 get figures and tables of their own."""
    temperatures = {cell.key.temperature for cell in study.main}
    sampled = sorted(temperatures - {0.0, 1.0})
    made = [
        Product("figure1", "calls and rows of an iteration", calls_figure),
        Product("figure2", "one iteration of Packed-SS, from a trace", iteration_figure),
        Product("figure3", "greedy decoding: ratios to Linear-SS", partial(ratio_figure, temperature=0.0)),
        Product("figure4", "temperature 1: ratios to Linear-SS", partial(ratio_figure, temperature=1.0)),
        *(
            Product(f"figure4_t{t:g}", f"temperature {t:g}: ratios", partial(ratio_figure, temperature=t))
            for t in sampled
        ),
        Product("figure5", "model and non-model time", time_figure),
        Product("table02", "execution cost of an iteration, by formula", cost_tables.table2),
        Product("table02_measured", "execution cost of an iteration, as recorded", cost_tables.table2_measured),
        Product("table03", "block-size probe", cost_tables.table3),
        Product("table04", "proposal-only adapter", measurement_tables.table4),
        Product("table05", "model time of an iteration with an adapter", cost_tables.table5),
        Product("table06", "absolute measurements, temperature 0", measurement_tables.table6),
        Product("table07", "absolute measurements, temperature 1", measurement_tables.table7),
        *_sampled("table07", measurement_tables.table7, sampled),
        Product("table08", "SetDLM absolute measurements", measurement_tables.table8),
        Product("table09", "SetDLM by verification order", measurement_tables.table9),
        Product("table10", "paired SetDLM comparisons", paired_tables.table10),
        Product("table11", "paired accuracy differences", paired_tables.table11),
        Product("table12", "paired comparisons, temperature 0", paired_tables.table12),
        Product("table13", "paired comparisons, temperature 1", paired_tables.table13),
        *_sampled("table13", paired_tables.table13, sampled),
        Product("trajectories", "greedy outputs that differ", trajectory_table),
        Product("divergences", "first differences between greedy outputs", divergence_table),
        Product("wall_percentiles", "spread of wall time per response", wall_table),
        Product("roofline", "time of a forward pass beside the memory's limit", roofline),
        Product("comparison", "published values and ours", _comparison),
    ]
    for temperature in sorted(temperatures | {0.0}):
        made += _distributions(temperature)
    return {product.name: product for product in made}


def make(study: Study, folder: Path, only: Collection[str] = ()) -> Sequence[Made]:
    """Makes all products and the index of what was made and what is missing; or those named, and leaves the rest.

    Raises:
      UserError: an unknown name, a folder that cannot be written, or nothing could be made.
    """
    known = products(study)
    for name in only:
        if name not in known:
            raise unknown("only", name, known)
    chosen = [product for name, product in known.items() if not only or name in only]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = canvas.styled(lambda: [_make(product, study, folder) for product in chosen])
        if not only:
            (folder / INDEX).write_text(_index(made, study.notices))
    except OSError as error:
        raise UserError(f"out={folder}: cannot be written ({error.strerror}).") from None
    if not any(one.files for one in made):
        reasons = "; ".join(f"{one.product.name}: {one.missing}" for one in made[:5])
        raise UserError(f"nothing could be made: {reasons}. Run something first, as in python -m harness run.")
    return made


def attempt(product: Product, study: Study) -> Figure | Table | str:
    """The product, or why it cannot be made."""
    try:
        return product.make(study)
    except (NotMeasured, UserError) as error:
        return str(error)


def _make(product: Product, study: Study, folder: Path) -> Made:
    suffixes = (".png", ".pdf", ".csv", ".md", ".tex")
    for suffix in suffixes:
        # What an earlier call made from other records must not pass for this one's.
        (folder / f"{product.name}{suffix}").unlink(missing_ok=True)
    made = attempt(product, study)
    if isinstance(made, str):
        return Made(product, [], made)
    if isinstance(made, Figure):
        return Made(product, canvas.save(made, folder, product.name))
    paths = []
    for suffix, text in ((".csv", made.csv()), (".md", made.markdown()), (".tex", made.latex())):
        paths.append(folder / f"{product.name}{suffix}")
        paths[-1].write_text(text)
    return Made(product, paths)


def _index(made: Sequence[Made], notices: Sequence[str]) -> str:
    lines = ["# Figures and tables", "", "| Name | What | Files |", "| --- | --- | --- |"]
    for one in made:
        files = ", ".join(f"[{path.suffix[1:]}]({path.name})" for path in one.files) or f"missing: {one.missing}"
        lines.append(f"| {one.product.name} | {one.product.what} | {files} |")
    if notices:
        lines += ["", "Left out or partial:", "", *(f"- {notice}" for notice in notices)]
    return "\n".join(lines) + "\n"


def _comparison(study: Study) -> Table:
    return comparison_table(study, read_published())


def _sampled(name: str, make: Callable[..., Table], temperatures: Sequence[float]) -> Sequence[Product]:
    return [
        Product(f"{name}_t{t:g}", f"the same at temperature {t:g}", partial(make, temperature=t)) for t in temperatures
    ]


def _distributions(temperature: float) -> Sequence[Product]:
    kinds = (
        ("acceptance_length", "tokens emitted per iteration", distributions.acceptance_length_figure),
        ("acceptance_rate", "acceptance rate by draft position", distributions.acceptance_rate_figure),
        ("rate", "tokens/s over output position", distributions.rate_figure),
    )
    return [
        Product(
            f"{name}_t{temperature:g}", f"{what}, temperature {temperature:g}", partial(make, temperature=temperature)
        )
        for name, what, make in kinds
    ]
