"""A model that somebody brought is in service only after a night that trained from it and asked it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from broken_models import edit, sound
from recorded_nights import RecordedNight
from safetensors.torch import load_file, save_file
from short_nights import SHORT, cycle_of, run_night

from appliance.ledger.sqlite import SqliteLedger
from appliance.settings.config_layers import ConfigError
from appliance.worker import cycle as cycles
from appliance.worker.cycle import CycleRun
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.progress import CycleProgress


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(found, folder / "model.safetensors")

    return write


def not_finite(found: dict[str, torch.Tensor]) -> None:
    found["model.norm.weight"][:] = float("nan")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (edit("config.json", model_type="nobody"), "is not a supported model"),
        (edit("config.json", model_type=None), "is not a supported model"),
        (weights(lambda found: found.pop("model.norm.weight")), "weights are missing or do not fit"),
        (edit("config.json", intermediate_size=256), "weights are missing or do not fit"),
        (weights(not_finite), "no finite probabilities"),
        (edit("config.json", num_attention_heads=0), "cannot be loaded: integer division"),
        (edit("config.json", num_attention_heads=3), "."),
        (edit("config.json", num_attention_heads="four"), "."),
        (edit("config.json", num_hidden_layers=-1), "."),
        (edit("config.json", hidden_act="nobody"), "."),
        (edit("config.json", rope_parameters={"rope_type": "nobody"}), "."),
        (edit("config.json", model_type=["qwen2"]), "is not a supported model"),
        (edit("config.json", model_type="bert"), "."),
        (lambda folder: (folder / "rendering.json").write_text("[]"), "is not a JSON object"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "lacks tokenizer.json"),
    ],
)
def test_a_model_that_only_loading_shows_to_be_unusable_leaves_nothing_on_record(
    context: WorkContext, ledger: SqliteLedger, tmp_path: Path, harm: Callable[[Path], object], message: str
) -> None:
    folder = sound(tmp_path / "model")
    harm(folder)
    with pytest.raises(ConfigError, match=message) as refused:
        run_night(context, "n", model=folder)
    assert str(refused.value).startswith(f"model.path is {folder}: ")
    assert refused.value.hint
    assert (ledger.alias("champion"), ledger.checkpoints()) == (None, [])
    assert not list((tmp_path / "models").glob("*"))


def test_a_night_that_fails_after_training_leaves_no_raw_model_in_service(
    recorded_night: RecordedNight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> None:
        raise OSError("no room")

    with recorded_night.copied("trained", tmp_path / "data") as context:
        ledger = context.ledger
        with monkeypatch.context() as patched:
            patched.setattr(cycles, "evaluate", broken)
            with pytest.raises(OSError, match="no room"):
                run_night(context, "n")
        assert ledger.alias("champion") is None
        known = ledger.cycle("n")
        assert known is not None
        assert [made.stage for made in ledger.checkpoints()] == ["training", "imported"]
        decision = run_night(context, "n", model=None)
        assert ledger.alias("champion") == decision.champion == known.plan["start"]


def test_a_night_after_one_that_failed_begins_from_the_configured_model_as_it_is_now(
    context: WorkContext, ledger: SqliteLedger, tmp_path: Path
) -> None:
    """The first one was imported, and the night got no further; then another model was configured."""

    def first(name: str, folder: Path) -> str:
        ledger.put_cycle(made := cycle_of(name, recipe=SHORT))
        run = CycleRun(made, context, CycleProgress(made, ledger, lambda: 0.0), folder)
        run.prepare()
        held = run._held()
        return run._start(run._setup(held)).manifest

    one, other = sound(tmp_path / "one"), sound(tmp_path / "other")
    weights(lambda found: found["model.norm.weight"].mul_(2.0))(other)
    digests = [first("n1", one), first("n2", other)]
    assert digests[0] != digests[1]
    assert ledger.alias("champion") is None
