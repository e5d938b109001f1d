"""How far a forward pass is from what the memory's bandwidth would allow, for every method of every cell.

At batch size 1 a pass reads all weights for a few rows. An A100 would read 8B in bfloat16 in about 8 ms, where the
paper's calls take about 28 (table 5). `python -m harness bench roofline` says which parts of a pass the rest goes to.
"""

from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.provenance import provenance
from harness.analysis.study.runs import Reads
from harness.analysis.study.study import Study
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import (
    METHOD,
    MODEL,
    TASK,
    TEMPERATURE,
    TIME_PER_NFE,
    WIDTH,
    MethodLine,
    lines_of,
)


class PassLine(MethodLine):
    """With what a forward pass takes, and would take at the memory's bandwidth."""

    @property
    def reads(self) -> Reads | None:
        """What a pass has to read; None where no manifest says."""
        return self.cell.measured[self.method].reads

    @property
    def rows_per_nfe(self) -> float:
        """Ratio of totals."""
        return self.cell.total("rows", self.method) / self.cell.total("nfe", self.method)

    @property
    def wall_ms(self) -> float:
        """Of a pass and what is done around it."""
        return self.value("time_per_nfe_s", 1000)

    @property
    def model_ms(self) -> float:
        """Of a pass alone."""
        return self.value("model_per_nfe_s", 1000)

    @property
    def limit_ms(self) -> float | None:
        """To read weights and cache once."""
        # Half of the response is there at its middle call.
        totals = (self.cell.total("prompt_tokens", self.method), self.cell.total("tokens", self.method) / 2)
        return self.reads and self.reads.ms(sum(totals) / self.cell.responses)


# Of a `PassLine`.
PASSES = (
    MODEL,
    TASK,
    TEMPERATURE,
    METHOD,
    WIDTH,
    Column("Rows/NFE", "", lambda line: line.rows_per_nfe, decimals=1),
    TIME_PER_NFE,
    Column("Host", "ms", lambda line: line.wall_ms - line.model_ms, decimals=2),
    Column("Model", "ms", lambda line: line.model_ms, decimals=2),
    Column("Limit", "ms", lambda line: line.limit_ms, decimals=3),
    Column("Model / limit", "", lambda line: line.limit_ms and line.model_ms / line.limit_ms, decimals=1),
    Column("Memory", "GB/s", lambda line: line.reads and line.reads.memory_gb_s, decimals=1, is_detail=True),
)


def roofline(study: Study) -> Table:
    """Time per NFE, its model and host shares, and the limit."""
    cells = [s for s in study.main if any(one.reads for one in s.measured.values())]
    if not cells:
        raise NotMeasured("no records whose manifest says what the device's memory delivers")
    return Table(
        name="roofline",
        title="Time of a forward pass beside the limit of the memory's bandwidth",
        columns=PASSES,
        items=[line for cell in cells for line in lines_of(cell, PassLine)],
        notes=[
            "Limit: all weights, and the cache at the middle of the response, read once at the bandwidth of copying, "
            "measured when the run was started. Models that fit a processor's caches may be faster. The prompt's call "
            "is one of those averaged.",
            provenance(cells),
        ],
        grouped_by=3,
    )
