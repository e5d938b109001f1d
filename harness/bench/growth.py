"""How each schedule's time grows with the context, the width, and the length of the response.

The number of accepted tokens is given (`schedules.SyntheticAcceptance`), so that all do the same work at every length.
"""

import itertools
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from matplotlib.figure import Figure

from harness.analysis.canvas import figure, legend, plot_line
from harness.analysis.style import look
from harness.analysis.table import Column, Table
from harness.bench.embedded import interleaved, load
from harness.models.language_model import LanguageModel
from harness.running.plan import Schedule
from schedules import Autoregressive, Greedy, Linear, Packed, Quadratic, Stop, SyntheticAcceptance
from schedules.call import Call, Output

CONTEXTS = (256, 1024, 4096, 16384)
REPEATED_CONTEXT = 4096  # longer ones are measured once: processing such a prompt takes twenty seconds on two cores
WIDTHS = (1, 3, 7, 15, 31, 63)
WIDEST_QUADRATIC = 15  # 272 rows; 63 would be 4,160
ITERATIONS = 12  # measured in a row for contexts and widths
LONG = 1000  # output tokens of the long response
EARLY, LATE, SPAN = 50, 950, 50  # output tokens at which iterations are compared, and how many of them
PROMPT = 64
REPEATS = 5


def schedules(width: int) -> dict[str, Schedule]:
    """All schedules at one width."""
    found: dict[str, Schedule] = {"linear": Linear(width), "packed": Packed(width)}
    if width <= WIDEST_QUADRATIC:
        found["quadratic"] = Quadratic(width)
    return found


class Aged(NamedTuple):
    """Milliseconds of a schedule's iteration early and late in a response.

    Attributes:
      at_once: as early, after a prompt that makes the context as long as late's.
    """

    schedule: str
    early: float
    late: float
    at_once: float


@dataclass(frozen=True)
class Growth:
    """Milliseconds an iteration.

    Attributes:
      by_context: [(schedule, context, ms)].
      by_width: [(schedule, width, ms)].
      by_output: of each schedule.
      grown_mib: what the process' peak memory grew by in the second half of all long responses.
    """

    by_context: Sequence[tuple[str, int, float]]
    by_width: Sequence[tuple[str, int, float]]
    by_output: Sequence[Aged]
    grown_mib: float


class _Watched:
    """A model that notes when each of its passes began."""

    def __init__(self, model):
        self._model, self.began = model, []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def evaluate(self, call: Call) -> Output:
        self.began.append(time.perf_counter())
        return self._model.evaluate(call)


def steps() -> int:
    """How often `measure` notes a measurement."""
    by_width = sum(len(schedules(width)) for width in WIDTHS)
    by_context = 4 * sum(_repeats(context) for context in CONTEXTS)
    return by_context + REPEATS * (by_width + 2 * 4)


def _repeats(context: int) -> int:
    return REPEATS if context <= REPEATED_CONTEXT else 1


def measure(note: Callable[[], None]) -> Growth:
    """Runs everything.

    Args:
      note: called once a measurement.
    """
    model = load()
    model.model.reserve(max(CONTEXTS) + LONG)
    everyone = {"autoregressive": Autoregressive(), **schedules(7)}
    by_context = [
        (name, context, ms) for context in CONTEXTS for name, ms in _medians(model, everyone, context, note).items()
    ]
    by_width = [
        (name, width, ms) for width in WIDTHS for name, ms in _medians(model, schedules(width), PROMPT, note).items()
    ]
    before = _peak_mib()
    by_output = []
    for name, one in everyone.items():
        found = interleaved(
            {
                "long": lambda _, one=one: _long(model, one, PROMPT, LONG),
                "as late": lambda _, one=one: _long(model, one, PROMPT + LATE - EARLY, EARLY + SPAN),
            },
            REPEATS,
            note,
        )
        early, late = (median(times) for times in zip(*found["long"], strict=True))
        by_output.append(Aged(name, early, late, median(times[0] for times in found["as late"])))
    return Growth(by_context, by_width, by_output, _peak_mib() - before)


def tables(growth: Growth) -> Sequence[Table]:
    """What `measure` found."""
    context = _growing(
        "context",
        "Time of an iteration by context, W = 7",
        {size: f"{size:,} tokens" for size in CONTEXTS},
        growth.by_context,
        "Milliseconds, medians of interleaved responses; the number of accepted tokens is given.",
    )
    width = _growing(
        "width",
        "Time of an iteration by width",
        {size: f"W = {size}" for size in WIDTHS},
        growth.by_width,
        "Milliseconds. Linear's iteration is two calls. Quadratic's rows grow with the square of W.",
    )
    output = Table(
        name="output",
        title=f"Time of an iteration at output token {EARLY} and {LATE}",
        columns=[
            Column("schedule", "", lambda one: one.schedule),
            Column(f"at {EARLY}, ms", "", lambda one: one.early, decimals=2),
            Column(f"at {LATE}, ms", "", lambda one: one.late, decimals=2),
            Column("ratio", "", lambda one: one.late / one.early, decimals=2),
            Column("with that context at once, ms", "", lambda one: one.at_once, decimals=2),
            Column("ratio beyond attention", "", lambda one: one.late / one.at_once, decimals=3),
        ],
        items=growth.by_output,
        notes=[
            f"The last ratio is to iterations at output token {EARLY} after a prompt that makes the context as long: "
            f"what is left is what grows with the response itself. Peak memory grew by {growth.grown_mib:.0f} MiB."
        ],
    )
    return [context, width, output]


def draw(growth: Growth) -> Figure:
    """Time of an iteration against context and width."""
    drawn = figure(height=3.0)
    panels = drawn.subplots(1, 2)
    for axes, points, label in (
        (panels[0], growth.by_context, "context, tokens"),
        (panels[1], growth.by_width, "speculative width W, tokens"),
    ):
        for name in dict.fromkeys(name for name, _, _ in points):
            own = [(x, y) for found, x, y in points if found == name]
            plot_line(axes, name, *zip(*own, strict=True))
        axes.set_xscale("log", base=2)
        axes.set_xlabel(label)
        axes.set_ylabel("ms an iteration")
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted({x for _, x, _ in points}), [f"{x:,}" for x in sorted({x for _, x, _ in points})])
    legend(drawn, [name for name in ("autoregressive", "linear", "packed", "quadratic") if look(name)], lines=True)
    return drawn


def _medians(model: LanguageModel, contestants: dict[str, Schedule], context: int, note: Callable[[], None]):
    found = interleaved(
        {
            name: lambda _, one=one: _per_iteration_ms(model, one, context, ITERATIONS)
            for name, one in contestants.items()
        },
        _repeats(context),
        note,
    )
    return {name: median(values) for name, values in found.items()}


def _per_iteration_ms(model: LanguageModel, schedule: Schedule, context: int, iterations: int) -> float:
    """Median over the iterations behind the prompt's; one token each."""
    times = _iterations(model, schedule, context, iterations + 2)
    return median(times[1:])


def _long(model: LanguageModel, schedule: Schedule, context: int, tokens: int) -> tuple[float, float]:
    """Milliseconds an iteration around the output tokens EARLY and LATE; the latter is 0 in short responses."""
    times = _iterations(model, schedule, context, tokens)
    late = times[LATE : LATE + SPAN]
    return median(times[EARLY - SPAN // 2 : EARLY + SPAN // 2]), median(late) if late else 0.0


def _iterations(model: LanguageModel, schedule: Schedule, context: int, tokens: int) -> Sequence[float]:
    """Milliseconds of each iteration but the last, one token each."""
    watched = _Watched(model.model)
    vocab = model.model.backbone.config.vocab_size
    prompt = [7 * place % (vocab // 2) for place in range(context)]
    response = schedule.decode(watched, prompt, SyntheticAcceptance(Greedy(), [1]), Stop(tokens, frozenset()))
    firsts, call = [], 0
    for iteration in response.trace:
        firsts.append(watched.began[call])
        call += iteration.calls
    return [1000 * (after - before) for before, after in itertools.pairwise(firsts)]


def _growing(
    name: str, title: str, sizes: Mapping[int, str], points: Sequence[tuple[str, int, float]], note: str
) -> Table:
    """A row for each schedule: milliseconds at each size, and the last over the first."""
    by_place = {(schedule, size): ms for schedule, size, ms in points}
    first, *_, last = sizes

    def at(size: int) -> Column:
        return Column(sizes[size], "", lambda schedule: by_place.get((schedule, size)), decimals=2)

    def growth(schedule: str) -> float | None:
        return by_place[schedule, last] / by_place[schedule, first] if (schedule, last) in by_place else None

    return Table(
        name=name,
        title=title,
        columns=[
            Column("schedule", "", lambda schedule: schedule),
            *map(at, sizes),
            Column("last / first", "", growth, decimals=2),
        ],
        items=list(dict.fromkeys(schedule for schedule, _, _ in points)),
        notes=[note],
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
