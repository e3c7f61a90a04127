"""What somebody needs to run a model file without this package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from weakspot.backends.preprocessing import Preprocessing


@dataclass(frozen=True, kw_only=True)
class PlainModel:
    """A model file that a plain library runs.

    Args:
        kind: what runs it.
        path: the user's own file.
        preprocessing: how an image becomes its input.
        class_names: its answers in their order, None if they are those of the data set.
        has_one_score: whether one score decides between two classes.
        input_name: of an ONNX graph.
        output_name: of an ONNX graph: where the scores are.
        batch: images that the graph takes at once, None if any number.
    """

    kind: Literal["onnx", "torchscript"]
    path: Path
    preprocessing: Preprocessing
    class_names: tuple[str, ...] | None = None
    has_one_score: bool = False
    input_name: str = ""
    output_name: str = ""
    batch: int | None = None


@runtime_checkable
class RunsPlainly(Protocol):
    """A classifier that may be a file which a plain library runs."""

    def plain_model(self) -> PlainModel | None:
        """Return the file and how to use it; None if it takes more than that."""


def plain_model_of(classifier: object) -> PlainModel | None:
    """Return the file of a classifier and how to use it, None if it takes more than that."""
    return classifier.plain_model() if isinstance(classifier, RunsPlainly) else None
