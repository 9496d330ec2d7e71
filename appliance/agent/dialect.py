"""How a conversation is written in tokens: the markers of turns, tool calls and results.

    <|user|>gcd of 12 and 18?<|end|><|assistant|>     forced
    <|tool|>import math\\nprint(math.gcd(12,18))<|end|>  sampled: a call, when the turn begins with the tool marker
    <|result|>6<|end|><|assistant|>                   forced
    \\boxed{6}<|end|>                                  sampled: a turn without the tool marker is the last one

Text that comes from outside (questions, tool output) is encoded with special tokens switched off: a program that prints
`<|end|>` gets ordinary characters, never the marker.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tokenizers import Tokenizer

FILE = "dialect.json"
"""Beside tokenizer.json in a model folder; a folder without it is taken to speak ChatML."""


@dataclass(frozen=True)
class Dialect:
    """The marker strings. Each must be a token of its own (`stop`) or text that the tokenizer can write (the rest)."""

    user: str
    assistant: str
    tool: str
    result: str
    end: str
    """Ends a turn; its single token is the stop token."""
    pad: str


SEEDLING = Dialect("<|user|>", "<|assistant|>", "<|tool|>", "<|result|>", "<|end|>", "<|pad|>")
CHATML = Dialect(
    user="<|im_start|>user\n",
    assistant="\n<|im_start|>assistant\n",
    tool="<tool_call>",
    result="\n<|im_start|>tool\n",
    end="<|im_end|>",
    pad="<|endoftext|>",
)


def read_dialect(folder: Path) -> Dialect:
    path = folder / FILE
    return Dialect(**json.loads(path.read_text())) if path.exists() else CHATML


def write_dialect(folder: Path, dialect: Dialect) -> None:
    (folder / FILE).write_text(json.dumps(asdict(dialect), indent=1) + "\n")


class Codec:
    """A tokenizer together with its dialect. Ids in, text out, and the other way round."""

    def __init__(self, tokenizer: Tokenizer, dialect: Dialect) -> None:
        self.dialect = dialect
        self._tokenizer = tokenizer
        stop = tokenizer.token_to_id(dialect.end)
        if stop is None:
            raise ValueError(f"the tokenizer has no token for {dialect.end!r}, which ends a turn")
        self.stop: int = stop
        self._markers: dict[str, tuple[int, ...]] = {}
        for marker in (dialect.user, dialect.assistant, dialect.tool, dialect.result, dialect.end):
            tokenizer.encode_special_tokens = False
            self._markers[marker] = tuple(tokenizer.encode(marker, add_special_tokens=False).ids)

    @classmethod
    def load(cls, folder: Path) -> Codec:
        return cls(Tokenizer.from_file(str(folder / "tokenizer.json")), read_dialect(folder))

    def plain(self, text: str) -> tuple[int, ...]:
        """Text from outside: no marker in it has any power."""
        self._tokenizer.encode_special_tokens = True
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def prompt(self, question: str) -> tuple[int, ...]:
        d = self.dialect
        return self._markers[d.user] + self.plain(question) + self._markers[d.end] + self._markers[d.assistant]

    def call(self, code: str) -> tuple[int, ...]:
        """A tool turn as the policy model should write it."""
        return self._markers[self.dialect.tool] + self.plain(code) + self._markers[self.dialect.end]

    def result(self, text: str) -> tuple[int, ...]:
        d = self.dialect
        return self._markers[d.result] + self.plain(text) + self._markers[d.end] + self._markers[d.assistant]

    def final(self, answer: str) -> tuple[int, ...]:
        """A last turn as the policy model should write it."""
        return self.plain(f"\\boxed{{{answer}}}") + self._markers[self.dialect.end]

    def text(self, ids: tuple[int, ...]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))
