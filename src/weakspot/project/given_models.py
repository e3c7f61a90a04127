"""Predictions of a model in memory: a module, an estimator or a function is asked; data sets of PyTorch and Hugging Face are read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import DataError, ModelError

BATCH = 32


def samples_of(data: Any, model: Any, given: dict[str, object]) -> dict[str, object]:
    """Return images and labels of a data set, and what a model says of them.

    Raises:
        DataError: if it is no data set that is known.
    """
    if hasattr(data, "features") and hasattr(data, "column_names"):
        if not hasattr(data, "__len__"):
            raise DataError(
                "A data set that is streamed has no places to tell members by.",
                given=type(data).__name__,
                fix="Load it without streaming, or take a part: Dataset.from_list(list(data.take(5000))).",
            )
        return {**_hub_samples(data), **given}
    if _is_module(model) and hasattr(data, "__len__"):
        from weakspot.models.torch.network import ask_module

        asked = ask_module(model, data)
        return {**asked, **_names_of(data), **given}
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, str):
        pairs = [data[place] for place in range(len(data))]
        if not all(isinstance(pair, (tuple, list)) and len(pair) > 1 for pair in pairs):
            raise DataError(
                "The data set gives no pairs of image and label.",
                given=type(pairs[0]).__name__ if pairs else "no samples",
                fix="Give images, labels and predictions by name instead.",
            )
        found = {"images": [pair[0] for pair in pairs], "labels": [pair[1] for pair in pairs]}
        return {**found, **_names_of(data), **given}
    raise DataError(
        "This is neither a table nor a data set.",
        given=type(data).__name__,
        fix="Give a data frame, a data set of PyTorch or Hugging Face, or labels and predictions by name.",
    )


def answers_of(model: Any, given: dict[str, object]) -> dict[str, object]:
    """Return what was given with the model's predictions for it.

    Raises:
        ModelError: if it is not clear how to ask the model.
    """
    if hasattr(model, "predict"):
        return _estimated(model, given)
    if _is_module(model):
        raise ModelError(
            "A module is asked with tensors, but there is no data set of tensors.",
            given=type(model).__name__,
            fix="Give the data set as the first argument, find(dataset, model=module), or give its predictions.",
        )
    if not callable(model):
        raise ModelError(
            "It is not clear how to ask this model.",
            given=type(model).__name__,
            fix="Give a function of a list of images, an estimator with predict, or predictions.",
        )
    images = given.get("images")
    if images is None:
        raise DataError("There are no images to ask the model about.", fix="Give images.")
    if not hasattr(images, "__getitem__"):
        images = list(images)  # type: ignore[call-overload]
    return {**given, "images": images, **_told(model, images)}


def _is_module(model: object) -> bool:
    return hasattr(model, "parameters") and hasattr(model, "state_dict")


def _names_of(data: Any) -> dict[str, object]:
    names = getattr(data, "classes", None)
    return {"class_names": list(names)} if names is not None and not callable(names) else {}


def _hub_samples(data: Any) -> dict[str, object]:
    """Return what a data set of Hugging Face holds; the first column of images and the first of class labels are taken."""
    features = data.features
    kinds = {name: type(kind).__name__ for name, kind in features.items()}
    image = next((name for name, kind in kinds.items() if kind == "Image"), None)
    label = next((name for name, kind in kinds.items() if kind == "ClassLabel"), None)
    if label is None and "label" in features:
        label = "label"
    if label is None:
        raise DataError(
            "The data set has no column of class labels.", given=list(features), fix="Give labels."
        )
    found: dict[str, object] = {"labels": list(data[label])}
    if hasattr(features[label], "names"):
        found["class_names"] = list(features[label].names)
    if image is not None:
        found["images"] = _Column(data, image)
    free = [name for name, kind in kinds.items() if kind == "Value" and name != label]
    if free:
        found["metadata"] = {name: list(data[name]) for name in free}
    return found


class _Column(Sequence[Image.Image]):
    """One column of a data set, read when asked: images are not all in memory at once."""

    def __init__(self, data: Any, name: str) -> None:
        self._data, self._name = data, name

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._data)

    def __getitem__(self, place: Any) -> Any:
        """Return the image of a sample."""
        return self._data[place][self._name]


def _estimated(model: Any, given: dict[str, object]) -> dict[str, object]:
    features = given.get("embeddings")
    if features is None:
        raise DataError(
            "There is nothing to ask the estimator with.",
            given=type(model).__name__,
            fix="Give embeddings, the features that it was fitted on.",
        )
    names = list(getattr(model, "classes_", ()))
    if hasattr(model, "predict_proba") and names and "class_names" not in given:
        return {**given, "probabilities": model.predict_proba(features), "class_names": names}
    return {**given, "predictions": model.predict(features)}


def _told(model: Callable[[list[Any]], Any], images: Any) -> dict[str, object]:
    answers = [answer for batch in _batches(images) for answer in _answers(model, batch)]
    if not answers:
        raise DataError("There are no images to ask the model about.", fix="Give images.")
    if isinstance(answers[0], (list, tuple)) and answers[0] and isinstance(answers[0][0], dict):
        return {"predictions": [max(answer, key=_score)["label"] for answer in answers]}
    if isinstance(answers[0], dict):
        return {"predictions": [answer["label"] for answer in answers]}
    if np.ndim(answers[0]) == 1:
        return {"probabilities": _rows(answers)}
    return {"predictions": answers}


def _answers(model: Callable[[list[Any]], Any], batch: list[Any]) -> list[Any]:
    told = model(batch)
    if not hasattr(told, "__iter__") or len(told) != len(batch):
        raise ModelError(
            f"The model gave {len(told) if hasattr(told, '__len__') else 'no'} answers for {len(batch)} images.",
            given=type(told).__name__,
            fix="It must give one answer for every image of the list that it gets.",
        )
    return [one.detach().cpu().numpy() if hasattr(one, "detach") else one for one in told]


def _score(answer: dict[str, Any]) -> float:
    return float(answer["score"])


def _batches(images: Any) -> Iterator[list[Any]]:
    for first in range(0, len(images), BATCH):
        yield [images[place] for place in range(first, min(first + BATCH, len(images)))]


def _rows(answers: Sequence[Any]) -> FloatArray:
    return np.stack([np.asarray(answer, dtype=np.float32) for answer in answers])
