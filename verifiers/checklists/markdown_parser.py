"""CommonMark parser with GitHub's tables and strikethrough, and footnotes, from `markdown-it-py`."""

from __future__ import annotations

from collections import Counter

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from mdit_py_plugins.footnote import footnote_plugin

MAX_NESTING = 60


def _footnotes(state: StateCore) -> None:
    """Records the position of each footnote, and which are duplicated or not cited from visible text. The parser loses
    this when it moves footnotes to the end. A citation from a cited footnote counts."""
    written: Counter[str] = Counter()
    cites: dict[str, set[str]] = {}
    within = [""]
    for token in state.tokens:
        if token.type == "footnote_reference_open":
            within.append(token.meta["label"])
            written[within[-1]] += 1
            state.env.setdefault("footnote_maps", {})[within[-1]] = token.map
        elif token.type == "footnote_reference_close":
            within.pop()
        for part in token.children or ():
            if part.type == "footnote_ref":
                cites.setdefault(within[-1], set()).add(part.meta["label"])
    shown, waiting = {""}, [""]
    while waiting:
        fresh = cites.get(waiting.pop(), set()) - shown
        shown |= fresh
        waiting += fresh
    state.env["footnote_faults"] = [name for name in written if name not in shown or written[name] > 1]


PARSER = (
    MarkdownIt("commonmark", {"html": True, "store_labels": True, "maxNesting": MAX_NESTING})
    .enable(["table", "strikethrough"])
    .use(footnote_plugin)
    .disable("footnote_inline")
)
PARSER.core.ruler.before("footnote_tail", "footnotes", _footnotes)
