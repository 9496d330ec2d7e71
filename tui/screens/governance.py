"""The screen Policy: audit log entries, the policy file in force, valid keys, and the rest of the quarter's budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, ApiError, AuditBefore, AuditLine, BudgetView, Keys, PolicyInForce, Status
from tui.widgets.dialogs import ReadingScreen
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import BAD, CARE, DIM, GOOD, STRONG, Row, Table, add_field, plain, short
from tui.widgets.view import Answers, ApiQuestion

MOST_CHARACTERS = 20_000
TOLD = ("outcome", "verdict", "job", "state", "stage", "candidate", "manifest", "person", "step", "reason", "message")
"""Fields of an entry, or of the record in it, that summarize its content."""
OF_A_RECORD = ("cycle", "evaluation", "artifact", "step", "answers")
"""Kinds of entries that carry only a record's name and digest."""


class Rules(NamedTuple):
    policy: PolicyInForce
    keys: Keys
    budget: BudgetView | ApiError


def row(line: AuditLine) -> Row:
    return Row(
        str(line.number),
        (
            plain(str(line.number), DIM),
            plain(line.at[:16].replace("T", " "), DIM),
            plain(line.kind, limit=18),
            plain(what_of(line), DIM, limit=200),
        ),
    )


def _moved(line: AuditLine) -> str:
    """Lists the model aliases that an audit entry moved, with their new models; empty if the entry does not say."""
    before, after = line.what.get("before"), line.what.get("after")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ""
    changed = [(name, digest) for name, digest in after.items() if before.get(name) != digest]
    return ", ".join(f"{name} -> {short(str(digest)) if digest else 'none'}" for name, digest in changed)


def what_of(line: AuditLine) -> str:
    """Summarizes an audit entry: its figures (decision, subject, person), else the key of its record."""
    if line.kind == "aliases" and (moved := _moved(line)):
        return moved
    known: dict[str, object] = {}
    for name, value in line.what.items():
        if name != "row":
            known |= value if isinstance(value, dict) else {name: value}
    told = [_told(name, known[name]) for name in TOLD if _is_short(known.get(name))]
    row = line.what.get("row")
    if isinstance(row, dict) and line.kind in OF_A_RECORD:
        told.append(str(row.get("key", "")))
    return ", ".join(told) or ", ".join(
        f"{name} {value[:24] if isinstance(value, str) else value}" for name, value in known.items() if _is_short(value)
    )


def _is_short(value: object) -> bool:
    return isinstance(value, (str, int, float)) and value != ""


def _told(name: str, value: object) -> str:
    text = str(value)
    if name in ("candidate", "manifest"):
        return short(text)
    return text if isinstance(value, str) else f"{name} {text}"


def detail(line: AuditLine, status: Status | None = None) -> Text:
    text = plain(f"{line.kind}\n", STRONG, lines=True)
    add_field(text, "entry", line.number)
    add_field(text, "at", line.at)
    for name, value in line.what.items():
        shown = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        text.append_text(plain(f"{name}  ", DIM))
        text.append_text(plain(shown, limit=MOST_CHARACTERS, lines=True))
        text.append("\n")
    text.append("\n`assay audit verify` checks every entry's signature and the chain.\n", DIM)
    return text


def rules_text(rules: Rules) -> Text:
    policy, keys, budget = rules
    text = plain(f"policy {policy.digest}\n", STRONG, lines=True)
    add_field(text, "number", f"{policy.number}; {policy.people} person(s) sign an edit")
    if policy.unsigned:
        add_field(text, "unsigned", f"the file was edited ({short(policy.unsigned)}): run `assay policy sign`", CARE)
    if isinstance(budget, ApiError):
        add_field(text, "budget", f"{budget}: {budget.hint}", BAD)
    else:
        left = f"{budget.left} of {budget.candidates} candidates left in {budget.quarter}"
        add_field(text, "budget", f"{left}, each needs odds of {budget.needed:.3g} to 1")
        for one in budget.evidence:
            odds = f"odds {one.odds:.3g} to 1 over {one.nights} night(s), {one.gained} gained, {one.lost} lost"
            add_field(text, f"  {short(one.candidate)}", odds)
    text.append(f"\nkeys: {keys.people} person(s) approve, for {keys.valid_hours:g} hours\n", DIM)
    for key in keys.keys:
        text.append("  ✓ " if key.valid else "  ✗ revoked ", GOOD if key.valid else BAD)
        text.append_text(plain(f"{key.person}  {key.fingerprint}  {key.admitted_at[:16]}\n", lines=True))
    text.append("\n")
    text.append_text(plain(policy.content, lines=True))
    return text


class GovernancePane(TablePane):
    TABLE = Table(
        name="audit",
        columns=(("entry", 6), ("at", 16), ("kind", 18), ("what", 60)),
        empty="No entry yet.",
        row=row,
        detail=detail,
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f", "rules", "policy file")]
    KEYS = (*TablePane.KEYS, ("f", "show the policy file, the keys and the quarter's budget"))

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[AuditLine]:
        return client.audit(AuditBefore(before=None if before is None else int(before)), limit=PAGE)

    def questions(self) -> dict[str, ApiQuestion]:
        return {**super().questions(), "rules": ApiQuestion("rules", _read_rules, seconds=5.0)}

    def show(self, status: Status, answers: Answers) -> None:
        super().show(status, answers)

    def line(self, status: Status) -> Text:
        text = plain(f"policy {short(status.policy)}", STRONG)
        rules: Rules | None = self._answers.get("rules")
        if rules is not None:
            people = sum(key.valid for key in rules.keys.keys)
            text.append(f"  {people} key{'' if people == 1 else 's'}", DIM)
            if not isinstance(rules.budget, ApiError):
                text.append(f", {rules.budget.left} of {rules.budget.candidates} candidates left", DIM)
        if status.tampered:
            text.append_text(plain(f"  tampered with: {status.tampered}", BAD, limit=80))
        else:
            text.append("  ledger ✓ as the log says", GOOD)
        return text

    def action_rules(self) -> None:
        rules = self._answers.get("rules")
        if rules is None:
            self.host.say("The policy is not read yet.")
        else:
            self.app.push_screen(ReadingScreen("policy in force", rules_text(rules)))


def _read_rules(client: ApiClient, status: Status) -> Rules:
    budget: BudgetView | ApiError
    try:
        budget = client.budget()
    except ApiError as error:
        budget = error
    return Rules(client.policy(), client.keys(), budget)
