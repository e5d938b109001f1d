"""The line under each figure and table that says on what, and from how much, it was made."""

from collections.abc import Iterable, Sequence

from harness.analysis.study.paired import PairedCell


def provenance(cells: Iterable[PairedCell]) -> str:
    """Device, dtype, code version and n of everything that is shown."""
    cells = list(cells)
    facts = {fact for cell in cells for fact in cell.facts}
    parts = [
        f"{name} {'; '.join(sorted(values))}"
        for name, values in (
            ("device", {fact.device for fact in facts}),
            ("dtype", {fact.dtype for fact in facts}),
            ("rotary", {fact.rotary for fact in facts if fact.rotary}),
            ("engine", {fact.engine for fact in facts if fact.engine}),
            ("code", {fact.code for fact in facts}),
        )
        if values
    ]
    caps = {cell.key.max_new_tokens for cell in cells}
    parts.append(f"cap {_span(caps)} tokens")
    parts.append(f"n = {_span({len(cell.prompt_ids) for cell in cells})} prompts a setting")
    repetitions = {round(cell.responses / len(cell.prompt_ids), 2) for cell in cells}
    if repetitions != {1}:
        parts.append(f"{_span(repetitions)} responses a prompt")
    mixed = sorted({name for cell in cells for name in _mixed(cell)})
    if mixed:
        parts.append(f"MIXED {', '.join(mixed)} within a comparison, as asked for")
    unfinished = [cell for cell in cells if cell.missing]
    if unfinished:
        recorded = sum(len(one.records) for cell in unfinished for one in cell.measured.values())
        planned = recorded + sum(cell.missing for cell in unfinished)
        parts.append(f"PARTIAL: {recorded:,} of {planned:,} responses so far")
    if any(cell.left_out or cell.skipped for cell in cells):
        parts.append("PARTIAL: prompts that not every method answered are left out")
    unscored = [cell for cell in cells if cell.is_graded and cell.scored < cell.responses]
    if unscored:
        scored, responses = (sum(getattr(cell, name) for cell in unscored) for name in ("scored", "responses"))
        parts.append(f"PARTIAL: accuracy over {scored:,} of {responses:,} responses that all methods have a verdict on")
    return " · ".join(parts)


def _mixed(cell: PairedCell) -> Sequence[str]:
    facts = list(cell.facts)
    return [name for index, name in enumerate(facts[0]._fields) if len({fact[index] for fact in facts}) > 1]


def _span(numbers: set[int] | set[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,g}" if low == high else f"{low:,g} to {high:,g}"
