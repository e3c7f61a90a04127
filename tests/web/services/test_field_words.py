from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from weakspot.web.services.view import UNLIKE_AN_ID, field_words


def _refuse(text: str) -> str:
    raise ValueError("Say something.")


class _Asked(BaseModel):
    slice_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] = "0" * 12
    words: Annotated[str, AfterValidator(_refuse)] = "green"
    number: Annotated[int, Field(ge=0)] = 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slice_id": "nonsense"}, UNLIKE_AN_ID),
        ({"words": ""}, "Say something."),
        ({"number": -1}, "Input should be greater than or equal to 0"),
    ],
    ids=["pattern", "own words", "bound"],
)
def test_field_words__no_pattern_and_no_prefix(given, said):
    with pytest.raises(ValidationError) as refused:
        _Asked.model_validate(given)
    assert field_words(refused.value.errors()[0]) == said
