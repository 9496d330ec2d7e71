"""Rules of single turns in the torch engine: followed to their end, also by a turn that began on another engine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from chat_models import qwen3_folder
from tokenizers import Tokenizer

from appliance.inference.engine import DrawRule, GenerationRequest, Turn
from appliance.inference.folder import read_model
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.rules import nucleus

GRAMMAR = 'start: "The weather of Rome: " /[0-9]{3}/ " " ("dry" | "wet")'


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    return read_model(qwen3_folder(tmp_path_factory.mktemp("qwen3")))


def made(files: Mapping[str, bytes]) -> TorchEngine:
    engine = TorchEngine(4, 200)
    engine.push(files, "v1")
    return engine


def asked(
    files: Mapping[str, bytes], number: int, rule: DrawRule | None, prompt: tuple[int, ...] = (5, 6, 7)
) -> GenerationRequest:
    stop = Tokenizer.from_str(files["tokenizer.json"].decode()).token_to_id("<|im_end|>")
    return GenerationRequest(number, prompt, stop, 150, 1.0, 11, rule=rule)


def ended(engine: TorchEngine) -> list[Turn]:
    turns: list[Turn] = []
    while engine.runnable:
        turns += engine.step()
    return turns


def test_a_turn_that_was_withdrawn_follows_its_grammar_on_another_engine(files: Mapping[str, bytes]) -> None:
    first, second = made(files), made(files)
    first.submit(asked(files, 1, DrawRule(GRAMMAR)))
    first.submit(asked(files, 2, None))
    for _ in range(9):
        first.step()
    part = first.withdraw(1)
    assert (part.ended, len(part.ids)) == ("withdrawn", 9)
    second.submit(asked(files, 1, DrawRule(GRAMMAR, drawn=9), (5, 6, 7, *part.ids)))
    (rest,) = ended(second)
    text = Tokenizer.from_str(files["tokenizer.json"].decode()).decode([*part.ids, *rest.ids[:-1]])
    assert (text[:21], text[-4:] in (" dry", " wet"), rest.ended) == ("The weather of Rome: ", True, "stop")
    with pytest.raises(ValueError, match="does not begin"):
        second.submit(asked(files, 3, DrawRule(GRAMMAR, drawn=2)))
    with pytest.raises(ValueError, match="top_p"):
        second.submit(asked(files, 4, DrawRule(top_p=0)))
    with pytest.raises(ValueError, match="cannot be used"):
        second.submit(asked(files, 5, DrawRule("start: nothing")))


def test_a_neighbour_draws_what_it_would_alone(files: Mapping[str, bytes]) -> None:
    alone, beside = made(files), made(files)
    alone.submit(asked(files, 2, None))
    (one,) = ended(alone)
    for number, rule in ((1, DrawRule(GRAMMAR)), (2, None), (3, DrawRule(top_p=0.1, top=3))):
        beside.submit(asked(files, number, rule))
    turns = {turn.request: turn for turn in ended(beside)}
    assert (turns[2].ids, turns[2].top) == (one.ids, ())
    assert len(turns[3].top) == len(turns[3].ids)
    assert all(
        any(token == best for best, _ in top)
        for token, top in zip(turns[3].ids, turns[3].top, strict=True)
        if len(top) < 3
    )


@pytest.mark.parametrize("temperature", [1e-40, 0.5, 1.0, 50.0])
@pytest.mark.parametrize("top_p", [1e-9, 0.4, 0.999])
def test_the_fewest_most_probable_tokens_are_kept(temperature: float, top_p: float) -> None:
    logits = torch.tensor([2.0, -torch.inf, 1.5, 2.0, -1.0, 0.0])
    kept = nucleus(logits, temperature, top_p).isfinite()
    shares = ((logits - 2.0) / temperature).softmax(-1)
    assert shares[kept].sum() >= min(top_p, 0.999) - 1e-6
    least = shares[kept].min()
    assert shares[kept].sum() - least < top_p
    assert not kept[1]
    assert bool((shares[~kept] <= least).all())
