"""The answer to a refused request: the same four things that the command line prints, under a status that the schema names."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from weakspot.core.errors import (
    MissingExtraError,
    NotEnoughDataError,
    StoreError,
    UnavailableError,
    WeakspotError,
)
from weakspot.web.services.view import field_words

MAX_GIVEN_LENGTH = 500


class Problem(BaseModel):
    """Why a request was refused.

    Args:
        what: what is wrong.
        where: the field or thing it is about.
        given: what was found there.
        fix: what to do.
    """

    what: str
    where: str | None = None
    given: str | None = None
    fix: str | None = None


class RefusedError(WeakspotError):
    """A request that cannot be granted.

    Args:
        status: of HTTP.
        what: one sentence on what is wrong.
        where: the field or thing it is about.
        fix: what to do.
        retry_after: in how many seconds it may be granted.
    """

    def __init__(
        self,
        status: int,
        what: str,
        *,
        where: str | None = None,
        fix: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(what, where=where, fix=fix)


STATUSES: tuple[tuple[type[WeakspotError], int], ...] = (
    (StoreError, 409),
    (NotEnoughDataError, 409),
    (MissingExtraError, 424),
    (UnavailableError, 424),
    (WeakspotError, 422),
)
WORDS = {
    400: "The request cannot be understood.",
    401: "Nobody is signed in with this browser.",
    403: "This is not for you to see or do.",
    404: "There is no such thing.",
    405: "This cannot be done here.",
    409: "This cannot be done now.",
    413: "The request is too large.",
    422: "What was given cannot be used.",
    424: "Something that this needs is not there.",
    429: "Too many requests; wait a moment.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text} for status, text in WORDS.items()
}


def problem_response(
    status: int, problem: Problem, *, headers: dict[str, str] | None = None
) -> JSONResponse:
    content = {
        name: None if value is None else _printable(value)
        for name, value in problem.model_dump().items()
    }
    return JSONResponse(content, status_code=status, headers=headers)


def refusal(error: WeakspotError) -> JSONResponse:
    status = (
        error.status
        if isinstance(error, RefusedError)
        else next(code for kind, code in STATUSES if isinstance(error, kind))
    )
    waiting = error.retry_after if isinstance(error, RefusedError) else None
    headers = None if waiting is None else {"Retry-After": str(waiting)}
    given = None if error.given is None else _shown(error.given)
    return problem_response(
        status,
        Problem(what=error.what, where=error.where, given=given, fix=error.fix),
        headers=headers,
    )


def add_handlers(app: FastAPI) -> None:
    """Make the server answer every refusal in the same form."""

    @app.exception_handler(WeakspotError)
    def _refuse(_request: Request, error: WeakspotError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    def _refuse_invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem_response(
            422,
            Problem(
                what=WORDS[422],
                where=where,
                given=_shown(first.get("input")),
                fix=field_words(first),
            ),
        )

    @app.exception_handler(HTTPException)
    def _refuse_http(_request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        return problem_response(
            error.status_code,
            Problem(what=WORDS.get(error.status_code, str(error.detail))),
            headers=headers,
        )


def _shown(value: object) -> str:
    """Return the beginning of whatever was given, also of what cannot be written, such as a number of a million figures."""
    try:
        return str(value)[:MAX_GIVEN_LENGTH]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
