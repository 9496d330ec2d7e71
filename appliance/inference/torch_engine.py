"""The embedded engine: torch, in this process, float32, on the processor.

One loop advances all rows by one token a step. A row feeds its forced tokens (a tool's output) in the same steps in
which the others sample; a row that waits keeps its place and holds nobody up; a row that is done is refilled at the
next step. Prompts are read in one go, together and once for all requests that share one, and remembered for the
requests to come. When few rows are left the batch shrinks to them.

What is drawn depends on the weights, the row's tokens and the request's seed. Not thread-safe.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from appliance.inference.decoder import Decoder
from appliance.inference.engine import ModelError, Request, Turn
from appliance.inference.folder import open_model
from appliance.inference.sampling import draw, uniforms
from appliance.inference.slots import SlotCache

SHRINK_BELOW = 0.75
"""The batch shrinks when fewer than this share of its rows hold a request."""

PROMPT_TOKENS_KEPT = 8192
"""Prompts are remembered, with their keys and values, up to this many tokens in all."""

READ_AHEAD = 32
"""Queued prompts that are read along with one that is needed now: a large prefill costs less than many small ones."""

PREFILL_TOKENS = 8192
"""Most tokens of one prefill, padding included: bounds its memory."""


@dataclass
class _Row:
    request: Request
    used: int
    """Tokens of the conversation so far: prompt, forced and sampled."""
    feed: deque[int] = field(default_factory=deque)
    """Tokens still to be consumed; the last one's logits are sampled from."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    waiting: bool = False


@dataclass(frozen=True)
class _Prompt:
    """A prompt that was read: keys and values [heads, tokens, size] by layer, logits [V] after its last token."""

    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]


class TorchEngine:
    """See `Engine`. `rows` decode at once; a conversation has at most `slots` tokens."""

    def __init__(self, rows: int, slots: int) -> None:
        if rows < 1 or slots < 2:
            raise ValueError(f"an engine needs at least 1 row and 2 slots, not {rows} and {slots}")
        self._capacity = rows
        self._slots = slots
        self._decoder: Decoder | None = None
        self._weights = ""
        self._sampled = 0
        self._cache = SlotCache(rows, slots, spare=slots)
        self._rows: list[_Row | None] = []
        self._at: dict[int, int] = {}
        self._queue: OrderedDict[int, Request] = OrderedDict()
        self._prompts: OrderedDict[tuple[int, ...], _Prompt] = OrderedDict()
        self._uniforms = torch.zeros(rows, slots)
        self._temperatures = torch.ones(rows)

    @property
    def weights(self) -> str:
        return self._weights

    @property
    def tokens_sampled(self) -> int:
        return self._sampled

    @property
    def unfinished(self) -> int:
        return len(self._at) + len(self._queue)

    @property
    def runnable(self) -> int:
        return sum(row is not None and not row.waiting for row in self._rows) + self._startable

    @property
    def _startable(self) -> int:
        return min(len(self._queue), self._capacity - len(self._at))

    def load(self, folder: Path, digest: str) -> None:
        self.load_state(open_model(folder), digest)

    def load_state(self, model: Any, digest: str) -> None:
        """Takes the weights of a live transformers model: a copy for the Llama family, the model itself otherwise.

        Raises ModelError when the model cannot be decoded here, RuntimeError while requests are unfinished.
        """
        if self.unfinished:
            raise RuntimeError(f"{self.unfinished} requests are unfinished: new weights would answer half of each")
        self._decoder = make_decoder(model, self._slots)
        self._weights = digest
        self._prompts.clear()
        self._cache.clear()
        self._rows = []

    def submit(self, request: Request) -> None:
        """Raises ValueError for a request that cannot be served, RuntimeError before the first load."""
        if self._decoder is None:
            raise RuntimeError("no weights are loaded")
        if request.id in self._at or request.id in self._queue:
            raise ValueError(f"request {request.id} is unfinished already")
        if not 0 < len(request.prompt) < request.max_tokens <= self._slots:
            raise ValueError(
                f"a prompt of {len(request.prompt)} tokens with a budget of {request.max_tokens} does not fit: "
                f"both must be positive, the budget larger than the prompt and at most {self._slots}"
            )
        if not (math.isfinite(request.temperature) and request.temperature >= 0):
            raise ValueError(f"the temperature must be 0 or more, not {request.temperature}")
        self._check(request.prompt)
        self._queue[request.id] = request

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Raises ValueError when the request does not wait, or the tokens leave no room for another."""
        row = self._rows[self._at[request]] if request in self._at else None
        if row is None or not row.waiting:
            raise ValueError(f"request {request} does not wait")
        if row.used + len(forced) >= row.request.max_tokens:
            raise ValueError(f"{len(forced)} tokens leave no room in the budget of {row.request.max_tokens}")
        self._check(forced)
        row.feed.extend(forced)
        row.used += len(forced)
        row.waiting = False

    def finish(self, request: int) -> None:
        """Also ends a request that runs or is queued; one that is not there needs no ending."""
        if self._queue.pop(request, None) is None and request in self._at:
            self._free(self._at[request])

    @torch.inference_mode()
    def step(self) -> list[Turn]:
        """Raises ModelError when the weights give no finite probabilities."""
        decoder = self._decoder
        if decoder is None:
            return []
        self._shrink()
        seated = self._refill(decoder)
        going = [i for i, row in enumerate(self._rows) if row is not None and not row.waiting and row.feed]
        if not going and not seated:
            return []
        logits = self._advance(decoder, going) if going else torch.zeros(len(self._rows), decoder.vocabulary)
        if seated:
            logits[list(seated)] = torch.stack([prompt.logits for prompt in seated.values()])
        return self._sample(logits, going, seated)

    def _check(self, ids: Sequence[int]) -> None:
        assert self._decoder is not None
        if ids and not 0 <= min(ids) <= max(ids) < self._decoder.vocabulary:
            raise ValueError(f"a token is outside the vocabulary of {self._decoder.vocabulary}")

    def _advance(self, decoder: Decoder, going: list[int]) -> Tensor:
        """Feeds one token to each row in `going`; returns logits [rows, V]."""
        feed = [0] * len(self._rows)
        for i in going:
            row = self._rows[i]
            assert row is not None
            feed[i] = row.feed.popleft()
        self._cache.begin()
        logits = decoder.advance(torch.tensor(feed), self._cache)
        moved = set(going)
        self._cache.commit([i for i in range(len(feed)) if i not in moved])
        return logits

    def _sample(self, logits: Tensor, going: list[int], seated: dict[int, _Prompt]) -> list[Turn]:
        n = len(self._rows)
        uniform = self._uniforms[:n].gather(1, self._cache.positions[:n, None].clamp(max=self._slots - 1)).squeeze(1)
        drawn, logprobs = (part.tolist() for part in draw(logits, uniform, self._temperatures[:n]))
        turns = []
        for i in (*going, *seated):
            row = self._rows[i]
            assert row is not None
            if row.feed:
                continue
            token, logprob = drawn[i], logprobs[i]
            if not math.isfinite(logprob):
                self._drop_everything()
                raise ModelError(
                    f"the weights {self._weights} give no finite probabilities",
                    hint="training has diverged or the file is damaged: go back to an earlier checkpoint",
                )
            self._sampled += 1
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.used += 1
            row.feed.append(token)
            if token == row.request.stop:
                row.waiting = True
                turns.append(Turn(row.request.id, tuple(row.ids), tuple(row.logprobs), "stop"))
                row.ids, row.logprobs = [], []
            elif row.used == row.request.max_tokens:
                turns.append(Turn(row.request.id, tuple(row.ids), tuple(row.logprobs), "length"))
                self._free(i)
        return turns

    def _refill(self, decoder: Decoder) -> dict[int, _Prompt]:
        """Seats queued requests on free rows; returns the prompt of each row that was seated."""
        count = self._startable
        if not count:
            return {}
        requests = [self._queue.popitem(last=False)[1] for _ in range(count)]
        self._read(decoder, [request.prompt for request in requests])
        free = [i for i, row in enumerate(self._rows) if row is None]
        seated = {}
        for request in requests:
            if free:
                i = free.pop()
            else:
                i = len(self._rows)
                self._rows.append(None)
            prompt = self._prompts[request.prompt]
            self._prompts.move_to_end(request.prompt)
            self._cache.seat(i, prompt.keys, prompt.values)
            self._rows[i] = _Row(request, used=len(request.prompt))
            self._at[request.id] = i
            self._uniforms[i] = uniforms(request.seed, self._slots)
            self._temperatures[i] = request.temperature
            seated[i] = prompt
        kept = sum(map(len, self._prompts))
        while kept > PROMPT_TOKENS_KEPT:
            kept -= len(self._prompts.popitem(last=False)[0])
        return seated

    def _read(self, decoder: Decoder, wanted: Sequence[tuple[int, ...]]) -> None:
        """Reads the prompts that are not remembered, several at once."""
        new = list(dict.fromkeys(prompt for prompt in wanted if prompt not in self._prompts))
        if new:
            ahead = (request.prompt for request in self._queue.values())
            fresh = dict.fromkeys(prompt for prompt in ahead if prompt not in self._prompts and prompt not in new)
            new.extend(islice(fresh, READ_AHEAD))
        new.sort(key=len)
        while new:
            longest = len(new[-1])
            some = new[-max(1, PREFILL_TOKENS // longest) :]
            del new[-len(some) :]
            lengths = torch.tensor([len(prompt) for prompt in some])
            ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in some])
            read = decoder.prefill(ids, lengths)
            for j, prompt in enumerate(some):
                self._prompts[prompt] = _Prompt(
                    read.logits[j],
                    [k[j, :, : len(prompt)] for k in read.keys],
                    [v[j, :, : len(prompt)] for v in read.values],
                )

    def _free(self, i: int) -> None:
        row = self._rows[i]
        assert row is not None
        del self._at[row.request.id]
        self._rows[i] = None
        self._cache.vacate(i)

    def _shrink(self) -> None:
        """Closes the gaps when rows are free, none is wanted and enough are free to pay for the copy."""
        if self._queue or len(self._at) >= SHRINK_BELOW * len(self._rows):
            return
        keep = [i for i, row in enumerate(self._rows) if row is not None]
        index = torch.tensor(keep, dtype=torch.long)
        self._cache.keep(keep)
        self._uniforms[: len(keep)] = self._uniforms[index]
        self._temperatures[: len(keep)] = self._temperatures[index]
        self._rows = [self._rows[i] for i in keep]
        self._at = {row.request.id: i for i, row in enumerate(self._rows) if row is not None}

    def _drop_everything(self) -> None:
        """Nothing that the broken weights left may reach the next ones."""
        self._rows, self._at = [], {}
        self._queue.clear()
        self._prompts.clear()
        self._cache.free()


def make_decoder(model: Any, tokens: int) -> Decoder:
    """The fastest decoder that computes this model exactly. Raises ModelError when there is none."""
    from appliance.inference.fused import FusedDecoder, can_fuse
    from appliance.inference.generic import GenericDecoder, probe

    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < tokens:
        raise ModelError(
            f"{type(model).__name__} has {positions} positions, and a conversation may have {tokens} tokens",
            hint=f"set the budget of a conversation to at most {positions} tokens",
        )
    if can_fuse(model):
        return FusedDecoder(model, tokens)
    decoder = GenericDecoder(model)
    probe(decoder, model, tokens)
    return decoder
