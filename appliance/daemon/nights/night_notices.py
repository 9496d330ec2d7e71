"""Builds the notice of an ended night from the ledger."""

from __future__ import annotations

from appliance.daemon.nights.notices import Notice
from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.curves import step_figures
from appliance.ledger.audited import AuditedLedger
from appliance.records.nights import Night
from appliance.reporting.as_json import as_figures
from appliance.reporting.as_text import as_text
from appliance.reporting.night_report import night_report
from appliance.text.printable import printable


def night_notice(ledger: AuditedLedger, night: Night) -> Notice:
    """Builds the notice about an ended night: the report of its cycle, or the reason why none ran."""
    title = printable(f"Assay: the night of {night.key} is {night.state.value}", limit=120)
    about = {"night": night.model_dump(mode="json")}
    cycle = ledger.cycle(night.cycle) if night.cycle else None
    if cycle is None:
        return Notice(title, printable(night.reason) + "\n", about)
    report = night_report(views.cycle_detail(ledger, cycle), step_figures(ledger, cycle))
    reason = f"{printable(night.reason)}\n\n" if night.reason else ""
    return Notice(title, reason + as_text(report), {**about, "report": as_figures(report).model_dump(mode="json")})
