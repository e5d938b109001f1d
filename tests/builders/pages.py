"""The pages of the project as tests read them: fenced blocks with what stands before them, links, and names."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "schedules" / "README.md"
PAGES = (ROOT / "README.md", GUIDE, *sorted((ROOT / "docs").glob("*.md")))

_FENCED = re.compile(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$")
_FILE = re.compile(r"`([\w./-]+\.(?:py|yaml))`:\n\n\Z")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
      number: among the blocks of its language on the page, from 0.
      text: as it stands there, without the fence.
      file: the file that it is, or is a part of: `PATH`: on a line of its own before it; None where none is named.
    """

    page: Path
    language: str
    number: int
    text: str
    file: str | None

    def __str__(self) -> str:
        return f"{label(self.page)}:{self.language}{self.number}"

    @property
    def is_excerpt(self) -> bool:
        """Whether it is to be put into a file that is there."""
        return self.file is not None and (ROOT / self.file).exists()

    @property
    def is_new_file(self) -> bool:
        """Whether it is a whole file of a reader's own."""
        return self.file is not None and not self.is_excerpt


def label(page: Path) -> str:
    """A page's name in messages."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> Sequence[Block]:
    """The page's fenced blocks of one language, in order."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in _FENCED.finditer(text) if match[2] == language]
    files = [_FILE.search(text[: match.start()]) for match in found]
    return [
        Block(page, language, number, match[3], file[1] if file else None)
        for number, (match, file) in enumerate(zip(found, files, strict=True))
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def new_files(pages: Iterable[Path]) -> Mapping[str, str]:
    """Contents of the files that a reader is told to save, byte for byte."""
    found: dict[str, str] = {}
    for page in pages:
        for block in [*blocks(page, "python"), *blocks(page, "yaml")]:
            if block.is_new_file:
                # A file that two pages show is the same file.
                assert found.setdefault(block.file, block.text) == block.text, f"{block} is another {block.file}"
    return found


def write_files(pages: Iterable[Path], folder: Path) -> Sequence[Path]:
    """Saves `new_files` below `folder`, and gives their paths in there."""
    written = []
    for name, text in new_files(pages).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(Path(name))
    return written


def links(page: Path) -> Iterator[str]:
    """Targets of the page's links and pictures."""
    yield from re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """What `#` can name in a page: its headings, as GitHub writes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_words(page: Path) -> Iterator[str]:
    """What stands in backticks in the page's text."""
    yield from re.findall(r"`([^`\n]+)`", prose(page))
