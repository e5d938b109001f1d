"""Every config file composes, resolves and builds: a new one is tested by existing."""

import pytest

from harness.config.compose import compose, described, names
from harness.errors import UserError
from harness.running.build import build, build_schedules


@pytest.mark.parametrize("name", names("task"))
def test_every_task_builds(name):
    task = build(compose([f"task={name}"]).task, "task")
    # A config may set another one's task up anew; its records are records of that task.
    assert task.name in names("task")
    assert name.startswith(task.name)
    assert task.max_new_tokens > 0


@pytest.mark.parametrize("name", names("schedule"))
def test_every_schedule_builds_alone(name):
    schedules = build_schedules(compose([f"schedule={name}"]).schedules)
    assert list(schedules) == [name]


@pytest.mark.parametrize("name", names("model"))
def test_every_model_composes_with_a_width_for_each_schedule(name):
    config = compose([f"model={name}", "schedule=[linear,packed,quadratic,branches]"])
    assert config.model.name == name
    for schedule in config.schedules.values():
        assert schedule.width >= 1


@pytest.mark.parametrize("name", names("experiment"))
def test_every_experiment_composes(name):
    assert compose([f"experiment={name}"]).schedules


def test_several_schedules_are_kept_apart():
    config = compose(["schedule=[linear,packed]", "schedules.packed.width=31"])
    assert list(config.schedules) == ["linear", "packed"]
    assert (config.schedules.linear.width, config.schedules.packed.width) == (15, 31)


@pytest.mark.parametrize("group", ["model", "task", "schedule", "experiment"])
def test_every_config_says_what_it_is(group):
    for name, what in described(group):
        assert len(what) > 20, name


def test_an_interpolation_that_leads_nowhere_is_a_users_mistake():
    with pytest.raises(UserError, match=r"Interpolation key 'model\.nope' not found"):
        compose(["limit='${model.nope}'"])
