"""The one parser of the command line: on verbs that are made up, and as every verb uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.arguments import Given, Overrides, Takes, Words
from harness.cli.keys import Choice, Integer, Integers, Names, Number, PathKey
from harness.cli.main import VERBS, main
from harness.config.compose import compose
from harness.errors import UserError

MEND = Takes(
    "mend",
    Words(least=1, most=2, ask="name a folder or two"),
    (
        PathKey("out", Path("mended")),
        Integer("repeats", 3, least=2, example="3"),
        Integers("blocks", [4], least=2, what="block sizes", example="4,8"),
        Number("tau_ms", unit="milliseconds", example="5"),
        Names("mix", known=("code", "device"), example="code"),
        Names("only", example="figure1"),
        Choice("colour", "auto", ("auto", "never"), example="never"),
    ),
    flags=("--dry-run", "-m"),
)
STEER = Takes(
    "steer",
    keys=(Integer("turns", example="3"),),
    flags=("--dry-run",),
    overrides=Overrides(refused={"order*": "makes no sense here."}),
)
SOME = Takes("some", Words(), (PathKey("out"),), overrides=Overrides(only=("schedule", "schedules.*")))
PARTS = Takes("parts", Words(are_paths=False, what="part", known=("host", "growth")), (PathKey("out"),))
BARE = Takes("bare")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refusal(takes: Takes, *arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        takes.read(arguments)
    return str(caught.value)


def test_words_keys_and_flags_stand_in_any_order():
    given = MEND.read(["blocks=[8, 2,8]", "-m", "here", "out=there", "mix=code,device", "there"])
    assert given == Given(
        words=["here", "there"],
        values={
            "out": Path("there"),
            "repeats": 3,
            "blocks": [2, 8],
            "tau_ms": None,
            "mix": ["code", "device"],
            "only": (),
            "colour": "auto",
        },
        flags=["-m"],
        overrides=[],
    )
    assert given.paths == [Path("here"), Path("there")]


def test_overrides_go_on_as_they_are_written():
    overrides = ["limit=3", "~prompts", "+a.b=[1,2]", "schedule=[linear,packed]", "task.template='a=b'"]
    given = STEER.read([*overrides[:2], "turns=4", *overrides[2:]])
    assert (given.overrides, given["turns"], given.words) == (overrides, 4, [])
    assert given.sets("task.template")
    assert not given.sets("task")


def test_what_exists_is_a_path_whatever_it_is_called(tmp_path):
    for name in ("out=x", "seed=1,schedule=packed", "~old"):
        (tmp_path / name).mkdir()
    names = ["out=x", "seed=1,schedule=packed", "~old"]
    assert SOME.read(names[:2]).words == names[:2]
    assert MEND.read(["~old"]).words == ["~old"]
    assert PARTS.read(["out=x"])["out"] == Path("x")


def test_a_path_with_a_comma_has_to_exist(tmp_path):
    assert refusal(MEND, "here", "out=a,b") == "out=a,b: name one path."
    (tmp_path / "a,b").mkdir()
    assert MEND.read(["here", "out=a,b"])["out"] == Path("a,b")
    assert MEND.read(["here", "out=a,b/c"])["out"] == Path("a,b/c")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["here", "out="], "out=: need a path, as in out=some/folder."),
        (["here", "repeats=x"], "repeats=x: need an integer of at least 2, as in repeats=3."),
        (["here", "repeats=1"], "repeats=1: need an integer of at least 2, as in repeats=3."),
        (["here", "repeats=-1"], "repeats=-1: need an integer of at least 2, as in repeats=3."),
        (["here", f"repeats={'9' * 5000}"], f"repeats={'9' * 5000}: need an integer of at least 2, as in repeats=3."),
        (["here", "repeats=²"], "repeats=²: need an integer of at least 2, as in repeats=3."),
        (["here", "blocks="], "blocks=: need block sizes of at least 2, as in blocks=4,8."),
        (["here", "blocks=1,8"], "blocks=1,8: need block sizes of at least 2, as in blocks=4,8."),
        (["here", "blocks=4,,8"], "blocks=4,,8: need block sizes of at least 2, as in blocks=4,8."),
        (["here", "tau_ms=nan"], "tau_ms=nan: need milliseconds of at least 0, as in tau_ms=5."),
        (["here", "tau_ms=x"], "tau_ms=x: need milliseconds of at least 0, as in tau_ms=5."),
        (["here", "mix=clock"], "mix=clock: no such mix. Known: code, device. Did you mean code?"),
        (["here", "only=[]"], "only=[]: need names, as in only=figure1."),
        (["here", "colour=nver"], "colour=nver: no such colour. Known: auto, never. Did you mean never?"),
        (["here", "repeat=3"], "key=repeat: no such key. Known: blocks, colour, mix, only, out, repeats, tau_ms. "
                               "Did you mean repeats?"),
        (["here", "out=a", "out=b"], "out=a out=b: given twice. Name one."),
        (["here", "blocks=[4]", "blocks=8"], "blocks=[4] blocks=8: given twice. Give one list, as in blocks=4,8."),
        ([], "mend: name a folder or two."),
        (["a", "b", "c"], "mend a b c: name a folder or two."),
        (["a", ""], "mend: an argument is empty. Leave it out, or say what is meant."),
        (["here", "--repeats", "5"], "--repeats 5: options are written KEY=VALUE here, as in repeats=5."),
        (["here", "--repeat=5"], "--repeat=5: options are written KEY=VALUE here, as in repeats=5."),
        (["here", "-tau-ms", "5"], "-tau-ms 5: options are written KEY=VALUE here, as in tau_ms=5."),
        (["here", "--out", "-m"], "--out: options are written KEY=VALUE here, as in out=VALUE."),
        (["here", "--dryrun"], "--dryrun: no such flag. Known: --dry-run, -m. Did you mean --dry-run?"),
    ],
)  # fmt: skip
def test_a_mistake_about_own_keys_is_named(arguments, said):
    assert refusal(MEND, *arguments) == said


@pytest.mark.parametrize(
    ("takes", "arguments", "said"),
    [
        (STEER, ["limit=3", "limit=5"], "limit=3 limit=5: given twice. Name one."),
        (STEER, ["order=ltr"], "order=ltr: makes no sense here."),
        (STEER, ["run_dir="], "run_dir=: need a path, as in run_dir=some/folder. Leave it out where none is meant."),
        (STEER, ["--limit", "5"], "--limit 5: options are written KEY=VALUE here, as in limit=5."),
        (STEER, ["--limit=5"], "--limit=5: options are written KEY=VALUE here, as in limit=5."),
        (STEER, ["-limit", "5"], "-limit 5: options are written KEY=VALUE here, as in limit=5."),
        (STEER, ["--turn", "5"], "--turn 5: options are written KEY=VALUE here, as in turns=5."),
        (STEER, ["packed"], "steer packed: takes no words without a key. "
                            "Options are written KEY=VALUE here, as in turns=3, limit=5."),
        (SOME, ["schedle=x"], "key=schedle: no such key. Known: out, schedule, schedules. Did you mean schedule?"),
        (SOME, ["--limit", "5"], "some --limit: no such option. "
                                 "Options are written KEY=VALUE here, as in out=some/folder."),
        (PARTS, ["hots"], "part=hots: no such part. Known: growth, host. Did you mean host?"),
        (BARE, ["x"], "bare x: takes no arguments."),
        (BARE, ["x=1"], "bare x=1: takes no arguments."),
        (BARE, ["--x"], "bare --x: no such option. It takes none."),
    ],
)  # fmt: skip
def test_a_mistake_about_overrides_or_words_is_named(takes, arguments, said):
    assert refusal(takes, *arguments) == said


def test_what_hydra_adds_or_removes_can_stand_twice():
    overrides = ["limit=3", "+limit=5", "+limit=6", "~limit"]
    assert STEER.read(overrides).overrides == overrides


@pytest.mark.parametrize(
    ("overrides", "meant"),
    [
        (["schedules.packed.widht=3"], "schedules.packed.width"),
        (["schedules.pakced.width=3"], "schedules.packed.width"),
        (["schedule=[linear,branches]", "schedules.branches.branchs=[0]"], "schedules.branches.branches"),
        (["task.max_new_token=5"], "task.max_new_tokens"),
        (["task=mbpp", "task.selecton=all"], "task.selection"),
        (["model.dytpe=float64"], "model.dtype"),
        (["model=setdlm_smax16", "model.eos_token=[]"], "model.eos_tokens"),
        (["modle.dtype=float64"], "model.dtype"),
        (["modle=tiny_setdlm"], "model"),
        (["limt=3"], "limit"),
        (["limit.x=3"], "limit"),
        (["block=3"], "blocks"),
    ],
)
def test_the_nearest_key_is_named_among_those_of_what_was_chosen(overrides, meant):
    with pytest.raises(UserError) as caught:
        compose(overrides, besides=["blocks"])
    said = str(caught.value)
    assert said.startswith(f"{overrides[-1].split('=')[0]}: no such key here.")
    assert said.endswith(f" Did you mean {meant}?")
    assert "\n" not in said


def test_a_key_of_what_was_not_chosen_is_answered_with_what_there_is():
    with pytest.raises(UserError, match=r"schedules\.packed\.width: no such key here\. schedules has linear;"):
        compose(["schedule=linear", "schedules.packed.width=3"])


# For each verb: words that it needs, and mistakes with what has to be said about them.
NO_SUCH_KEY, TWICE, DASHES = "no such key", "given twice", "options are written KEY=VALUE here, as in limit=5"
OVERRIDES = {
    "unknown": (["zzz=1"], NO_SUCH_KEY),
    "near": (["limt=3"], "Did you mean limit?"),
    "nested": (["task.max_new_token=3"], "Did you mean task.max_new_tokens?"),
    "dashes": (["--limit", "5"], DASHES),
    "twice": (["limit=3", "limit=5"], f"limit=3 limit=5: {TWICE}. Name one."),
    "kind": (["limit=x"], "limit=x: need an integer"),
    "path": (["run_dir="], "run_dir=: need a path"),
}
RECORDED = {
    "unknown": (["zzz=1"], "key=zzz: no such key. Known: "),
    "near": (["schedule=packed"], "Did you mean schedules?"),
    "dashes": (["--schedules", "packed"], "as in schedules=packed"),
    "other": (["--limit", "5"], "no such option"),
    "twice": (["mix=code", "mix=device"], "Give one list, as in mix=code,device"),
    "kind": (["mix=clock"], "mix=clock: no such mix"),
    "list": (["schedules="], "schedules=: need names"),
}
OUT = {"path": (["out="], "out=: need a path")}
NO_KEYS = {"unknown": (["zzz=1"], "zzz=1: takes "), "dashes": (["--limit", "5"], "no such option")}
MISTAKES = {
    "run": ([], OVERRIDES | {"flag": (["--dryrun"], "Did you mean --dry-run?"), "word": (["packed"], "as in limit=5")}),
    "probe": ([], OVERRIDES | {"own": (["block=4"], "Did you mean blocks?"),
                               "list": (["blocks="], "blocks=: need block sizes of at least 2")}),
    "trace": ([], OVERRIDES | {"own": (["iteration=4"], "Did you mean iterations?"),
                               "number": (["iterations=-1"], "iterations=-1: need an integer of at least 0")}),
    "atlas": ([], OVERRIDES | {"own": (["width=4"], "Did you mean widths?"),
                               "list": (["widths=1,x"], "widths=1,x: need speculative widths of at least 1")}),
    "status": (["experiment=table8"], OVERRIDES),
    "check-task": (["toy_math"], OVERRIDES | {"own": (["task=toy_code"], "is named without task=")}),
    "grade-responses": (["gsm8k", "x.jsonl"], OVERRIDES | {"own": (["task=mbpp"], "is named without task=")}),
    "doctor": (["model=tiny_nemotron", "task=toy_math"], OVERRIDES | {"list": (["task=a"], f"task=a: {TWICE}")}),
    "explore": (["here"], {
        "unknown": (["zzz=1"], "key=zzz: no such key"), "near": (["tau=1"], "Did you mean tau_ms?"),
        "dashes": (["--tau-ms", "5"], "as in tau_ms=5"), "other": (["--limit", "5"], "no such option"),
        "twice": (["out=a", "out=b"], TWICE), "kind": (["delta_ms=x"], "delta_ms=x: need milliseconds"), **OUT}),
    "figures": ([], RECORDED | OUT),
    "report": ([], RECORDED | OUT),
    "compare": ([], RECORDED | {"choice": (["format=xml"], "format=xml: no such format")}),
    "replay": (["here"], {
        "unknown": (["zzz=1"], NO_SUCH_KEY), "near": (["prompt=1"], "Did you mean prompts?"),
        "dashes": (["--prompts", "5"], "as in prompts=5"), "other": (["--limit", "5"], "no such option"),
        "twice": (["prompts=1", "prompts=2"], TWICE),
        "kind": (["prompts=two"], "prompts=two: need an integer of at least 0, as in prompts=2")}),
    "merge": (["here"], {
        "unknown": (["zzz=1"], NO_SUCH_KEY), "near": (["inot=1"], "Did you mean into?"),
        "dashes": (["--into", "x"], "as in into=x"), "other": (["--limit", "5"], "no such option"),
        "twice": (["into=a", "into=b"], TWICE), "path": (["into="], "into=: need a path")}),
    "train-drafter": (["model=smollm2"], {
        "unknown": (["zzz=1"], NO_SUCH_KEY), "near": (["ranks=4"], "Did you mean rank?"),
        "dashes": (["--rank", "5"], "as in rank=5"), "other": (["--limit", "5"], "no such option"),
        "twice": (["out=a", "out=b"], TWICE), "kind": (["rank=x"], "rank=x: need an integer"), **OUT}),
    "bench": (["host"], {
        "unknown": (["zzz=1"], NO_SUCH_KEY), "near": (["repeat=2"], "Did you mean repeats?"),
        "dashes": (["--repeats", "5"], "as in repeats=5"), "other": (["--limit", "5"], "no such option"),
        "twice": (["repeats=2", "repeats=3"], TWICE), "kind": (["repeats=x"], "repeats=x: need an integer"), **OUT}),
    "grade": (["here"], NO_KEYS | {"twice": (["there"], "grade here there: takes the folder of one run")}),
    "list": ([], NO_KEYS | {"word": (["models"], "list models: takes no arguments")}),
}  # fmt: skip


def test_the_mistakes_below_are_made_with_every_verb():
    assert MISTAKES.keys() == VERBS.keys()


@pytest.mark.parametrize(
    ("verb", "mistake"), [(verb, mistake) for verb, (_, mistakes) in MISTAKES.items() for mistake in mistakes]
)
def test_a_mistake_with_any_verb_is_one_line_and_status_2(verb, mistake, tmp_path, capsys):
    (tmp_path / "results").mkdir()
    words, mistakes = MISTAKES[verb]
    arguments, said = mistakes[mistake]
    assert main([verb, *words, *arguments]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert captured.out == ""
    assert [path.name for path in tmp_path.rglob("*")] == ["results"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_stands_anywhere_and_is_the_verbs_docstring(verb, capsys):
    for arguments in (["--help"], ["limit=3", "-h"], ["-h", "nonsense"]):
        assert main([verb, *arguments]) == 0
        assert capsys.readouterr().out.startswith(f"usage: python -m harness {verb}")


def test_help_imports_no_verb():
    program = (
        "import sys; from harness.cli.main import main; main(['probe', 'x', '--help']); "
        "assert not [name for name in sys.modules if name.startswith(('harness.cli.verbs.', 'harness.analysis'))]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
