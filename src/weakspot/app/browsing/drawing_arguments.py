"""What work that draws pictures can be told."""

from typing import Annotated

from pydantic import Field, StringConstraints

from weakspot.app.browsing.view import View

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Caption = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MOST_CAPTIONS, MOST_EACH, MOST_BUDGET = 12, 200, 20_000


class CounterfactualArguments(View):
    """Captions to be drawn and measured.

    Args:
        class_name: what the pictures show.
        captions: what is changed in them.
        n_each: pictures for every caption.
        agreed_cost: what the person agreed to pay at most; 0 if nothing.
    """

    class_name: ClassName
    captions: tuple[Caption, ...] = Field(min_length=1, max_length=MOST_CAPTIONS)
    n_each: int = Field(default=24, ge=1, le=MOST_EACH)
    agreed_cost: float = Field(default=0.0, ge=0.0, le=1e6, allow_inf_nan=False)


class SearchArguments(View):
    """Where failing captions are searched for.

    Args:
        class_name: whose failures.
        target: count only failures that are taken for this class; any if empty.
        captions: a person's own captions, measured first.
        budget: most pictures in all.
        agreed_cost: what the person agreed to pay at most; 0 if nothing.
    """

    class_name: ClassName
    target: str = Field(default="", max_length=500)
    captions: tuple[Caption, ...] = Field(default=(), max_length=MOST_CAPTIONS)
    budget: int | None = Field(default=None, ge=16, le=MOST_BUDGET)
    agreed_cost: float = Field(default=0.0, ge=0.0, le=1e6, allow_inf_nan=False)
