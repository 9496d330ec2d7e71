"""Stores sessions of tokens with consent: redacted, token by token, with the verdict on the newest answer.

Invariants: redaction comes before writing. If a rule matches in a session's text, its detokenized tokens, a call's
arguments or a check, then no text, token or check of it is stored, for earlier turns too: only counts and the rule's
number. Nothing is learned from such a session. A verdict belongs to the answer that was judged, never to a newer one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from appliance.gateway.chat_request import SentMessage
from appliance.gateway.message_tree import MessageTree, SampledTurn
from appliance.gateway.sessions import KeptSession, KeptSessionError, KeptSessions, SaidText, last_day
from appliance.records.rollouts import path_to
from appliance.rendering.renderer import Renderer
from appliance.text.redaction import Redaction
from verifiers.contract.verdict import Verdict
from verifiers.registry.spec import SPEC, Spec


@dataclass(frozen=True)
class CheckedAnswer:
    """An answer that was checked at the gateway, with its spec and verdict."""

    submission: str | None
    spec: Spec
    verdict: Verdict


@dataclass(frozen=True)
class SessionKeeper:
    """Stores and judges gateway sessions; thread-safe."""

    files: KeptSessions
    redaction: Redaction
    days: float
    """Days for which a session is stored after its last turn."""
    now: Callable[[], str]
    _locks: tuple[threading.Lock, ...] = field(default_factory=lambda: tuple(threading.Lock() for _ in range(64)))
    """Locks striped over session names: one session always uses the same."""

    def keep(
        self,
        token: str,
        session: MessageTree,
        turn: SampledTurn,
        messages: Sequence[SentMessage],
        renderer: Renderer,
        tools: tuple[str, ...],
        checked: CheckedAnswer | None,
        *,
        complete: bool,
    ) -> bool:
        """Redacts and stores a gateway session; `messages` is the whole conversation, newest turn last, `complete` if
        the model ended it. A sub-agent's conversation adds its tokens alone. Returns False if the session, or the one
        it restarts, was deleted. Raises OSError, KeptSessionError."""
        now = self.now()
        said = tuple(SaidText(role=one.rendered_role, text=_shown(one)) for one in messages)
        path = [session.nodes[place] for place in path_to(session.nodes, turn.node)]
        spelled = [renderer.text(node.ids) for node in path]
        called = [node.call.model_dump(mode="json") for node in path if node.call is not None]
        sent = [one.model_dump(mode="json") for one in messages]
        texts = (*(one.text for one in said), *spelled, "".join(spelled), *called, *sent, *tools)
        rule = self.redaction.rule_in(texts)
        made = KeptSession(
            id=session.id,
            token=token,
            created=session.created,
            updated=now,
            expires=last_day(now, self.days),
            version=session.version,
            tools=tools,
            said=said,
            turns=sum(one.role == "assistant" for one in messages),
            questions=sum(one.role == "user" for one in messages) + session.rewritten,
            answer=messages[-1].text,
            complete=complete,
        )
        with self._lock_of(session.id):
            new, stored = not session.recorded, self._stored(session.id) if session.recorded else None
            matched = (None if stored is None else stored.rule, session.rule, rule)
            session.rule = next((one for one in matched if one is not None), None)
            if turn.subagent:
                if stored is None:
                    return False
                made, checked = stored.model_copy(update={"updated": now, "expires": made.expires}), None
            made = made.model_copy(update={"nodes": tuple(session.nodes), "rule": session.rule})
            kept = self.files.put(self._redacted(_with(made, checked)), new=new, branch_of=session.branch_of)
            session.recorded = True
            return kept

    def set_aside(self, name: str, node: int, why: str) -> None:
        """Stores why a turn is not trained on; nothing for a session that was deleted or redacted. Raises OSError,
        KeptSessionError."""
        with self._lock_of(name):
            stored = self._stored(name)
            if stored is not None and node < len(stored.nodes):
                nodes = [one.model_copy(update={"why": one.why or why}) if at == node else one
                         for at, one in enumerate(stored.nodes)]  # fmt: skip
                self.files.put(stored.model_copy(update={"nodes": tuple(nodes)}), new=False)

    def judge(self, kept: KeptSession, checked: CheckedAnswer) -> bool:
        """Adds a verdict to a stored gateway session. Returns False if it has a newer turn than `kept`. Raises OSError,
        KeptSessionError (for a deleted session too)."""
        with self._lock_of(kept.id):
            now = self.files.get(kept.id)
            if (now.said, now.answer, now.complete) != (kept.said, kept.answer, kept.complete):
                return False
            return self.files.put(self._redacted(_with(now, checked)), new=False)

    def _stored(self, name: str) -> KeptSession | None:
        try:
            return self.files.get(name)
        except KeptSessionError:
            return None  # deleted: it is not written again

    def _lock_of(self, name: str) -> threading.Lock:
        return self._locks[hash(name) % len(self._locks)]

    def _redacted(self, session: KeptSession) -> KeptSession:
        checked: list[object] = [session.submission]
        if session.spec is not None:
            checked += [SPEC.dump_python(session.spec, mode="json"), SPEC.dump_json(session.spec).decode()]
        if session.verdict is not None:
            checked += [session.verdict.model_dump(mode="json"), session.verdict.model_dump_json()]
        rule = session.rule or self.redaction.rule_in(checked)
        if rule is None:
            return session
        update = {"rule": rule, "said": (), "nodes": (), "tools": (), "answer": ""}
        return session.model_copy(update=update | {"submission": None, "spec": None, "verdict": None})


def _with(session: KeptSession, checked: CheckedAnswer | None) -> KeptSession:
    if checked is None:
        return session
    update = {"submission": checked.submission, "spec": checked.spec, "verdict": checked.verdict}
    return session.model_copy(update=update)


def _shown(message: SentMessage) -> str:
    called = [f"{one.function.name} {one.function.arguments}" for one in message.tool_calls or ()]
    return "\n".join(filter(None, (message.text, *called)))
