"""`assay train --dry-run`: the plan of the stages, and what is wrong with a recipe, without a daemon."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from home_commands import assay

from appliance.agent.budget import AgentBudget
from appliance.cli.machine.recommended import layout_of
from appliance.cli.training.train import show_stages
from appliance.config.configuration import ModelSettings, Settings
from appliance.inference.engine import ModelError
from appliance.inference.vllm.placement import VllmSettings
from appliance.learning.recipes.recipe import Recipe
from appliance.planning import GIB, Gpu, Hardware, Layout, Shape, Vllm, plan
from appliance.planning.engine_share import engine_share, ways_of
from appliance.planning.training_recipes import read_recipe, rows_of, scaled, too_large
from appliance.settings.config_layers import ConfigError

TWO = """
[training]
steps = 4
[agent]
max_tokens = 96
[[stages]]
name = "one"
kind = "rl"
advance_at = 0.5
[[stages]]
name = "two"
kind = "rl"
tasks = "unsolved"
[stages.agent]
max_tokens = 120
[stages.training]
objective = "gspo"
"""

LARGE = Shape(
    parameters=100_000_000,
    linear=((1024, 1024),) * 64,
    layers=12,
    hidden=768,
    intermediate=3072,
    attention=768,
    key_value=768,
    vocabulary=32_000,
    tied=True,
    positions=4096,
    file_bytes=400_000_000,
)


@pytest.mark.parametrize(("screen", "head"), [(None, "stage  name"), (200, "stage  name"), (80, "stage 1: name")])
def test_the_plan_cuts_no_word_on_any_terminal(
    screen: int | None, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(read_recipe("seedling", Recipe()).stages, LARGE, Hardware(memory=32 * GIB, cores=2))
    show_stages(rows, screen)
    shown = capsys.readouterr().out
    assert shown.startswith(head)
    assert "…" not in shown
    assert all(cell in shown for row in rows for cell in row)


def test_the_plan_of_a_recipe_is_one_screen_and_the_same_as_json(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(TWO)
    shown = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) <= 24
    assert all(word in shown.stdout for word in ("4 steps or 50 %", "unsolved", "Nothing was started"))
    plan = json.loads(assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--dry-run", "--json").stdout)
    first, second = (stage["recipe"] for stage in plan["stages"])
    assert [one["agent"]["max_tokens"] for one in (first, second)] == [96, 120]
    # What follows from the objective follows from that of the stage.
    assert (first["training"]["clip_high"], second["training"]["clip_high"]) == (0.28, 4e-4)
    alone = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--stage", "2", "--dry-run", "--json")
    assert [stage["name"] for stage in json.loads(alone.stdout)["stages"]] == ["two"]


def test_a_line_that_is_no_conversation_is_said_before_a_training_begins(tmp_path: Path) -> None:
    line = {
        "messages": [{"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "\\boxed{42}"}],
        "spec": {"kind": "answer", "expected": "42"},
    }
    text = TWO.replace('kind = "rl"\nadvance_at = 0.5', 'kind = "sft"\ndata = "file"\nfile = "c.jsonl"')
    (tmp_path / "r.toml").write_text(text)
    for content, code in ((json.dumps(line), 0), (f"{json.dumps(line)}\n{{broken", 2)):
        (tmp_path / "c.jsonl").write_text(content)
        shown = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--dry-run")
        assert shown.returncode == code, shown.stderr
    for form in ((), ("--dry-run",)):
        refused = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), *form)
        assert (refused.returncode, "stage one, " in refused.stderr, "line 2" in refused.stderr) == (2, True, True)


def test_a_plan_with_a_stage_that_does_not_fit_ends_with_one(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(TWO.replace("max_tokens = 120", "max_tokens = 100000"))
    for form in ((), ("--json",)):
        assert assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--dry-run", *form).returncode == 1
        alone = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--stage", "1", "--dry-run", *form)
        assert alone.returncode == 0


def test_the_shipped_recipe_follows_its_paper_and_fits_the_machine(tmp_path: Path) -> None:
    plan = json.loads(assay(tmp_path, "train", "--recipe", "rstar2-agent", "--dry-run", "--json").stdout)
    sft, *later = plan["stages"]
    assert (sft["kind"], [stage["kind"] for stage in later]) == ("sft", ["rl"] * 3)
    tokens = [stage["recipe"]["agent"]["max_tokens"] for stage in later]
    assert tokens == [170, 256, 256], "8K, 12K, 12K by one factor, to what the embedded model reads"
    assert [stage["recipe"]["agent"]["max_calls"] for stage in later] == [10, 10, 15]
    assert {stage["recipe"]["training"]["learning_rate"] for stage in later} == {1e-6}
    assert {stage["recipe"]["training"]["warmup_steps"] for stage in later} == {20}
    assert [stage["tasks"] for stage in later] == ["fresh", "fresh", "unsolved"]
    assert {stage["optimizer"] for stage in later} == {"reset"}
    assert "256 of 12288" in plan["notes"][0]


def test_a_scaled_recipe_fits_and_has_one_name_whatever_memory_is_free(tmp_path: Path) -> None:
    """Passes as large as a recipe asks for may be more than what fits beside its rollouts."""
    text = TWO.replace("[training]", "scale = true\n[training]\npacking = true\nmicro_batch_tokens = 262144")
    (tmp_path / "r.toml").write_text(text.replace("[agent]", "[agent]\nconcurrent = 4"))
    asked = read_recipe(str(tmp_path / "r.toml"), Recipe())
    names = set()
    for free in (6, 12, 64):
        gpu = Gpu("one", 80 * GIB, free * GIB, 1e15, 3e12)
        machine = Hardware(memory=128 * GIB, cores=16, gpus=(gpu,))
        found = scaled(asked, LARGE, machine)
        for stage in found.stages:
            recipe = stage.recipe
            sizes = {"max_tokens": recipe.agent.max_tokens, "rows": recipe.agent.concurrent}
            assert plan(LARGE, machine, recipe.training, **sizes).fits
        names |= {(found.digest, found.only(2).digest)}
    assert names == {(asked.digest, asked.only(2).digest)}


def test_a_scaled_recipe_fits_in_each_of_its_stages(tmp_path: Path) -> None:
    text = TWO.replace('objective = "gspo"', 'method = "lora"').replace("max_tokens = 120", "max_tokens = 96")
    (tmp_path / "r.toml").write_text("scale = true\n" + text.replace("max_tokens = 96", "max_tokens = 100000"))
    machine = Hardware(memory=128 * GIB, cores=16, gpus=(Gpu("one", 80 * GIB, 9 * GIB, 1e15, 3e12),))
    found = scaled(read_recipe(str(tmp_path / "r.toml"), Recipe()), LARGE, machine)
    assert [stage.recipe.training.method for stage in found.stages] == ["full", "lora"]
    assert too_large(found.stages, LARGE, machine) == []


def test_the_shipped_recipe_fits_a_small_gpu_and_with_an_adapter_a_large_model(tmp_path: Path) -> None:
    """0.6 billion parameters at 24 GiB, 8 billion at 80 GiB, in every stage."""
    small = qwen(600_000_000, layers=28, hidden=1024, intermediate=3072, attention=2048)
    large = qwen(8_200_000_000, layers=36, hidden=4096, intermediate=12_288, attention=4096)
    adapter = Recipe.model_validate({"training": {"method": "lora", "precision": "bfloat16"}})
    for shape, total, recipe in ((small, 24, Recipe()), (small, 80, Recipe()), (large, 80, adapter)):
        gpu = Gpu("one", total * GIB, (total - 1) * GIB, 1e15, 3e12)
        machine = Hardware(memory=256 * GIB, cores=16, gpus=(gpu,))
        found = scaled(read_recipe("rstar2-agent", recipe), shape, machine)
        assert too_large(found.stages, shape, machine) == []
        assert [stage.recipe.agent.max_tokens for stage in found.stages] == [8192, 8192, 12288, 12288]


@pytest.mark.parametrize("sleep", [0, 2])
def test_a_scaled_recipe_fits_beside_vllm_with_the_share_that_a_worker_gives_it(sleep: int) -> None:
    """That share is of what all its stages leave."""
    settings = Settings(data=Path("unused"), vllm=VllmSettings(sleep=sleep), model=ModelSettings(engine="vllm"))
    machine = Hardware(256 * GIB, 16, (Gpu("one", 80 * GIB, 79 * GIB, 1e15, 3e12),))
    small = qwen(600_000_000, layers=28, hidden=1024, intermediate=3072, attention=2048)
    layout = layout_of(settings, machine)
    found = scaled(read_recipe("rstar2-agent", Recipe()), small, machine, layout)
    assert [stage.recipe.agent.max_tokens for stage in found.stages] == [8192, 8192, 12288, 12288]
    share = engine_share(settings, small, machine, ways_of(Recipe(), found.stages))
    for each in (layout, replace(layout, vllm=Vllm(share, sleep))):
        assert too_large(found.stages, small, machine, each) == []
    large = qwen(8_200_000_000, layers=36, hidden=4096, intermediate=12_288, attention=4096)
    with pytest.raises(ModelError, match="but vLLM needs at least"):
        engine_share(settings, large, machine, ways_of(Recipe(), found.stages))
    assert too_large(found.stages, large, machine, layout) == [stage.name for stage in found.stages]


def qwen(parameters: int, *, layers: int, hidden: int, intermediate: int, attention: int) -> Shape:
    sides = ((attention, hidden), (1024, hidden), (1024, hidden), (hidden, attention))
    sides += ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
    sizes = (layers, hidden, intermediate, attention, 1024, 151_936)
    return Shape(parameters, sides * layers, *sizes, tied=hidden == 1024, positions=40_960, file_bytes=2 * parameters)


def test_a_stage_of_sft_is_planned_as_it_learns(tmp_path: Path) -> None:
    text = TWO.replace('kind = "rl"\nadvance_at = 0.5', 'kind = "sft"').replace("max_tokens = 96", "max_tokens = 8192")
    shown = {}
    for way in ("", 'method = "lora"', "gradient_checkpointing = true", "packing = true\nmicro_batch_tokens = 16384"):
        (tmp_path / "r.toml").write_text(text.replace("[training]", f"[training]\n{way}").replace("120", "8192"))
        stages = read_recipe(str(tmp_path / "r.toml"), Recipe(agent=AgentBudget(concurrent=1))).stages
        row = rows_of(stages, LARGE, Hardware(memory=128 * GIB, cores=16))[0]
        shown[way] = (row[7].split()[0], float(row[-1].split()[0]))
    (full, padded), (lora, adapted), (_, again), (_, packed) = shown.values()
    assert (full, lora) == ("full", "lora")
    assert max(adapted, again) < padded < packed, "padded passes have 8192 tokens"


def test_what_learners_on_a_cluster_hold_is_not_judged_by_this_machine(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("scale = true" + TWO.replace("max_tokens = 120", "max_tokens = 100000"))
    asked = ("train", "--recipe", str(tmp_path / "r.toml"), "--dry-run")
    shown = assay(tmp_path, *asked, "--json", ASSAY_PLACEMENT__LEARNERS="cluster")
    assert shown.returncode == 0, shown.stderr
    plan = json.loads(shown.stdout)
    assert plan["notes"] == ["not scaled: learners are on a host of the cluster"]
    assert plan["stages"][1]["recipe"]["agent"]["max_tokens"] == 100_000
    said = assay(tmp_path, *asked, ASSAY_PLACEMENT__LEARNERS="cluster")
    assert (said.returncode, "the memory shown is this machine's" in said.stdout) == (0, True), said.stderr


def test_a_training_that_begins_says_which_stages_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(TWO.replace("[agent]", "[agent]\nconcurrent = 100000000"))
    begun = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"))
    assert (begun.returncode, "too large for this machine: one, two;" in begun.stderr) == (3, True), begun.stderr
    (tmp_path / "r.toml").write_text(TWO)
    fitting = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"))
    assert (fitting.returncode, "this machine" in fitting.stderr) == (3, False), fitting.stderr


def test_a_training_that_begins_says_what_was_scaled_and_one_that_goes_on_does_not(tmp_path: Path) -> None:
    said = "rstar2-agent: tokens scaled by 0.0208: the longest conversation that fits is 256 of 12288"
    for form, shown in (((), True), (("--json",), True), (("--resume",), False)):
        begun = assay(tmp_path, "train", "--recipe", "rstar2-agent", *form)
        assert (begun.returncode, said in begun.stderr) == (3, shown), begun.stderr
    begun = assay(tmp_path, "train", "--recipe", "rstar2-agent", ASSAY_PLACEMENT__LEARNERS="cluster")
    assert (begun.returncode, "rstar2-agent: not scaled: learners are on" in begun.stderr) == (3, True), begun.stderr


def test_the_engine_of_a_model_that_scores_is_planned_with(tmp_path: Path) -> None:
    text = TWO.replace('kind = "rl"\ntasks = "unsolved"', 'kind = "distil"\nscored_by = "champion"')
    (tmp_path / "r.toml").write_text(text.replace('objective = "gspo"', 'objective = "dapo"'))
    asked = read_recipe(str(tmp_path / "r.toml"), Recipe())
    sizes = {"max_tokens": 120, "rows": asked.stages[1].recipe.agent.concurrent}
    needed = plan(LARGE, Hardware(memory=GIB, cores=4), asked.stages[1].recipe.training, **sizes).needed
    machine = Hardware(memory=needed, cores=4)
    assert too_large(asked.stages, LARGE, machine) == []
    assert too_large(asked.stages, LARGE, machine, teachers={"champion": LARGE}) == ["two"]


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (("steps = 4", "stepz = 4"), "unknown key training.stepz", "training.steps"),
        (
            ('kind = "rl"\nadvance', 'kind = "sft"\nadvance'),
            "unknown key advance_at in a stage of kind sft",
            "remove it there",
        ),
        (('kind = "rl"\nadvance', 'kind = "magic"\nadvance'), "invalid kind 'magic'", "sft, rl, distil"),
        (('kind = "rl"\nadvance', "kind = []\nadvance"), "invalid kind []", "sft, rl, distil"),
        (("steps = 4", "gradient_norm = inf"), "gradient_norm = inf", "correct"),
        (('kind = "rl"\nadvance_at = 0.5', 'kind = "sft"\nfile = "\\u0000"'), "x00 cannot be read", "correct file"),
        (('kind = "rl"\nadvance_at = 0.5', 'kind = "sft"\nfile = "/dev/zero"'), "not a regular file", "correct file"),
        (("advance_at = 0.5", 'advance_at = "soon"'), "advance_at = 'soon'", "correct advance_at"),
        (("advance_at = 0.5", 'optimizer = "keep"'), 'stage 1 (one): optimizer = "keep" needs a stage', ""),
        (("max_tokens = 120", "max_tokens = 64"), "budgets grow", "docs/training.md"),
        (("steps = 4", "steps = 4.5"), "training.steps", "correct"),
        (('name = "two"', 'name = "one"'), "two stages are named 'one'", ""),
        (('objective = "gspo"', 'objective = "luck"'), "unknown objective 'luck'", ""),
        (("[stages.agent]", "[stages.agents]"), "unknown key agents", "did you mean agent?"),
        (("max_tokens = 120", "zzz = 120"), "unknown key agent.zzz", "use one of its keys: concurrent"),
        (("[training]", "[training]\nkeep = 17"), "training.keep = 17: only 16 are sampled", "correct training.keep"),
        (("[training]", "[training]\nrollouts_per_task = 4"), "training.keep = 8: only 4 are sampled", ""),
        (('tasks = "unsolved"', 'tasks = "solved"'), "tasks = 'solved'", ""),
        (("[[stages]]", "[stages]"), "not TOML", ""),
        (
            ('name = "two"\nkind = "rl"', 'name = "two"\nkind = "rl"\ndata = "file"'),
            "unknown key data in a stage of kind rl",
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said_with_its_place(
    tmp_path: Path, change: tuple[str, str], message: str, hint: str
) -> None:
    assert change[0] in TWO
    (tmp_path / "r.toml").write_text(TWO.replace(*change))
    refused = assay(tmp_path, "train", "--recipe", str(tmp_path / "r.toml"), "--dry-run")
    assert refused.returncode == 2
    assert message in refused.stderr, refused.stderr
    assert hint in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_wrong_value_is_shown_as_far_as_a_screen_has_room(tmp_path: Path) -> None:
    for key in ("name", "kind"):
        text = '[[stages]]\nname = "a"\nkind = "rl"\n'.replace(f'{key} = "', f'{key} = "{"x" * 9000}')
        (tmp_path / "r.toml").write_text(text)
        with pytest.raises(ConfigError, match="xx…") as refused:
            read_recipe(str(tmp_path / "r.toml"), Recipe())
        assert len(str(refused.value)) < 600


def test_a_stage_or_a_recipe_that_does_not_exist_is_an_error_with_those_that_do(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(TWO)
    for arguments, words in (
        (("--recipe", str(tmp_path / "r.toml"), "--stage", "3"), ("unknown stage 3", "1 (one), 2 (two)")),
        (("--recipe", "seedlin"), ("unknown recipe seedlin", "did you mean seedling?")),
        (("--recipe", str(tmp_path)), ("cannot be read",)),
    ):
        refused = assay(tmp_path, "train", *arguments, "--dry-run")
        assert refused.returncode == 2, refused.stdout
        assert all(word in refused.stderr for word in words), refused.stderr
    begun = assay(tmp_path, "train", "--recipe", "seedling")
    assert begun.returncode == 3, begun.stderr
    both = assay(tmp_path, "train", "--recipe", "seedling", "--resume", "--seed", "7")
    assert (both.returncode, "keeps its seed" in both.stderr) == (2, True)


def test_stages_are_planned_with_the_learners_that_are_configured(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("scale = true" + TWO)
    asked = read_recipe(str(tmp_path / "r.toml"), Recipe())
    small = Gpu("small", 5 * GIB // 2, 5 * GIB // 2, 1e13, 1e12)
    machine = Hardware(memory=128 * GIB, cores=16, gpus=(small,) * 4)
    alone, together = Layout(), Layout(learners=3)
    with pytest.raises(ConfigError, match="not even conversations of"):
        scaled(asked, LARGE, machine, alone)
    found = scaled(asked, LARGE, machine, together).stages
    for layout, too_much in ((alone, True), (together, False)):
        assert {"too much" in row[-1] for row in rows_of(found, LARGE, machine, layout)} == {too_much}
