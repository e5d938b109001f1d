"""Wall time per response: its spread."""

from functools import cached_property

from harness.analysis.measures.distributions import PERCENTILES, wall_percentiles
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import (
    METHOD,
    MODEL,
    ORDER,
    RESPONSES,
    TASK_AND_WINDOW,
    TEMPERATURE,
    MethodLine,
    lines_of,
    measured,
)


class SpreadLine(MethodLine):
    """With the percentiles of its wall times."""

    @cached_property
    def seconds(self) -> dict[int, float]:
        """Of a response, by percentile."""
        return dict(zip(PERCENTILES, wall_percentiles(self.cell, self.method), strict=True))


def _percentile(rank: int) -> Column:
    return Column(f"p{rank}", "s", lambda line: line.seconds[rank], decimals=3)


# Of a `SpreadLine`.
SPREAD = (
    MODEL,
    TASK_AND_WINDOW,
    TEMPERATURE,
    ORDER,
    METHOD,
    RESPONSES,
    measured("Mean", "s", "wall_per_response_s", decimals=3),
    *map(_percentile, PERCENTILES),
)


def wall_table(study: Study) -> Table:
    """Wall time per response: its spread, for every main cell and method."""
    if not study.main:
        raise NotMeasured("no records")
    return Table(
        name="wall_percentiles",
        title="Wall time per response",
        columns=SPREAD,
        items=[line for cell in study.main for line in lines_of(cell, SpreadLine)],
        notes=["Percentiles over responses, linearly interpolated.", provenance(study.main)],
        grouped_by=4,
    )
