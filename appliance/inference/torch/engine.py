"""Built-in engine: runs torch in this process, on the CPU or one GPU.

One loop advances all rows by one token per step. A row consumes forced tokens (tool output) in the same steps in which
others sample; a waiting row keeps its place and delays nobody; a finished row is refilled at the next step. Prompts are
read whole, in batches, once for all requests that share one, and cached for later requests. When few rows are left the
batch shrinks to them.

For long conversations, keys and values are stored in blocks (`Paging`), and long inputs are read in chunks while other
rows continue. Memory holds `kv_tokens` tokens over all rows. When it is full, the newest row is preempted and later
recomputed from its tokens: no draw is lost, and the oldest row always continues.

Draws depend on the weights, the row's tokens and the request's seed. Not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from appliance.inference.adapters import has_adapter, proof_of
from appliance.inference.device import Placement, choose_placement, token_bytes
from appliance.inference.engine import (
    EngineCapacity,
    GenerationRequest,
    ModelError,
    ModelFiles,
    NoProbabilitiesError,
    OutOfMemoryError,
    PushProof,
    Turn,
)
from appliance.inference.folder import open_model
from appliance.inference.memory import KEPT_TOKENS, READ_TOKENS, SCORE_LOGITS, SHORT, trim_heap
from appliance.inference.sampling import draw
from appliance.inference.torch.blocks import Paging
from appliance.inference.torch.decoder import Decoder, Prefilled, padded
from appliance.inference.torch.long_reads import LongReads
from appliance.inference.torch.rows import RowTable
from appliance.inference.torch.rules import DrawRules
from appliance.inference.torch.slots import SlotCache

SHRINK_BELOW = 0.75
"""Share of occupied rows below which the batch shrinks."""

READ_AHEAD = 32
"""Later prompts among which some are read along with a needed one: a large pass is cheaper than many small ones."""


class TorchEngine:
    """`Engine` in torch that decodes `rows` conversations concurrently, each of at most `slots` tokens."""

    restricts = True

    def __init__(
        self,
        rows: int,
        slots: int,
        *,
        kv_tokens: int | None = None,
        paging: Paging | None = None,
        placement: Placement | None = None,
    ) -> None:
        """Creates a torch engine without weights. `kv_tokens` limits the tokens of all conversations; None takes all
        available memory for conversations over `SHORT` tokens. `placement` defaults to the CPU in float32."""
        if rows < 1 or slots < 2:
            raise ValueError(f"an engine needs at least 1 row and 2 slots, not {rows} and {slots}")
        if kv_tokens is not None and kv_tokens < slots:
            raise ValueError(f"memory for {kv_tokens} tokens is too small for one conversation of {slots}")
        self._placement = placement or choose_placement("cpu")
        self._capacity = rows
        self._slots = slots
        self._asked = kv_tokens
        self._paging = paging or (Paging() if slots > SHORT or kv_tokens is not None else None)
        self._room = kv_tokens or rows * slots
        self._decoder: Decoder | None = None
        self._version = ""
        self._sampled = 0
        self._cache = SlotCache(rows, slots, slots, self._paging, self._placement.device)
        self._cache.pool.allow(self._room)
        self._table = RowTable(rows, slots)
        self._long = None if self._paging is None else LongReads(self._cache, self._table, self._paging, self._room)
        self._rules = DrawRules()
        self._at: dict[int, int] = {}
        self._queue: OrderedDict[int, GenerationRequest] = OrderedDict()
        self._prompts: OrderedDict[tuple[int, ...], Prefilled] = OrderedDict()

    @property
    def kv_tokens(self) -> int:
        """Tokens of all conversations that fit in memory together; set by `push`."""
        return self._room if self._long is None else self._long.room

    @property
    def kv_bytes(self) -> int:
        """Bytes that the KV cache takes now."""
        return self._cache.bytes

    @property
    def version(self) -> str:
        return self._version

    @property
    def tokens_sampled(self) -> int:
        return self._sampled

    @property
    def unfinished(self) -> int:
        return len(self._at) + len(self._queue)

    @property
    def runnable(self) -> int:
        return self._table.runnable + self._startable

    @property
    def _startable(self) -> int:
        free = min(len(self._queue), self._capacity - len(self._at))
        if self._long is None or not free:
            return free
        if self._long.waiting:
            return 0
        tokens, fitting = 0, 0
        for request in islice(self._queue.values(), free):
            tokens += len(request.prompt) + 1
            if not self._long.fits(tokens):
                break
            fitting += 1
        return fitting if self._at else max(fitting, 1)

    def push(self, weights: ModelFiles | nn.Module, version: str) -> PushProof:
        """Loads new weights into the engine; see `Engine`. Copies a Llama-family model, or where device, type or a
        half-precision adapter require it; other models are used in place, and decoding must match their own forward
        pass. Raises ModelError also for an unsupported model. After an error the engine is unchanged; on a GPU, which
        never has old and new weights together, it then has none, unless the new ones could not be read."""
        if self.unfinished:
            raise RuntimeError(f"{self.unfinished} requests are unfinished: new weights would answer half of each")
        model = open_model(weights, version[:12]) if isinstance(weights, Mapping) else weights
        if self._placement.gpu:
            self.close()
        self._prompts.clear()
        with self._placement.guarded("it took the weights"):
            paged = self._paging is not None
            decoder = make_decoder(model, self._slots, placement=self._placement, version=version, paged=paged)
            room = None
            if self._long is not None and self._asked is None:
                self._cache.free()  # free its memory first: no row needs it
                if self._placement.gpu:
                    torch.cuda.empty_cache()
                room = self._affordable(token_bytes(model.config, self._placement.dtype))
            proof = proof_of(model, version)
        self._decoder, self._version = decoder, version
        self._rules.load(weights)
        if self._long is not None and room is not None:
            self._long.room = room
            self._cache.pool.allow(room)
        self._cache.clear()
        self._table.clear()
        return proof

    def _affordable(self, each: int) -> int:
        """Returns the tokens of all conversations that fit in memory beside the window, at `each` bytes per token.
        Raises OutOfMemoryError if a conversation does not fit now, ModelError if it never can."""
        window = self._cache.capacity * self._capacity * each
        memory, most = (
            max(0, room - window) for room in (self._placement.kv_memory(), self._placement.most_kv_memory())
        )
        if memory // each < self._slots:
            takes, room, newest = (size / 2**30 for size in (self._slots * each, memory, window))
            said = f"the KV cache of a conversation of {self._slots} tokens takes {takes:.1f} GiB, but only "
            said += f"{room:.1f} are free beside {newest:.1f} for the rows' newest tokens"
            shorter = f"set recipe.agent.max_tokens to at most {memory // each}"
            hint = shorter if memory // each > SHORT else "lower recipe.agent.concurrent"
            if most // each < self._slots:
                raise ModelError(said, hint=hint)
            raise OutOfMemoryError(said, hint=f"stop other programs on the GPU, or {hint}")
        return min(memory // each, self._capacity * self._slots)

    @torch.inference_mode()
    def score(self, conversations: Sequence[Sequence[int]], temperature: float = 1.0) -> list[tuple[float, ...]]:
        decoder = self._decoder
        if decoder is None:
            raise RuntimeError("no weights are loaded")
        for ids in conversations:
            if not 0 < len(ids) <= self._slots:
                raise ValueError(f"a conversation of {len(ids)} tokens does not fit: 1 to {self._slots} do")
            self._check(ids)
        scores: list[tuple[float, ...]] = [()] * len(conversations)
        todo = sorted(range(len(conversations)), key=lambda place: len(conversations[place]))
        while todo:
            longest = len(conversations[todo[-1]])
            if self._paging is not None and longest > self._paging.chunk:
                place = todo.pop()
                scores[place] = self._score_in_chunks(decoder, self._paging, conversations[place], temperature)
                continue
            some = todo[-max(1, SCORE_LOGITS // (longest * decoder.vocabulary)) :]
            del todo[-len(some) :]
            given = padded([conversations[place] for place in some]).to(self._placement.device)
            with self._placement.guarded("it scored conversations"):
                logprobs = decoder.logits(given)[:, :-1].div_(temperature).log_softmax(-1)
            found = logprobs.gather(2, given[:, 1:, None]).squeeze(2)
            for place, row in zip(some, found.tolist(), strict=True):
                scores[place] = tuple(row[: len(conversations[place]) - 1])
        return scores

    def _score_in_chunks(
        self, decoder: Decoder, paging: Paging, ids: Sequence[int], temperature: float
    ) -> tuple[float, ...]:
        cache = SlotCache(1, len(ids), 0, paging, self._placement.device)
        scores: list[float] = []
        chunk = max(1, min(paging.chunk, SCORE_LOGITS // decoder.vocabulary))
        for start in range(0, len(ids) - 1, chunk):
            given = torch.tensor(ids[start : start + chunk + 1], device=self._placement.device)
            reading = cache.read(0)
            with self._placement.guarded("it scored a conversation"):
                logits = decoder.extend(given[:chunk], reading, every=True)[: len(given) - 1]
                reading.close()
                logprobs = logits.div_(temperature).log_softmax(-1)
            scores += logprobs.gather(1, given[1:, None]).squeeze(1).tolist()
        return tuple(scores)

    def sleep(self) -> None:
        """Frees memory for the learner, which pushes before the next sampling: on a GPU, where it runs in another
        process, all of it; on the CPU what conversations and cached prompts take."""
        if self._placement.gpu:
            if self.unfinished:
                raise RuntimeError(f"{self.unfinished} requests are unfinished")
            self.close()
            torch._C._cuda_clearCublasWorkspaces()  # 32 MiB on a Hopper, kept for the next product
            torch.cuda.empty_cache()
        elif not self.unfinished:
            self._prompts.clear()
            self._cache.free()
            trim_heap()

    def close(self) -> None:
        self._drop_everything()
        self._decoder, self._version = None, ""

    def submit(self, request: GenerationRequest) -> None:
        """Queues a generation request. Raises ValueError for an unservable one, RuntimeError before the first load."""
        if self._decoder is None:
            raise RuntimeError("no weights are loaded")
        if request.id in self._at or request.id in self._queue:
            raise ValueError(f"request {request.id} is unfinished already")
        request.require_fit(self._slots)
        self._check(request.prompt)
        self._rules.add(request, self._decoder.vocabulary)
        self._queue[request.id] = request

    def resume(self, request: int, forced: Sequence[int]) -> None:
        """Continues a waiting request after forced tokens. Raises ValueError if the request does not wait, or the
        tokens exhaust its budget."""
        row = self._at.get(request)
        if row is None or self._table.running[row]:
            raise ValueError(f"request {request} does not wait")
        if len(forced) >= self._table.room(row):
            raise ValueError(f"{len(forced)} tokens leave no room in the budget of request {request}")
        self._check(forced)
        self._table.force(row, list(forced))
        if self._paging is not None and len(forced) > self._paging.chunk:
            self._table.reading[row] = True

    def finish(self, request: int) -> None:
        """Ends a request and frees its row, also if it is running or queued; ignores an unknown one."""
        if self._queue.pop(request, None) is not None:
            self._rules.end(request)
        elif request in self._at:
            self._free(self._at[request])

    def withdraw(self, request: int) -> Turn:
        if self._queue.pop(request, None) is not None:
            self._rules.end(request)
            return Turn(request, (), (), "withdrawn")
        row = self._at[request]
        turn = replace(self._table.cut_turn(row, self._version), top=self._rules.end(request))
        self._free(row)
        return turn

    def under_way(self, request: int) -> Turn:
        row = self._at.get(request)
        if row is None or not self._table.running[row]:
            return Turn(request, (), (), "withdrawn")
        return self._table.cut_turn(row, self._version)

    @property
    def capacity(self) -> EngineCapacity:
        if self._paging is None:
            return EngineCapacity(self._capacity)
        return EngineCapacity(self._capacity, self.kv_tokens, self._paging.block)

    def lengths(self) -> dict[int, int]:
        return {request: int(self._table.used[row]) for request, row in self._at.items()}

    def preemptions(self) -> int:
        return 0 if self._long is None else self._long.evictions

    @torch.inference_mode()
    def step(self) -> list[Turn]:
        """Takes a decoding step for all requests and returns the turns that ended. Raises NoProbabilitiesError, and
        OutOfMemoryError for an exhausted GPU: sampled tokens can then be withdrawn, and the engine cannot continue."""
        if self._decoder is None:
            return []
        try:
            with self._placement.guarded(f"{len(self._at)} conversations went on"):
                return self._step(self._decoder)
        except OutOfMemoryError:
            self._prompts.clear()
            self._cache.free()
            raise
        except ModelError:
            self._drop_everything()
            raise

    def _step(self, decoder: Decoder) -> list[Turn]:
        self._shrink()
        if self._long is not None:
            self._long.make_room()
        seated = self._refill(decoder)
        if self._long is not None:
            seated |= self._long.read(decoder)
        table, n = self._table, len(self._table)
        running = table.running[:n] if self._long is None else table.running[:n] & ~table.reading[:n]
        going = running & (self._cache.positions[:n] < table.used[:n])
        if going.any():
            self._cache.begin()
            ids = table.next_ids(self._cache.positions[:n]).to(self._placement.device)
            logits = decoder.advance(ids, self._cache)
            if decoder.routes is not None:
                for row in going.nonzero().flatten().tolist():
                    table.route(row, int(self._cache.positions[row]), decoder.routes[row : row + 1])
            self._cache.commit(going)
        elif seated:
            logits = torch.zeros(n, decoder.vocabulary, device=self._placement.device)
        else:
            return []
        if seated:
            logits[list(seated)] = torch.stack(list(seated.values()))
        return self._sample(logits, running & (self._cache.positions[:n] == table.used[:n]))

    def _check(self, ids: Sequence[int]) -> None:
        assert self._decoder is not None
        if ids and not 0 <= min(ids) <= max(ids) < self._decoder.vocabulary:
            raise ValueError(f"a token is outside the vocabulary of {self._decoder.vocabulary}")

    def _sample(self, logits: Tensor, sampling: Tensor) -> list[Turn]:
        """Draws and appends a token for each row in `sampling` [B]; returns the turns that ended."""
        table = self._table
        device, temperature = logits.device, table.temperature[: len(table)]
        ruled = {}
        if self._rules:
            rows = sampling.nonzero().flatten().tolist()
            ruled = {row: one for row in rows if (one := table.requests[row]) is not None and one.rule is not None}
            self._rules.restrict(ruled, logits, temperature)
        found = draw(logits, table.uniform().to(device), temperature.to(device))
        drawn, logprobs = (one.cpu() for one in found)
        for row in ruled:
            if not logprobs[row].isfinite():  # a device may sum so that a forbidden token has a share
                drawn[row], logprobs[row] = self._rules.most_probable(logits[row], float(temperature[row]))
        if not logprobs[sampling].isfinite().all():
            raise NoProbabilitiesError(
                f"the weights {self._version} give no finite probabilities",
                hint="training diverged or the file is damaged: return to an earlier checkpoint",
            )
        self._sampled += int(sampling.sum())
        for row, request in ruled.items():
            self._rules.drawn(request, int(drawn[row]))
        turns = []
        for row in table.append(drawn, logprobs, sampling).tolist():
            turn = table.take_turn(row, self._version)
            if row in ruled:
                turn = replace(turn, top=self._rules.end(turn.request))
            turns.append(turn)
            if turn.ended == "length":
                self._free(row)
        return turns

    def _refill(self, decoder: Decoder) -> dict[int, Tensor]:
        """Seats queued requests on free rows; returns the logits after the prompt of each seated row."""
        count = self._startable
        if not count:
            return {}
        requests = [self._queue.popitem(last=False)[1] for _ in range(count)]
        table = self._table
        free = [row for row, request in enumerate(table.requests) if request is None]
        seated = {}
        for place, request in enumerate(requests):
            row = free.pop() if free else len(table)
            table.seat(row, request)
            self._at[request.id] = row
            if self._is_long(request.prompt):
                self._cache.open(row)
                table.reading[row] = True
                continue
            if request.prompt not in self._prompts:
                later = (one.prompt for one in (*requests[place + 1 :], *self._queue.values()))
                self._read(decoder, request.prompt, later)
            prompt = self._prompts[request.prompt]
            self._prompts.move_to_end(request.prompt)
            self._cache.seat(row, prompt.keys, prompt.values)
            if prompt.routes is not None:
                table.route(row, 0, prompt.routes)
            seated[row] = prompt.logits
        return seated

    def _is_long(self, prompt: Sequence[int]) -> bool:
        return self._paging is not None and len(prompt) > self._paging.chunk

    def _read(self, decoder: Decoder, needed: tuple[int, ...], later: Iterable[tuple[int, ...]]) -> None:
        """Prefills a prompt that is not cached yet, with the next others of about its length in one pass, and first
        drops cached prompts, those used longest ago, until all fit."""
        known = self._prompts.keys() | {needed}
        fresh = dict.fromkeys(prompt for prompt in later if prompt not in known and not self._is_long(prompt))
        some = [needed]
        for prompt in sorted(islice(fresh, READ_AHEAD), key=lambda one: abs(len(one) - len(needed))):
            if (len(some) + 1) * max(len(prompt), *map(len, some)) > READ_TOKENS:
                break
            some.append(prompt)
        tokens = sum(map(len, (*self._prompts, *some)))
        while self._prompts and tokens > KEPT_TOKENS:
            tokens -= len(self._prompts.popitem(last=False)[0])
        read = decoder.prefill(padded(some).to(self._placement.device), torch.tensor([len(prompt) for prompt in some]))
        for j, prompt in enumerate(some):
            self._prompts[prompt] = read.one(j, len(prompt))

    def _free(self, row: int) -> None:
        request = self._table.requests[row]
        assert request is not None
        del self._at[request.id]
        self._rules.end(request.id)
        self._table.vacate(row)
        self._cache.vacate(row)

    def _shrink(self) -> None:
        """Removes free rows from the batch, if no request needs them and they are enough to pay for the copy."""
        if self._queue or len(self._at) >= SHRINK_BELOW * len(self._table):
            return
        keep = sorted(self._at.values())
        self._cache.keep(keep)
        self._table.keep(keep)
        self._at = {request.id: row for row, request in enumerate(self._table.requests) if request is not None}

    def _drop_everything(self) -> None:
        """Drops all rows and prompts, so that no state of old weights reaches new ones."""
        self._table.clear()
        self._rules.clear()
        self._at = {}
        self._queue.clear()
        self._prompts.clear()
        self._cache.free()


def make_decoder(model: Any, tokens: int, *, placement: Placement, version: str, paged: bool = False) -> Decoder:
    """Creates and verifies the fastest decoder that computes this model exactly. Raises ModelError without one,
    NoProbabilitiesError for non-finite probabilities."""
    from appliance.inference.torch.fused import FusedDecoder, can_fuse
    from appliance.inference.torch.generic import GenericDecoder
    from appliance.inference.torch.low_rank import placed_copy
    from appliance.inference.torch.probe import probe, probe_copy

    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions < tokens:
        raise ModelError(
            f"{type(model).__name__} has {positions} positions, but a conversation may have {tokens} tokens",
            hint=f"set the budget of a conversation to at most {positions} tokens",
        )
    if can_fuse(model):
        fused = FusedDecoder(model, tokens, placement)
        probe_copy(fused, model, tokens, placement=placement, version=version)
        return fused
    there = (model.device, model.dtype) == (placement.device, placement.dtype)
    beside = placement.dtype is not torch.float32 and has_adapter(model)
    placed = model if there and not beside else placed_copy(model, placement)
    decoder = GenericDecoder(placed)
    if beside:
        probe_copy(decoder, model, tokens, placement=placement, version=version)
    probe(decoder, placed, tokens, placement=placement, version=version, paged=paged)
    return decoder
