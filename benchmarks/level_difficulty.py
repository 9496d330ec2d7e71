"""Does what a level asks get harder from level to level? Measured by a learner, and not by how a taskset was written.

    python -m benchmarks.level_difficulty [--each 80] [--held 40] [--only NAME ...] [--json FILE] [--seed 0]

One small model (a Qwen3 with random weights, 1.3 million parameters) is trained here on solved tasks of every taskset
and level, as many of each. Then it reads new ones, and it is measured how much their answers surprise it. Told by
level: the nats of a whole answer (the negative logarithm of the chance to sample it), and the share of answers of
which every token is the one that it would write (what it solves at temperature 0). Nats are a learner's measure of
difficulty: the length of the description of the answer that it has found (Dawid 1984, prequential coding; Blier and
Ollivier 2018, "The Description Length of Deep Learning Models"). The JSON has the answers' tokens as well: a part of
what is harder is that more has to be said.

A taskset counts as rising where the nats of each level are above those of the level before, and as rising on the whole
where the rank correlation of nats and level is at least .8. Tasks of environments are left out: what they ask for lies
in their worlds. So are questions of more than 768 tokens. Times do not count; one thread unless --threads says more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, NamedTuple

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.proposer import rank_correlation
from curriculum.contract.taskset import TaskDraft
from curriculum.registry import BUILT_IN, make_draft

MOST_TOKENS, BATCH_TOKENS = 768, 8_192
RATE, WARM = 2e-3, 50
ON_THE_WHOLE = 0.8
IGNORED = -100


class Item(NamedTuple):
    """Is a solved task in tokens."""

    taskset: str
    level: int
    ids: list[int]
    answer: int
    """Where the answer begins."""


def text_of(draft: TaskDraft) -> str:
    """All that is asked."""
    return "\n".join([*(one.text for one in draft.messages), *(f"{n}:\n{t}" for n, t in draft.files.items())])


def drafts(names: Sequence[str], each: int, first: int) -> list[tuple[str, int, TaskDraft]]:
    found = []
    for name in names:
        for level in range(BUILT_IN.named(name).level_count):
            found += [(name, level, make_draft(name, level, seed)) for seed in range(first, first + each)]
    return found


def items_of(made: Sequence[tuple[str, int, TaskDraft]], tokenizer: ByteLevelBPETokenizer) -> list[Item]:
    """Those that are short enough."""
    end = tokenizer.token_to_id("<end>")
    found = []
    for name, level, draft in made:
        question = tokenizer.encode(f"{text_of(draft)}\n").ids
        ids = [*question, end, *tokenizer.encode(draft.answer).ids, end]
        if len(ids) <= MOST_TOKENS:
            found.append(Item(name, level, ids, len(question) + 1))
    return found


def batches(items: Sequence[Item], rng: Random | None = None) -> list[list[Item]]:
    """Neighbours have about one length; `rng` shuffles the batches."""
    found: list[list[Item]] = []
    for item in sorted(items, key=lambda one: len(one.ids)):
        if not found or (len(found[-1]) + 1) * len(item.ids) > BATCH_TOKENS:
            found.append([])
        found[-1].append(item)
    if rng is not None:
        rng.shuffle(found)
    return found


def logits_and_targets(model: Any, batch: Sequence[Item]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(one.ids) for one in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    targets = torch.full((len(batch), width), IGNORED)
    for row, one in enumerate(batch):
        ids[row, : len(one.ids)] = torch.tensor(one.ids)
        targets[row, one.answer : len(one.ids)] = ids[row, one.answer : len(one.ids)]
    return model(ids).logits[:, :-1], targets[:, 1:]


def trained(items: Sequence[Item], vocabulary: int, seed: int) -> Any:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=MOST_TOKENS,
        tie_word_embeddings=True,
    )
    model: Any = Qwen3ForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    plan = batches(items, Random(seed))
    began = time.process_time()
    for step, batch in enumerate(plan):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARM, 1.0 - step / (len(plan) + 1))
        logits, targets = logits_and_targets(model, batch)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == len(plan) - 1:
            spent = time.process_time() - began
            print(f"step {step + 1} of {len(plan)}: {loss.item():.3f} nats a token, {spent:.0f} s", flush=True)
    return model


def measured(model: Any, items: Sequence[Item]) -> dict[tuple[str, int], list[tuple[float, bool, int]]]:
    """Nats of an answer, whether each of its tokens is the likeliest, and how many it has, by taskset and level."""
    found: dict[tuple[str, int], list[tuple[float, bool, int]]] = {}
    with torch.inference_mode():
        for batch in batches(items):
            logits, targets = logits_and_targets(model, batch)
            nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(1)
            solved = ((logits.argmax(-1) == targets) | (targets == IGNORED)).all(1)
            for one, each, right in zip(batch, nats.tolist(), solved.tolist(), strict=True):
                found.setdefault((one.taskset, one.level), []).append((each, right, len(one.ids) - one.answer))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--each", type=int, default=80, help="solved tasks of a level to learn from")
    parser.add_argument("--held", type=int, default=40, help="new tasks of a level to be measured on")
    parser.add_argument("--only", nargs="+", help="these tasksets")
    parser.add_argument("--vocabulary", type=int, default=4_096)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    worlds = {name for name in BUILT_IN.tasksets if BUILT_IN.domain_of(name) == "environments"}
    names = options.only or [name for name in BUILT_IN.tasksets if name not in worlds]
    learned = drafts(names, options.each, 0)
    tokenizer = ByteLevelBPETokenizer()
    texts = (f"{text_of(one)}\n{one.answer}" for _, _, one in learned)
    tokenizer.train_from_iterator(texts, vocab_size=options.vocabulary, special_tokens=["<end>"], show_progress=False)
    items = items_of(learned, tokenizer)
    made = drafts(names, options.held, 1_000_000)
    keys = {draft.key for _, _, draft in learned}
    fresh = [one for one in made if one[2].key not in keys]
    held = items_of(fresh, tokenizer)
    print(f"{len(items)} of {len(learned)} solved tasks are short enough; {len(held)} of {len(fresh)} new ones")
    figures = measured(trained(items, tokenizer.get_vocab_size(), options.seed), held)

    rising, whole, rows = [], [], {}
    for name in names:
        levels = [figures.get((name, level), []) for level in range(BUILT_IN.named(name).level_count)]
        if any(len(level) < options.held // 4 for level in levels):
            print(f"{name:<26} too few of a level are short enough or new: {[len(level) for level in levels]}")
            continue
        nats = [mean(each for each, *_ in level) for level in levels]
        solved = [mean(right for _, right, _ in level) for level in levels]
        correlation = rank_correlation([(float(level), value) for level, value in enumerate(nats)])
        rising += [name] if nats == sorted(nats) else []
        whole += [name] if correlation >= ON_THE_WHOLE else []
        tokens = [mean(count for *_, count in level) for level in levels]
        rows[name] = {"nats": nats, "solved": solved, "tokens": tokens, "correlation": correlation}
        told = "  ".join(f"{value:7.1f}" for value in nats)
        print(f"{name:<26} nats {told}   solved {' '.join(f'{one:.2f}' for one in solved)}   rank {correlation:+.2f}")
    print(f"rising from level to level: {len(rising)} of {len(rows)}; on the whole: {len(whole)} of {len(rows)}")
    print(f"not on the whole: {', '.join(name for name in rows if name not in whole) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
