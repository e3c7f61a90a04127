"""The gate: who is asking, and whether a request that changes something comes from our own page."""

import hmac

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from weakspot.web.gate.sessions import COOKIE, person_with, request_token_of
from weakspot.web.problems import Problem, problem_response

REQUEST_TOKEN_HEADER = "x-weakspot-token"
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
ENTRANCES = frozenset({"/api/session"})


class Gate(BaseHTTPMiddleware):
    """Puts the person into the request; refuses changes without the request token of the session."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Let a request through, or not."""
        token = request.cookies.get(COOKIE, "")
        request.state.person = person_with(request.app.state.parts, token) if token else None
        request.state.request_token = request_token_of(token)
        is_entering = request.method == "POST" and request.url.path in ENTRANCES
        if request.method not in HARMLESS and not is_entering:
            given = request.headers.get(REQUEST_TOKEN_HEADER, "")
            if not hmac.compare_digest(given.encode(), request_token_of(token).encode()):
                return problem_response(403, Problem(what="The request does not come from a page of this server."))
        return await call_next(request)
