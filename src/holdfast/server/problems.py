"""What an answer says that is no success: one shape for every fault, whoever found it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from holdfast.base.errors import HoldfastError, code_of, http_status
from holdfast.model.base import Value
from holdfast.server.models import UndoneReport
from holdfast.workflows.originals import UnconfirmedCommandsError
from holdfast.workflows.service import UndoneWorkError

log = logging.getLogger("holdfast.server")

_MOST_FAULTS = 20


class Fault(Value):
    where: str = Field(description="Location in the request, such as `body.tasks.3.id`")
    what: str


class CommandsToConfirm(Value):
    """What an imported session would run; texts are those of its plan: not to be trusted."""

    commands: tuple[str, ...]
    digest: str = Field(description="Resume with it as `accept_commands` to run exactly these")


class ErrorDetail(Value):
    code: str = Field(description="Error code: `not_found`, `illegal_transition`, `unauthorised`, …")
    message: str = Field(description="Human-readable description")
    hint: str | None = Field(default=None, description="What to do next")
    faults: tuple[Fault, ...] = Field(default=(), description="What is invalid in the request, by location")
    confirm: CommandsToConfirm | None = Field(
        default=None, description="With `unconfirmed_commands`: what to read and confirm first"
    )
    undone: UndoneReport | None = Field(
        default=None, description="With `undone_work`: what to restore, or to continue without"
    )


class ErrorResponse(Value):
    """A problem as RFC 9457 describes one, `application/problem+json`; `error` says more."""

    type: str = Field(description="`urn:holdfast:error:` and the error code")
    title: str
    status: int
    detail: str
    error: ErrorDetail


PROBLEM = "application/problem+json"


class RefusedError(Exception):
    """Refused for what the request is, before anybody looked at what it wants."""

    def __init__(self, status: int, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.detail = ErrorDetail(code=code, message=message, hint=hint)


_OWN = {
    400: "the request is malformed, or its body is not JSON",
    401: "missing or wrong token",
    403: "the Host or Origin is not allowed, or the token does not allow this",
    404: "not found",
    405: "method not allowed",
    409: "conflict: not possible in the current state, or held by another process",
    410: "the link was used or has expired",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "the request is invalid; `faults` says where",
    500: "the stored data is damaged, or an internal error occurred",
    503: "the database cannot be reached",
}

ANYWHERE = (400, 401, 403, 500, 503)
WITH_BODY = (413, 415, 422)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: these, and those that any request may meet."""
    return {
        status: {"model": ErrorResponse, "description": _OWN[status]}
        for status in sorted({*statuses, *ANYWHERE})
    }


def answer(status: int, detail: ErrorDetail, headers: Mapping[str, str] | None = None) -> Response:
    # A name in a message may hold half of a character: it is shown as it can be.
    sound = _sound(detail)
    document = ErrorResponse(
        type=f"urn:holdfast:error:{sound.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=sound.message,
        error=sound,
    )
    return Response(document.model_dump_json(), status, headers, media_type=PROBLEM)


def _sound(detail: ErrorDetail) -> ErrorDetail:
    def cleaned(text: str) -> str:
        return text.encode(errors="replace").decode()

    return detail.model_copy(
        update={
            "message": cleaned(detail.message),
            "hint": cleaned(detail.hint) if detail.hint else None,
            "faults": tuple(Fault(where=cleaned(one.where), what=cleaned(one.what)) for one in detail.faults),
            "confirm": detail.confirm
            and detail.confirm.model_copy(update={"commands": tuple(map(cleaned, detail.confirm.commands))}),
        }
    )


def refusal(error: RefusedError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
    return answer(error.status, error.detail, headers)


def install_error_handlers(app: FastAPI) -> None:
    """Every way a request can fail ends here."""

    @app.exception_handler(HoldfastError)
    async def ours(_: Request, error: HoldfastError) -> Response:
        detail = ErrorDetail(
            code=code_of(type(error)),
            message=error.message or "failed",
            hint=error.hint,
            confirm=_to_confirm(error),
            undone=_undone(error),
        )
        return answer(http_status(error), detail)

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> Response:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return answer(422, _invalid(error.errors()))

    @app.exception_handler(WebSocketRequestValidationError)
    async def unfit_socket(websocket: WebSocket, error: WebSocketRequestValidationError) -> None:
        await websocket.send_denial_response(answer(422, _invalid(error.errors())))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        headers = {"Allow": ", ".join(sorted(_methods(app, request)))} if error.status_code == 405 else None
        return answer(error.status_code, _of_http(error), headers)

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> Response:
        log.error("unexpected: %s", error, exc_info=error)
        detail = ErrorDetail(code="unexpected", message="internal error", hint="see the server log")
        return answer(500, detail)


def _to_confirm(error: HoldfastError) -> CommandsToConfirm | None:
    if not isinstance(error, UnconfirmedCommandsError):
        return None
    return CommandsToConfirm(commands=tuple(error.commands), digest=error.digest)


def _undone(error: HoldfastError) -> UndoneReport | None:
    if not isinstance(error, UndoneWorkError):
        return None
    return UndoneReport.model_validate(error.undone)


def _invalid(errors: Sequence[Any]) -> ErrorDetail:
    faults = tuple(
        Fault(where=".".join(map(str, one["loc"])) or "request", what=one["msg"])
        for one in errors[:_MOST_FAULTS]
    )
    told = "; ".join(f"{one.where}: {one.what}" for one in faults[:3])
    return ErrorDetail(
        code="invalid_input",
        message=f"the request is invalid: {told}",
        hint="see /api/openapi.json",
        faults=faults,
    )


def _methods(app: FastAPI, request: Request) -> set[str]:
    """All that an address takes: the framework names those of its first route only."""

    def is_taken(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in app.routes)

    return {method for method in ("DELETE", "GET", "PATCH", "POST", "PUT") if is_taken(method)}


def _of_http(error: HTTPException) -> ErrorDetail:
    known = {
        404: ("not_found", "not found"),
        405: ("method_not_allowed", "method not allowed"),
    }
    code, message = known.get(error.status_code, ("bad_request", str(error.detail)))
    return ErrorDetail(code=code, message=message, hint="see /api/openapi.json")
