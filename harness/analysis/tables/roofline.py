"""How far a forward pass is from what the memory's bandwidth would allow, for every method of every cell.

At batch size 1 a pass reads all weights for a few rows. An A100 would read 8B in bfloat16 in about 8 ms, where the
paper's calls take about 28 (table 5). `python -m harness bench roofline` says which parts of a pass the rest goes to.
"""

from collections.abc import Sequence

from harness.analysis.study.grid import NotMeasured, methods_in_order, place_of
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.table import Column, Entry, Number, Table


def roofline(study: Study) -> Table:
    """Time per NFE, its model and host shares, and the limit."""
    cells = [s for s in study.main if any(one.reads for one in s.measured.values())]
    if not cells:
        raise NotMeasured("no records whose manifest says what the device's memory delivers")
    rows: list[Sequence[Entry]] = []
    for cell in cells:
        for method in methods_in_order(cell.methods):
            reads = cell.measured[method].reads
            # Half of the response is there at its middle call.
            totals = (cell.total("prompt_tokens", method), cell.total("tokens", method) / 2)
            context = sum(totals) / cell.responses
            limit_ms = reads and reads.ms(context)
            wall_ms = 1000 * cell.value("time_per_nfe_s", method)
            model_ms = 1000 * cell.value("model_per_nfe_s", method)
            rows.append(
                (
                    *place_of(cell, method),
                    Number(method.width or None),
                    Number(cell.total("rows", method) / cell.total("nfe", method), 1),
                    Number(wall_ms, 2),
                    Number(wall_ms - model_ms, 2),
                    Number(model_ms, 2),
                    Number(limit_ms, 3),
                    Number(limit_ms and model_ms / limit_ms, 1),
                    Number(reads and reads.memory_gb_s, 1),
                )
            )
    names = ("Model", "Task", "T", "Method", "W", "Rows/NFE", "Time/NFE (ms)", "Host (ms)", "Model (ms)", "Limit (ms)")
    return Table(
        name="roofline",
        title="Time of a forward pass beside the limit of the memory's bandwidth",
        columns=[*(Column(name) for name in (*names, "Model / limit")), Column("Memory (GB/s)", is_detail=True)],
        rows=rows,
        notes=[
            "Limit: all weights, and the cache at the middle of the response, read once at the bandwidth of copying, "
            "measured when the run was started. Models that fit a processor's caches may be faster. The prompt's call "
            "is one of those averaged.",
            provenance(cells),
        ],
        grouped_by=3,
    )
