"""Reading data files: what is wrong is named with file and line."""

import gzip
import json
from pathlib import Path

import pytest

from harness.config.compose import compose
from harness.errors import UserError
from harness.running.build import build
from harness.tasks.data_files import Files, read_json_lines
from harness.tasks.gsm8k import Gsm8kSource
from harness.tasks.task import Item, select

ROW = {"question": "1+1?", "answer": "2\n#### 2"}


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_gsm8k_rows_become_items(tmp_path):
    path = write(tmp_path / "test.jsonl", json.dumps(ROW), "", json.dumps(ROW))
    data = Gsm8kSource("revision", str(path)).read()
    assert data.items[1] == Item("gsm8k/1", {"question": "1+1?"}, {"gold": "2\n#### 2"}, "2\n\\boxed{2}")
    assert data.facts["items"] == 2
    assert data.notices == ["gsm8k: 2 items, the published set has 1319"]


def test_compressed_files_are_unpacked(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
    assert read_json_lines(path, ["question"], "rows")[0] == [ROW]


def test_raw_line_separators_inside_strings_do_not_end_a_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "a\u2028b"}\n')
    assert read_json_lines(path, ["question"], "rows")[0] == [{"question": "a\u2028b"}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b'{"question": "q", "answer": "a"}\nnot json\n', "line 2 is not JSON"),
        (b'{"question": "q"}\n', "line 1 lacks answer; it has question"),
        (b"[1]\n", "line 1 holds a list, need a JSON object"),
        (b"\xff\xfe\n", "not UTF-8"),
        (b"[" * 100_000 + b"\n", "line 1 is not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, content, said):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as error:
        Gsm8kSource("revision", str(path)).read()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named():
    with pytest.raises(UserError, match=r"nowhere\.jsonl: no such file"):
        read_json_lines("nowhere.jsonl", [], "task.data_files=nowhere.jsonl")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_json_lines(tmp_path, [], "rows")


def test_the_real_test_split_has_1319_items(data_dir):
    data = Gsm8kSource("revision", str(data_dir / "gsm8k_test.jsonl")).read()
    assert (len(data.items), data.notices) == (1319, [])


ITEMS = [Item(f"t/{number}", {}, {}) for number in range(5)]


def test_prompts_select_by_id_or_number_once_each():
    assert [item.prompt_id for item in select(ITEMS, None, ["t/3", 1, "3"])] == ["t/3", "t/1"]


def test_limit_takes_the_first():
    assert select(ITEMS, 2, None) == ITEMS[:2]
    assert select(ITEMS, 0, None) == []
    assert select(ITEMS, 99, None) == ITEMS


@pytest.mark.parametrize("limit", [-1, 1.5, "3"])
def test_a_limit_that_is_no_count_is_refused(limit):
    with pytest.raises(UserError, match="limit="):
        select(ITEMS, limit, None)


def test_unknown_prompts_are_named():
    with pytest.raises(UserError, match="no t/9 among 5 items"):
        select(ITEMS, None, ["t/9"])


NAMES = ("set.jsonl", "set/test.jsonl")


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "all" / "set").mkdir(parents=True)
    (tmp_path / "all" / "set" / "test.jsonl").write_text("{}\n")
    return tmp_path / "all"


def test_a_named_file_comes_before_every_folder(folder, monkeypatch):
    monkeypatch.setenv("SET_PATH", "elsewhere")
    files = Files("mine.jsonl", str(folder), NAMES, "SET_PATH")
    assert files.locate() == ("mine.jsonl", "task.data_files=mine.jsonl", ())


def test_a_variable_names_the_file_and_says_so(folder, monkeypatch):
    monkeypatch.setenv("SET_PATH", "elsewhere")
    located = Files(None, str(folder), NAMES, "SET_PATH").locate()
    assert (located.path, located.notices) == ("elsewhere", ["data: SET_PATH is set, reading elsewhere"])


def test_a_folder_is_looked_through_by_name(folder):
    assert Files(None, str(folder), NAMES).locate().path == str(folder / "set" / "test.jsonl")
    (folder / "set.jsonl").write_text("{}\n")
    assert Files(None, str(folder), NAMES).locate().path == str(folder / "set.jsonl")
    with pytest.raises(UserError, match=r"data_dir=.*all: has no other\.jsonl\. Put the file there"):
        Files(None, str(folder), ("other.jsonl",)).locate()


def test_the_variables_folder_need_not_have_every_set(folder, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_DIR", str(folder))
    located = Files(None, None, NAMES).locate()
    assert located.path == str(folder / "set" / "test.jsonl")
    assert located.notices == [f"data: HARNESS_DATA_DIR is set, reading {located.path}"]
    assert Files(None, None, ("other.jsonl",)).locate() is None


def test_every_published_set_is_found_in_one_folder(data_dir):
    for task in ("gsm8k", "math500", "humaneval", "mbpp", "writingbench", "gsm8k_setdlm"):
        source = build(compose([f"task={task}", f"data_dir={data_dir}"]).task, "task").source
        assert Path(source.files.locate().path).parent == data_dir
