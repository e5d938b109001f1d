"""Where checkpoints come from: folders, the hub's cache, and what is said where there is neither."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from harness.config.compose import compose
from harness.errors import UserError
from harness.models.loading.source import MADE_HERE, Source, locate
from harness.running.build import find_model
from tests.builders.released_nemotron import released_tensors, write_checkpoint

REPOSITORY = "someone/some-model"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty hub cache, and no way to the hub."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return folder


@pytest.fixture
def snapshot(cache, tmp_path) -> Path:
    """A snapshot as the hub's client leaves it: files are links to blobs, large ones named by their SHA-256."""
    source = write_checkpoint(tmp_path / "made", released_tensors())
    repository = cache / "models--someone--some-model"
    folder = repository / "snapshots" / COMMIT
    for new in (folder, repository / "refs", repository / "blobs"):
        new.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for file in source.iterdir():
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        name = digest if file.suffix == ".safetensors" else digest[:40]
        shutil.copy(file, repository / "blobs" / name)
        os.symlink(f"../../blobs/{name}", folder / file.name)
    return folder


def load(**settings):
    given = {"path": REPOSITORY, "device": "cpu", **settings}
    return find_model(
        compose(["model=nemotron3b", *(f"model.{key}={value}" for key, value in given.items())]).model
    ).load()


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_a_cached_snapshot_is_used_and_its_commit_recorded(snapshot, revision):
    model = load(revision=revision or "null")
    assert (model.facts["source"], model.facts["revision"]) == (REPOSITORY, COMMIT)
    for file, digest in model.facts["weights_sha256"].items():
        assert hashlib.sha256((snapshot / file).read_bytes()).hexdigest() == digest


def test_a_file_that_is_not_what_the_hub_has_is_refused_by_name(snapshot):
    shard = sorted(snapshot.glob("*.safetensors"))[1].resolve()
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(UserError, match=r"model-00002-of-00003\.safetensors has SHA-256 .* it is corrupted"):
        load()


def test_a_snapshot_without_weights_is_refused(snapshot):
    for shard in snapshot.glob("*.safetensors"):
        shard.unlink()
    with pytest.raises(UserError, match=rf"{REPOSITORY}: no \*.safetensors in the hub's cache"):
        load()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (REPOSITORY, "not in the hub's cache .* HF_HUB_OFFLINE is set.* give the repository's files with model.path="),
        ("/nowhere", "no folder there, and it is no OWNER/NAME"),
        ("embedded:nobody", r"this package has no such model\. Embedded: .*tiny_nemotron"),
    ],
)
@pytest.mark.usefixtures("cache")
def test_what_is_nowhere_is_said_with_the_ways_out(path, said):
    with pytest.raises(UserError, match=rf"model.path={path}: {said}"):
        locate(path, None, "model.path")


@pytest.mark.usefixtures("snapshot")
def test_an_unknown_revision_is_named():
    with pytest.raises(UserError, match=r"not in the hub's cache .* at revision nightly"):
        locate(REPOSITORY, "nightly", "model.path")


def test_an_embedded_model_has_no_commit():
    source = locate("embedded:tiny_nemotron", None, "model.path")
    assert source.facts == {"source": "embedded:tiny_nemotron"}
    assert (source.fetched("*.safetensors") / "model.safetensors").is_file()


def test_a_folder_that_a_make_target_wrote_stands_for_the_hubs_repository(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (repository, (folder, command)) = next(iter(MADE_HERE.items()))
    with pytest.raises(UserError, match=f"not in the hub's cache.*Or: {command}"):
        locate(repository, None, "model.path")
    Path(folder).mkdir(parents=True)
    assert locate(repository, None, "model.path") == Source(folder, Path(folder))
    with pytest.raises(UserError, match="at revision v1"):
        locate(repository, "v1", "model.path")
