"""Everything that is made from a draft atlas: tables and figures, by name, and the folder they are written to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis import canvas
from harness.analysis.atlas.confirmation import confirmation_table
from harness.analysis.atlas.cost_model import CostModel
from harness.analysis.atlas.figures import monotonicity_figure, rows_figure, winners_figure
from harness.analysis.atlas.methods import Method
from harness.analysis.atlas.monotonicity import monotonicity_table
from harness.analysis.atlas.partial_branches import partial_table
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.atlas.tables import device_table, prediction_table, simulation_table
from harness.analysis.atlas.winners import winners
from harness.analysis.table import Table
from harness.errors import UserError


@dataclass(frozen=True)
class Inputs:
    """What everything is made from.

    Attributes:
      more: methods to simulate beside the paper's.
      cost: of calls; None where nobody said.
      records: responses that it was fitted to, and is compared with; None where it was given.
    """

    simulation: Simulation
    more: Sequence[Method]
    cost: CostModel | None
    records: pd.DataFrame | None


def atlas_products(inputs: Inputs) -> Mapping[str, Callable[[], Table | Figure]]:
    """Tables and figures, not made yet."""
    simulation = inputs.simulation
    made: dict[str, Callable[[], Table | Figure]] = {
        "simulation": partial(simulation_table, simulation, inputs.more, inputs.cost),
        "monotonicity": partial(monotonicity_table, simulation),
        "monotonicity_figure": partial(monotonicity_figure, simulation),
        "partial_branches": partial(partial_table, simulation),
        "partial_branches_figure": partial(rows_figure, simulation),
        "devices": partial(device_table, simulation),
        "winners_figure": lambda: winners_figure(winners(), inputs.cost),
    }
    if inputs.records is not None:
        made["prediction"] = partial(prediction_table, simulation, inputs.records)
        made["confirmation"] = partial(confirmation_table, inputs.records)
    return made


@dataclass(frozen=True)
class Made:
    """What became of everything.

    Attributes:
      missing: names of what could not be made, with why.
    """

    tables: list[Table] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def make(inputs: Inputs, out: Path, note: Callable[[str], None]) -> Made:
    """Makes and writes everything; what cannot be made does not stop the rest.

    Args:
      note: called before each product, with its name.

    Raises:
      UserError: the folder cannot be written.
    """
    everything = Made()

    def work() -> None:
        out.mkdir(parents=True, exist_ok=True)
        for name, product in atlas_products(inputs).items():
            note(name)
            try:
                made = product()
            except UserError as error:
                everything.missing.append(f"{name}: {error}")
                continue
            if isinstance(made, Figure):
                everything.paths.extend(canvas.save(made, out, name))
                continue
            everything.tables.append(made)
            for suffix, text in ((".csv", made.csv()), (".md", made.markdown()), (".tex", made.latex())):
                everything.paths.append(out / f"{name}{suffix}")
                everything.paths[-1].write_text(text)

    try:
        canvas.styled(work)
    except OSError as error:
        raise UserError(f"out={out}: cannot be written ({error.strerror}).") from None
    return everything
