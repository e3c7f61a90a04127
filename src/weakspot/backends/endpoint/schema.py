"""What is sent to a classification endpoint and what may come back. docs/reference/endpoint.md shows it."""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError

N_SHOWN = 5


def _number(value: Any) -> Any:
    """Refuse what pydantic would turn into a number: true, "0.5", NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no number")
    if not math.isfinite(value):
        raise ValueError("is NaN or infinite")
    return value


Number = Annotated[float, BeforeValidator(_number)]


class Prediction(BaseModel):
    """What the endpoint says of one image.

    Args:
        probabilities: probability by class name, or a list in the order of `class_names`.
        features: input of the last linear layer, if the endpoint gives it.
    """

    model_config = ConfigDict(frozen=True)

    probabilities: dict[str, Number] | list[Number]
    features: list[Number] | None = None


class Answer(BaseModel):
    """The whole answer; further fields are ignored."""

    model_config = ConfigDict(frozen=True)

    predictions: list[Prediction] = Field(description="one entry an instance, in the same order")


def request_body(encoded: Sequence[AnyArray]) -> dict[str, Any]:
    return {
        "instances": [
            {"image": {"b64": base64.b64encode(image.tobytes()).decode("ascii")}}
            for image in encoded
        ]
    }


def parse_answer(content: bytes, *, n_images: int, where: str) -> tuple[Prediction, ...]:
    """Return the predictions in an answer.

    Raises:
        ModelError: if the answer is no JSON, does not fit the schema, or has another number of predictions.
    """
    try:
        answer = Answer.model_validate_json(content)
    except ValidationError as error:
        raise ModelError(
            f"The endpoint's answer does not fit the schema: {_problems(error)}",
            where=where,
            given=content[:80].decode("utf-8", "replace"),
            fix='Answer {"predictions": [{"probabilities": {...}}]}; see docs/reference/endpoint.md.',
        ) from error
    if len(answer.predictions) != n_images:
        raise ModelError(
            f"The endpoint gave {len(answer.predictions)} predictions for {n_images} images.",
            where=where,
        )
    return tuple(answer.predictions)


def probability_rows(
    predictions: Sequence[Prediction], class_names: tuple[str, ...] | None, *, where: str
) -> list[Sequence[float]]:
    """Return one list of probabilities an image, in the order of the classes."""
    return [_row(prediction.probabilities, class_names, where=where) for prediction in predictions]


def feature_rows(predictions: Sequence[Prediction], *, where: str) -> list[list[float]] | None:
    rows = [prediction.features for prediction in predictions if prediction.features is not None]
    if not rows:
        return None
    if len(rows) != len(predictions) or len({len(row) for row in rows}) != 1:
        raise ModelError(
            "The endpoint gave features for some images only, or of different lengths.", where=where
        )
    return rows


def _row(
    probabilities: Mapping[str, float] | Sequence[float],
    class_names: tuple[str, ...] | None,
    *,
    where: str,
) -> Sequence[float]:
    if not isinstance(probabilities, Mapping):
        if class_names is not None and len(probabilities) != len(class_names):
            raise ModelError(
                f"The endpoint gave {len(probabilities)} probabilities for {len(class_names)} classes.",
                where=where,
            )
        return probabilities
    if class_names is None:
        raise ModelError(
            "The endpoint names its classes, but their order is not known.",
            where=where,
            fix=f"Set class_names = {sorted(probabilities)}.",
        )
    missing = [name for name in class_names if name not in probabilities]
    unknown = sorted(set(probabilities) - set(class_names))
    if missing or unknown:
        raise ModelError(
            f"The endpoint's classes are not the configured ones: missing {missing[:N_SHOWN]}, unknown {unknown[:N_SHOWN]}.",
            where=where,
        )
    return [probabilities[name] for name in class_names]


def _problems(error: ValidationError) -> str:
    lines = [
        f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
        for item in error.errors()[:N_SHOWN]
    ]
    return "; ".join(lines)
