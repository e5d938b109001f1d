"""Where a checkpoint's files come from: this package, a folder, the hub's cache, or the hub.

Finding a source fetches its small files only (configs, tokenizer), so that everything can be refused before gigabytes
travel; `fetched` brings the rest. What came from the hub is known by its commit, whatever revision was asked for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from harness.errors import UserError
from harness.system.hub import out_of_reach

EMBEDDED = Path(__file__).parents[1] / "embedded"
SMALL_FILES = ("*.json", "*.jinja", "*.txt")
# Repositories that a make target puts into a folder of the working directory where there is no hub.
MADE_HERE = {"HuggingFaceTB/SmolLM2-135M-Instruct": ("checkpoints/smollm2", "make smollm2")}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class Source:
    """Files that were found.

    Attributes:
      asked: what the config says, e.g. a hub id.
      folder: where the files lie; for the hub, the snapshot in its cache.
      commit: of the hub's repository; None for what is no snapshot of the hub.
    """

    asked: str
    folder: Path
    commit: str | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """For the manifest."""
        return {"source": self.asked} | ({"revision": self.commit} if self.commit else {})

    def fetched(self, *patterns: str) -> Path:
        """The folder, once files of the first of `patterns` that the hub has are there; downloads what is not cached.

        Raises:
          UserError: the hub cannot give them.
        """
        if self.commit:
            what = f"model.path={self.asked}"
            for pattern in patterns:
                _snapshot(self.asked, self.commit, [pattern], what)
                if any(self.folder.glob(pattern)):
                    return self.folder
            raise UserError(
                f"{what}: no {' or '.join(patterns)} in the hub's cache ({self.folder}), and the hub cannot be "
                "reached or has none. Go online, or give the repository's files with model.path=FOLDER."
            )
        return self.folder


def locate(path: str, revision: str | None, key: str) -> Source:
    """The source that a config means by `path`.

    Args:
      path: `embedded:NAME`, a folder, or else OWNER/NAME on the hub, for which a folder of MADE_HERE may stand.
      revision: branch, tag or commit on the hub; None for its main branch.
      key: the config's key, for messages.

    Raises:
      UserError: there is no such folder, or neither the hub's cache nor the hub has the repository.
    """
    what = f"{key}={path}"
    if path.startswith("embedded:"):
        folder = EMBEDDED / path.removeprefix("embedded:")
        if not folder.is_dir():
            known = ", ".join(sorted(one.name for one in EMBEDDED.iterdir() if one.is_dir()))
            raise UserError(f"{what}: this package has no such model. Embedded: {known}.")
        return Source(path, folder)
    folder = Path(path).expanduser()
    if folder.is_dir():
        return Source(path, folder)
    made, command = MADE_HERE.get(path, ("", ""))
    if made and Path(made).is_dir() and revision is None:
        return Source(made, Path(made))
    if not HUB_ID.fullmatch(path):
        raise UserError(f"{what}: no folder there, and it is no OWNER/NAME of the hub either.")
    try:
        snapshot = _snapshot(path, revision, SMALL_FILES, what)
    except UserError as error:
        raise UserError(f"{error} Or: {command}.") if made else error from None
    return Source(path, snapshot, snapshot.name)


def _snapshot(repository: str, revision: str | None, patterns: Sequence[str], what: str) -> Path:
    """The folder of a repository's snapshot in the hub's cache; goes to the hub for what is not there."""
    at = f" at revision {revision}" if revision else ""
    silence = out_of_reach()
    is_local = silence is not None
    try:
        return Path(
            snapshot_download(repository, revision=revision, allow_patterns=[*patterns], local_files_only=is_local)
        )
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"{what}: not in the hub's cache ({constants.HF_HUB_CACHE}){at}, and {silence or _first_line(error)}. "
            f"Go online, or give the repository's files with {what.split('=')[0]}=FOLDER."
        ) from None
    except GatedRepoError:
        raise UserError(
            f"{what}: the hub asks for its terms to be accepted. Do so there, then hf auth login."
        ) from None
    except RevisionNotFoundError:
        raise UserError(f"{what}: the hub has no revision {revision} of it.") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise UserError(f"{what}: no folder there, and the hub has no such repository.") from None
    except (HfHubHTTPError, OSError) as error:
        raise UserError(f"{what}: cannot be fetched from the hub ({_first_line(error)}).") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
