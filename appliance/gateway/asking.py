"""Reads request bodies, and checks answers for the gateway.

Invariants: a body is bounded in bytes and in time; a verdict comes from a verifier, or from the absence of an answer,
and from nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from appliance.agent.answers import final_answer
from appliance.agent.judging import VERIFIER, VERSION
from appliance.gateway.keeping import CheckedAnswer
from appliance.gateway.replies import GatewayError
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import check_spec, kind_of
from verifiers.registry.spec import Spec

MAX_BODY_BYTES = 8 << 20
BODY_SECONDS = 30.0
"""Time limit for receiving a request body, in seconds."""
CHECKS_AT_ONCE = 2

M = TypeVar("M", bound=BaseModel)


class AnswerChecker(Protocol):
    """Interface of `verifiers.checker.Checker` that the gateway uses."""

    def check_many(
        self, pairs: Sequence[tuple[Spec, str]], seconds: float | None = None
    ) -> list[Verdict | SpecProblem]: ...


async def read_body(request: Request, shape: type[M], seconds: float = BODY_SECONDS) -> M:
    """Reads a request's JSON body and parses it into `shape`. Raises GatewayError for an invalid one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise GatewayError(415, "send application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise GatewayError(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
    except TimeoutError as error:
        raise GatewayError(408, f"the body took longer than {seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise GatewayError(400, "the body is incomplete") from error
    try:
        return await run_in_threadpool(shape.model_validate_json, bytes(body))
    except RecursionError as error:
        raise GatewayError(400, "the body is nested too deeply") from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])[:200]
        refused = fault["type"] in ("extra_forbidden", "literal_error", "none_required")
        refused |= fault["loc"][:1] in (("stop",), ("logit_bias",))
        said = "is not supported here" if refused else fault["msg"]
        raise GatewayError(400, f"{where or 'the body'}: {said}", param=where or None) from error


def require_check(spec: Spec) -> None:
    """Raises GatewayError for a spec that cannot be used, or that judges no answer."""
    try:
        check_spec(spec)
    except SpecError as error:
        raise GatewayError(400, f"the check cannot be used: {error}: {error.hint}", param="assay.check") from error
    if kind_of(spec).answer_form(spec) is AnswerForm.WORLD:
        raise GatewayError(400, "this check judges a world, not an answer", param="assay.check")


class AnswerChecks:
    """Checks answers at the gateway against specs, `CHECKS_AT_ONCE` concurrently."""

    def __init__(self, checker: AnswerChecker) -> None:
        self._checker = checker
        self._turn = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check(self, spec: Spec, text: str, *, complete: bool) -> CheckedAnswer:
        """Returns the final answer in a last turn's text, with its verdict; no answer or several fail without a
        verifier. Raises GatewayError for a check that turns out to be unusable."""
        final = final_answer(text, kind_of(spec).answer_form(spec))
        if not complete:
            return CheckedAnswer(None, spec, _failed("the answer was cut off at the limit of tokens"))
        if final.answer is None:
            return CheckedAnswer(None, spec, _failed(f"{final.answers} final answers where exactly one is asked for"))
        async with self._turn:
            found = (await run_in_threadpool(self._checker.check_many, [(spec, final.answer)]))[0]
        if isinstance(found, SpecProblem):
            raise GatewayError(400, f"the check cannot be used: {found.message}", param="assay.check")
        return CheckedAnswer(final.answer, spec, found)


def _failed(reason: str) -> Verdict:
    return Verdict(
        outcome=Outcome.FAIL,
        score=0.0,
        reason=reason,
        ground=Ground.UNREADABLE,
        verifier=VERIFIER,
        version=VERSION,
        seconds=0.0,
    )
