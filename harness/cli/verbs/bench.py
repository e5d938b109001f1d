"""usage: python -m harness bench [PART ...] [out=DIR] [repeats=N]

Measures the harness itself on the embedded model, as ratios within one run, medians of interleaved repeats:

  host      each schedule's time outside the model: microseconds, tensor operations, transfers per iteration
  peers     tokens/s beside transformers' generate and assisted generation, with every engine that runs here
  roofline  where the time of a forward pass goes, beside the limit of the memory's bandwidth
  growth    how time grows with context, width and length of the response
  adapters  what the proposal-only adapter costs in its two modes
  startup   from the command to the first record

All parts by default, in about fifteen minutes; nothing else should run meanwhile. Prints tables and writes them to DIR
(results/bench): bench.md, one CSV a table, growth.png. Absolute times mean nothing beyond this machine and moment.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from harness.analysis.canvas import save, styled
from harness.analysis.table import Table
from harness.bench import adapters, growth, host, peers, roofline, startup
from harness.cli.arguments import Takes, Words
from harness.cli.keys import Integer, PathKey
from harness.errors import UserError
from harness.records.manifest import code_version
from harness.records.places import RESULTS
from harness.system import machine

Note = Callable[[], None]


@dataclass(frozen=True)
class Part:
    """One part of the bench: how many measurements it takes, and how its tables are made."""

    steps: Callable[[int], int]
    measure: Callable[[int, Note, Path], Sequence[Table]]


def main(arguments: Sequence[str]) -> int:
    """Measures, prints and writes."""
    given = TAKES.read(arguments)
    folder = given["out"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"out={folder}: cannot be written ({error.strerror}).") from None
    tables = _measured(given.words or list(PARTS), given["repeats"], folder)
    print("\n\n".join(table.text() for table in tables))
    print(f"\nwritten to {folder}")
    return 0


def _measured(names: Sequence[str], repeats: int, folder: Path) -> Sequence[Table]:
    total = sum(PARTS[name].steps(repeats) for name in names)
    tables: list[Table] = []
    with tqdm(total=total, unit="measurement", file=sys.stderr, dynamic_ncols=True) as bar:
        for name in names:
            bar.set_description(name)
            tables += PARTS[name].measure(repeats, bar.update, folder)
            _write(tables, folder)
    return tables


def _growth(note: Note, folder: Path) -> Sequence[Table]:
    found = growth.measure(note)
    styled(lambda: save(growth.draw(found), folder, "growth"))
    return growth.tables(found)


def _write(tables: Sequence[Table], folder: Path) -> None:
    here, code = machine.description(), code_version()
    about = ", ".join(f"{key} {here[key]}" for key in ("system", "processor", "accelerator") if here[key])
    version = f"{code.get('commit') or code['version']}{' with changes' if code.get('changed') else ''}"
    lines = ["# Bench", "", f"{about}; code {version}.", ""]
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.csv())
        lines += [table.markdown(), ""]
    (folder / "bench.md").write_text("\n".join(lines))


PARTS = {
    "host": Part(host.steps, lambda repeats, note, _: [host.host_part(repeats, note)]),
    "peers": Part(peers.steps, lambda repeats, note, _: [peers.peers_part(repeats, note)]),
    "roofline": Part(lambda _: roofline.steps(), lambda _, note, __: [roofline.roofline_part(note)]),
    "growth": Part(lambda _: growth.steps(), lambda _, note, folder: _growth(note, folder)),
    "adapters": Part(adapters.steps, lambda repeats, note, _: [adapters.adapters_part(repeats, note)]),
    "startup": Part(lambda _: startup.steps(), lambda _, note, __: [startup.startup_part(note)]),
}
TAKES = Takes(
    "bench",
    Words(are_paths=False, what="part of the bench", known=PARTS),
    (PathKey("out", RESULTS / "bench"), Integer("repeats", 24, least=2, example="24")),
)
