"""Changing something that people share: with nobody else in between, written down, and told to open pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, Header, Response

from weakspot.web.roles import Person
from weakspot.web.server_parts import Anyone, Parts, ServerParts
from weakspot.web.state.changes import NewChange, keep_change, refuse_stale

LARGEST_NUMBER = 2**31 - 1
SEEN = "X-Seen-Change"
MADE = "X-Change"


class Changing:
    """A request that changes something.

    Args:
        parts: what the server holds.
        person: who asks.
        seen: number of the last change that the page knew of.
        response: gets the number of the new one.
    """

    def __init__(
        self, parts: ServerParts, person: Person, seen: int | None, response: Response
    ) -> None:
        self.parts = parts
        self.person = person
        self.seen = seen
        self._response = response

    @contextmanager
    def alone(self, *subjects: str) -> Iterator[None]:
        """Be the only one who changes the project; refused if one of these things was changed since the page saw it.

        Raises:
            RefusedError: 409 with what was done meanwhile.
        """
        with self.parts.workspace.editing():
            for subject in subjects:
                refuse_stale(self.parts.state, subject, self.seen)
            yield

    def change(self, kind: str, subject: str, sentence: str, **data: Any) -> NewChange:
        return NewChange(
            kind=kind, subject=subject, sentence=sentence, by=self.person.name, data=data
        )

    def note(self, kind: str, subject: str, sentence: str, **data: Any) -> None:
        """Write down what was done."""
        self.told(keep_change(self.parts.state, self.change(kind, subject, sentence, **data)))

    def told(self, number: int) -> None:
        """Tell the page the number of its change, and all others that there is one."""
        self._response.headers[MADE] = str(number)
        self.parts.live.nudge()


def _changing(
    parts: Parts,
    person: Anyone,
    response: Response,
    seen: Annotated[
        int | None,
        Header(
            alias=SEEN,
            ge=0,
            le=LARGEST_NUMBER,
            description="Number of the last change that the page knew of; a newer one of the same thing is not overwritten.",
        ),
    ] = None,
) -> Changing:
    return Changing(parts, person, seen, response)


ChangingNow = Annotated[Changing, Depends(_changing)]


def slice_subject(slice_id: str) -> str:
    return f"slice {slice_id}"


def repair_subject(run_id: str) -> str:
    return f"repair {run_id}"
