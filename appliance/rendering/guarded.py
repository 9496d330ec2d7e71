"""Tokenises text with guarded parts from outside, which can never become special tokens.

A chat format is one text: marks of the format (`<|im_end|>`), with text of people, tools and models between them. The
format's code calls `guard` on each outside part, and passes the whole to `encode`.

Invariants: guarded text never yields a mark's token, whatever it spells and however its pieces are joined. Without
guarded parts, the tokens are those of the model's own tokenizer; with them too, unless guarded text spells a mark,
which is then written in ordinary tokens. Decoding returns the text as the model's own tokenizer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer

from appliance.rendering.model_files import CONFIG, SPECIAL_MAP, TOKENIZER, chat_templates, eos_ids, json_table
from appliance.rendering.renderer import NO_TOKENIZER, SAY_IT, Ids, RenderingError

_OPEN, _CLOSE = "guard5c1be8f07d93open", "guard5c1be8f07d93close"
"""Brackets of guarded text on its way to `encode`. Letters and digits, so that templates and JSON leave them unchanged;
text that spells them is cut by `guard` inside the word, and rejoined by `encode`."""
_INNER = "guard5c1be8f07d93"
_CUT = "guard5c1be8f07d93cut"
_BEHIND = "guard5c1be8f07d93behind"
"""Placeholder for a preceding mark: some tokenizers treat the start of a text differently."""
LONG = 20_000
"""Characters from which encoding must not hold up other threads."""
_SPACE = "▁"
"""Space in SentencePiece vocabularies."""
_MARKS = re.compile(f"({_OPEN}|{_CLOSE}|{_CUT})")


def guard(text: str) -> str:
    """Encloses text from outside in marks, so that none of it becomes a special token. Surrounding white space stays
    outside the marks, for templates that strip it. A tag is cut after its `<`, so that no format mistakes it for its
    own (`</think>`)."""
    core = text.strip()
    if not core:
        return text
    start = text.index(core)
    inner = core.replace(_INNER, f"guard5c1{_CUT}be8f07d93").replace("<", f"<{_CUT}")
    return f"{text[:start]}{_OPEN}{inner}{_CLOSE}{text[start + len(core) :]}"


def unguarded(text: str) -> str:
    """Returns a text without the marks that `guard` put around text from outside."""
    return _MARKS.sub("", text)


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encodes a text without special tokens. A long one goes through the library's batch, which lets other threads
    run meanwhile."""
    if len(text) < LONG:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)
    return list(tokenizer.encode_batch([text], add_special_tokens=False)[0].ids)


class GuardedTokenizer:
    """Encodes and decodes with a model's tokenizer; implements what the library `renderers` needs of one."""

    name_or_path = ""
    """Empty, because a model is a folder here: the library must not choose by its origin."""

    def __init__(self, files: Mapping[str, bytes], whole: Tokenizer | None = None) -> None:
        """Loads the tokenizer from a model's files; `whole` is an existing one. Raises RenderingError if tokenizer.json
        is missing or unreadable."""
        self.whole = whole if whole is not None else load_tokenizer(files)
        vocabulary = self.whole.get_vocab(with_added_tokens=False)
        added = self.whole.get_added_tokens_decoder()
        self.marks: dict[int, str] = {
            token: one.content
            for token, one in added.items()
            if one.content.replace(_SPACE, " ").strip() and len(one.content) > 1
        }
        """Added tokens by id, except white space: guarded text never becomes one."""
        self._plain = Tokenizer(self.whole.model)
        if self.whole.normalizer is not None:
            self._plain.normalizer = self.whole.normalizer
        if self.whole.pre_tokenizer is not None:
            self._plain.pre_tokenizer = self.whole.pre_tokenizer
        self._plain.add_tokens(
            [one for token, one in added.items() if token not in self.marks and one.content in vocabulary]
        )
        self._plain.add_special_tokens([_BEHIND])
        self._powerful = {*self.marks, self._plain.token_to_id(_BEHIND)}
        sides = {
            one.content: (r"\s*" if one.lstrip else "", r"\s*" if one.rstrip else "")
            for token, one in added.items()
            if token in self.marks
        }
        self._ids = {text: token for token, text in self.marks.items()}
        texts = sorted(self._ids, key=len, reverse=True)
        self._mark = re.compile("|".join(f"{sides[t][0]}(?:{re.escape(t)}){sides[t][1]}" for t in texts) or r"(?!)")
        self.chat_template = chat_templates(files)[0]
        """Chat template, by which the library distinguishes two revisions of Gemma 4."""
        special = {**json_table(files, CONFIG), **json_table(files, SPECIAL_MAP)}
        self.special: dict[str, str] = {
            name: text
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
            if (text := _content(special.get(name)))
        }
        """Special tokens in the model's files, by name (`bos_token` and so on)."""
        self.unk_token_id: int | None = self._named("unk_token")
        self.eos_token_id: int | None = self._named("eos_token")
        self.bos_token_id: int | None = self._named("bos_token")
        self.ends: Ids = tuple(dict.fromkeys(self._ends(files)))
        """End tokens of the model's files."""

    def encode(self, text: str, *_arguments: Any, behind: bool = False, **_options: Any) -> list[int]:
        """Encodes a partly guarded text, without added tokens. `behind`: other text precedes it. Raises RenderingError
        if a format split a guarded part, since its origin is then unknown."""
        parts = _MARKS.split(text)
        if len(parts) == 1 and not behind:
            return _encoded(self.whole, text)
        ids: list[int] = []
        run = ""
        guarded = len(parts) > 1 and _begins_guarded(parts)
        for part in parts:
            if part in (_OPEN, _CLOSE):
                if guarded == (part == _OPEN):
                    raise RenderingError("its format splits outside text", hint=SAY_IT)
                guarded = part == _OPEN
            elif part == _CUT:
                continue
            elif guarded:
                run += part
            else:
                at = 0
                for found in self._mark.finditer(part):
                    ids += self.plain(run + part[at : found.start()], behind=behind or bool(ids))
                    ids.append(self._ids[self._spelled(found[0])])
                    run, at = "", found.end()
                run += part[at:]
        return ids + self.plain(run, behind=behind or bool(ids))

    def plain(self, text: str, *, behind: bool = False) -> list[int]:
        """Encodes a text without any special token. `behind`: other text precedes it."""
        if not text:
            return []
        ids = self._written([text], behind)
        if self._powerful.isdisjoint(ids):
            return ids
        # The vocabulary itself can spell a mark: cut the text inside each mark, else into characters.
        cuts = sorted({at + 1 for one in (*self._ids, _BEHIND) for at in _places(one, text)})
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        for chosen in (pieces, list(text)):
            ids = self._written(chosen, behind)
            if self._powerful.isdisjoint(ids):
                return ids
        raise RenderingError(
            "its tokenizer maps a single character to a mark", hint="use a model with another tokenizer"
        )

    def _written(self, pieces: Sequence[str], behind: bool) -> list[int]:
        ids: list[int] = []
        for piece in pieces:
            follows = behind or bool(ids)
            ids += _encoded(self._plain, _BEHIND * follows + piece)[follows:]
        return ids

    def decode(self, ids: Any, *_arguments: Any, skip_special_tokens: bool = False, **_options: Any) -> str:
        """Decodes tokens to text, including special tokens unless skipped."""
        listed = [ids] if isinstance(ids, int) else list(ids)
        return str(self.whole.decode(listed, skip_special_tokens=skip_special_tokens))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Returns the id of a token, or of each; the unknown token's id if missing."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(one) for one in tokens]
        found = self.whole.token_to_id(tokens)
        return self.unk_token_id if found is None else found

    def count_marks(self, ids: Sequence[int]) -> int:
        """Counts the special tokens among these tokens."""
        return sum(token in self.marks for token in ids)

    @property
    def vocabulary(self) -> dict[str, int]:
        """All tokens of the tokenizer with their ids."""
        return dict(self.whole.get_vocab(with_added_tokens=True))

    @property
    def ordinary(self) -> dict[str, int]:
        """Tokens of the tokenizer's base vocabulary with their ids, without added ones."""
        return dict(self.whole.get_vocab(with_added_tokens=False))

    def _spelled(self, found: str) -> str:
        return found if found in self._ids else found.strip()

    def _named(self, name: str) -> int | None:
        text = self.special.get(name)
        return None if text is None else self.whole.token_to_id(text)

    def _ends(self, files: Mapping[str, bytes]) -> Iterator[int]:
        if self.eos_token_id is not None:
            yield self.eos_token_id
        yield from (token for token in eos_ids(files) if self.whole.id_to_token(token) is not None)


def end_tokens(files: Mapping[str, bytes]) -> Ids:
    """Returns the tokens that end a model's turn (`GuardedTokenizer.ends`); without tokenizer.json, those of the other
    files. Raises RenderingError."""
    return GuardedTokenizer(files).ends if TOKENIZER in files else tuple(dict.fromkeys(eos_ids(files)))


def load_tokenizer(files: Mapping[str, bytes]) -> Tokenizer:
    """Loads the tokenizer from a model's files. Raises RenderingError if tokenizer.json is missing or unreadable."""
    if TOKENIZER not in files:
        raise RenderingError(f"the model has no {TOKENIZER}", hint=NO_TOKENIZER)
    try:
        return Tokenizer.from_buffer(files[TOKENIZER])
    except Exception as error:
        raise RenderingError(
            f"{TOKENIZER} cannot be read: {str(error)[:200]}",
            hint="copy the folder again: the file is changed or truncated",
        ) from error


def _places(part: str, text: str) -> list[int]:
    """Returns all positions at which the part occurs in the text."""
    found = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _begins_guarded(parts: Sequence[str]) -> bool:
    """True if these parts of a text begin inside a guarded part, whose opening mark a format removed."""
    return next((part == _CLOSE for part in parts if part in (_OPEN, _CLOSE)), True)


def _content(token: object) -> str:
    """Returns a special token's text from the tokenizer's configuration, where it is a string or a table."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""
