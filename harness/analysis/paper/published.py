"""The paper's numbers as data: read from results/published/, whose README says what each key means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.study import WINDOWED
from harness.errors import UserError

_PACKAGE = Path(__file__).parents[2]
PUBLISHED_DIR = next(
    folder for folder in (_PACKAGE / "published", _PACKAGE.parent / "results" / "published") if folder.is_dir()
)

Kind = Literal["exact", "range", "interval"]


@dataclass(frozen=True)
class Published:
    """One statement of the paper; see results/published/README.md."""

    id: str
    place: str
    says: str
    quantity: str
    kind: Kind
    decimals: int
    unit: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    of: int | None = None
    metric: str = ""
    method: str = ""
    key: str = ""
    baselines: Sequence[str] = ()
    models: Sequence[str] = ()
    windows: Mapping[str, int] = field(default_factory=dict)
    tasks: Sequence[str] = ()
    temperature: float | None = None
    orders: Sequence[str] = (LEFT_TO_RIGHT,)
    adapter: bool = False
    max_new_tokens: int | None = None

    def __post_init__(self):
        numbers = {"exact": ("value",), "range": ("low", "high"), "interval": ("value", "low", "high")}
        if self.kind not in numbers:
            raise ValueError(f"kind {self.kind!r}, known: {', '.join(numbers)}")
        lacking = [name for name in numbers[self.kind] if getattr(self, name) is None]
        if lacking:
            raise ValueError(f"kind {self.kind} without {', '.join(lacking)}")

    @property
    def family(self) -> str:
        """Family of the models that the statement is about."""
        return WINDOWED if self.models and self.models[0].startswith(WINDOWED) else "nemotron"

    @property
    def span(self) -> tuple[float, float]:
        """Lowest and highest number that agrees with the statement; an exact one covers what rounds to it."""
        if self.kind == "exact":
            half = 0.5 * 10**-self.decimals
            return self.value - half, self.value + half
        return self.low, self.high

    def text(self) -> str:
        """The numbers as a reader would write them."""
        sign = "+" if self.quantity in ("gain", "order_gain", "difference") else ""
        one, low, high = (
            "" if number is None else f"{number:{sign},.{self.decimals}f}"
            for number in (self.value, self.low, self.high)
        )
        if self.kind == "range":
            return f"{low} to {high} {self.unit}"
        if self.kind == "interval":
            return f"{one} [{low}, {high}] {self.unit}"
        return f"{one} of {self.of} {self.unit}" if self.of else f"{one} {self.unit}"


def read_published(folder: Path = PUBLISHED_DIR) -> Sequence[Published]:
    """All statements, file by file.

    Raises:
      UserError: no files, or an entry that does not say what it must; file and entry are named.
    """
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise UserError(f"{folder}: no published values there.")
    statements = [_published(entry, file) for file in files for entry in _entries(file)]
    ids = [statement.id for statement in statements]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise UserError(f"{folder}: ids that are used twice: {', '.join(twice)}.")
    return statements


def _entries(file: Path) -> Sequence[Any]:
    try:
        return OmegaConf.to_container(OmegaConf.load(file))["entries"]
    except (OSError, OmegaConfBaseException, KeyError, TypeError) as error:
        raise UserError(f"{file}: no list of published values ({error!r}).") from None


def _published(entry: Any, file: Path) -> Published:
    known = {one.name for one in fields(Published)}
    name = entry.get("id", "?") if isinstance(entry, dict) else entry
    try:
        unknown = sorted(entry.keys() - known)
        if unknown:
            raise ValueError(f"unknown keys {', '.join(unknown)}")
        return Published(**entry)
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: entry {name}: {error}.") from None
