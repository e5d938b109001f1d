"""One definition of a run's keys: their kinds and checks here, their meaning and defaults in conf/config.yaml."""

import ast
import json
from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from harness.cli.main import main
from harness.config.compose import CONFIG_DIR, compose, stored
from harness.config.run_config import KEYS, PLACES
from harness.errors import UserError

ROOT = Path(__file__).parents[2]
NOT_KEYS = ("defaults", "hydra")
LINES = (CONFIG_DIR / "config.yaml").read_text(encoding="utf-8").splitlines()
DEFAULTS = {key: value for key, value in yaml.safe_load("\n".join(LINES)).items() if key not in NOT_KEYS}
GROUPS = {"model", "task", "order"}  # chosen by the defaults list, so they have no line of their own


def test_every_key_is_a_field_and_a_line_with_its_meaning():
    assert list(KEYS) == ["model", "task", "schedules", "order", *(key for key in DEFAULTS if key != "schedules")]
    assert KEYS.keys() - DEFAULTS.keys() == GROUPS
    for key in DEFAULTS:
        (line,) = (line for line in LINES if line.startswith(f"{key}:"))
        assert len(line.partition("# ")[2]) > 10, line


def test_no_module_lists_the_keys_of_a_run_again():
    found = []
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else ()
            words = [name.value for name in names if isinstance(name, ast.Constant)]
            if len(words) > 3 and set(words) <= KEYS.keys() - {"model", "task", "schedules", "order", "temperature"}:
                found.append(f"{path.name}: line {node.lineno}: {words}")
    assert found == []


def test_a_manifest_holds_the_config_key_for_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["limit=1", "warmups=0", "task.max_new_tokens=8", "model.device=cpu", "run_dir=out"]
    assert main(["run", *given]) == 0
    config = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["config"]
    assert list(config) == list(KEYS)
    assert config == OmegaConf.to_container(compose(given), resolve=True)


def test_a_manifest_from_before_a_key_was_there_has_its_default():
    config = OmegaConf.to_container(compose(["seed=5"]), resolve=True)
    del config["warmups"], config["acceptance_tokens"]
    assert stored(config) == compose(["seed=5"])


def test_a_run_from_before_a_key_was_there_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = ["run", "limit=1", "warmups=0", "task.max_new_tokens=8", "model.device=cpu", "run_dir=out"]
    assert main(run) == 0
    file = tmp_path / "out" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    del manifest["config"]["samples"], manifest["config"]["on_error"]
    del manifest["config"]["model"]["rotary"], manifest["config"]["order"]["cache"]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert main(run) == 0
    assert main([*run, "on_error=skip"]) == 2
    assert main([*run, "model.rotary=as_cast"]) == 2


def test_keys_within_a_task_or_model_are_those_of_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = ["run", "limit=1", "warmups=0", "task.max_new_tokens=8", "model.device=cpu", "run_dir=out"]
    assert main(run) == 0
    file = tmp_path / "out" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    del manifest["config"]["task"]["repetitions"], manifest["config"]["task"]["source"]["count"]
    del manifest["config"]["model"]["layers"]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert stored(manifest["config"]).task.source.count == 500
    assert main(run) == 0
    assert main([*run, "task.repetitions=3"]) == 2


def test_places_are_keys_or_parts_of_the_task():
    of_the_task = {"task.data_files", "task.source.data_files", "task.source.data_dir"}
    assert set(PLACES) == {"run_dir", "samples", "data_dir", *of_the_task}


@pytest.mark.parametrize("added", ["+taks=gsm8k", "+warmup=3"])
def test_a_key_that_no_run_has_cannot_be_added(added):
    with pytest.raises(UserError, match=r"no such key here.* Did you mean (task|warmups)\?"):
        compose([added])
