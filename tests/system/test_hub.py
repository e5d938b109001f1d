"""Without a network the hub is asked once and in vain, and caches alone are looked into from then on."""

import shutil
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import datasets
import pytest

from harness.cli.main import main
from harness.errors import UserError
from harness.models.loading.source import locate
from harness.system.hub import out_of_reach
from harness.tasks.data_files import read_hub


class Failing(BaseHTTPRequestHandler):
    """Answers everything with an error."""

    def do_HEAD(self):
        self.send_error(500)

    def log_message(self, *_):
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that answers; it is gone after the test."""
    with HTTPServer(("127.0.0.1", 0), Failing) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.fixture
def asked(tmp_path, monkeypatch) -> list[str]:
    """Addresses that were asked, with a hub where nobody answers and empty caches."""
    with HTTPServer(("127.0.0.1", 0), Failing) as closed:
        endpoint = f"http://127.0.0.1:{closed.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr("huggingface_hub.HfApi.hf_hub_download", lambda *_, **__: pytest.fail("the hub was asked"))
    seen: list[str] = []
    urlopen = urllib.request.urlopen

    def watched(request, **options):
        seen.append(request.full_url)
        return urlopen(request, **options)

    monkeypatch.setattr("urllib.request.urlopen", watched)
    return seen


def test_whatever_answers_can_be_asked(server, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert out_of_reach() is None


def test_a_user_who_is_offline_on_purpose_is_told_so(asked, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert out_of_reach() == "HF_HUB_OFFLINE is set"
    assert not asked


def test_models_and_data_sets_are_refused_after_one_question(asked):
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"a/b: not in the hub's cache .* cannot be reached \(.*refused\)\. Go online"
        ):
            locate("a/b", None, "model.path")
        with pytest.raises(UserError, match=r"a/b cannot be had .*cannot be reached \(.*refused\)\. Go online"):
            read_hub("a/b", None, "test", "main")
    assert len(asked) == 1


@pytest.fixture
def cached(asked, tmp_path) -> str:
    """The commit at which the data set a/b lies in the cache of `datasets`, where the hub does not answer."""
    commit = "0123456789" * 4
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "2 + 2?"}\n')
    made = datasets.load_dataset("json", data_files={"test": str(rows)}, split="test", cache_dir=str(tmp_path / "made"))
    kept = tmp_path / "a___b" / "default" / "0.0.0" / commit
    shutil.copytree(Path(made.cache_files[0]["filename"]).parent, kept)
    (kept / "json-test.arrow").rename(kept / "b-test.arrow")
    return commit


@pytest.mark.parametrize("asked_for", ["main", "0123456789" * 4])
def test_a_cached_data_set_says_at_which_commit_it_is(cached, asked_for):
    assert read_hub("a/b", None, "test", asked_for) == ([{"question": "2 + 2?"}], cached)


def test_another_commit_than_the_pinned_one_is_refused_where_only_the_cache_can_be_asked(cached):
    with pytest.raises(UserError, match=r"a/b at aaaaaaaaaaaa is not in the hub's cache, which has 012345678901"):
        read_hub("a/b", None, "test", "a" * 40)


def test_the_doctor_asks_once(asked, capsys):
    assert main(["doctor", "model=nemotron3b", "task=gsm8k,math500,humaneval"]) == 1
    assert capsys.readouterr().out.count("the hub cannot be reached") == 4
    assert len(asked) == 1
