"""What a torch module says of a data set in memory, batch by batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from weakspot.backends.torch.device import require_torch
from weakspot.core.errors import DataError, ModelError

PURPOSE = "Asking a PyTorch module"
BATCH = 32


def ask_module(module: Any, data: Any) -> dict[str, object]:
    """Return images, labels and probabilities of a data set or a loader of pairs of tensor and label.

    The module is asked in evaluation mode, without gradients, where its weights are; then it is as it was.
    Images are the files of the data set where it names them (`samples`, as torchvision's folders do), else the tensors.

    Raises:
        DataError: if the data set gives no pairs.
        ModelError: if the module gives no scores [n, classes].
    """
    torch = require_torch(PURPOSE)
    device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
    was_training = module.training
    images: list[Any] = []
    labels: list[Any] = []
    scores: list[Any] = []
    module.eval()
    try:
        with torch.inference_mode():
            for tensors, answers in _batches(torch, data):
                told = _asked(module, tensors, device)
                told = getattr(told, "logits", told)
                if getattr(told, "ndim", 0) != 2 or len(told) != len(tensors):  # noqa: PLR2004
                    raise ModelError(
                        "The module gives no scores [n, classes].",
                        given=tuple(getattr(told, "shape", ())),
                        fix="Give a classifier, or its predictions.",
                    )
                scores.append(torch.softmax(told.float(), dim=1).cpu().numpy())
                images += list(tensors.cpu().numpy())
                labels += answers.tolist()
    finally:
        module.train(was_training)
    files = _files(data, len(labels))
    return {
        "images": images if files is None else files,
        "labels": labels,
        "probabilities": np.concatenate(scores),
    }


def _asked(module: Any, tensors: Any, device: Any) -> Any:
    try:
        return module(tensors.to(device))
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ModelError(
            f"The module cannot take a batch of the data set: {str(error).splitlines()[0]}",
            given=tuple(getattr(tensors, "shape", ())) or type(tensors).__name__,
            fix="Give the data set with the transforms that the module was trained with.",
        ) from error


def _batches(torch: Any, data: Any) -> Iterator[tuple[Any, Any]]:
    loader = (
        data
        if hasattr(data, "batch_size") and hasattr(data, "dataset")
        else torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=False)
    )
    if not _is_in_order(loader):
        raise DataError(
            "The loader shuffles, so that members could not be told by their place.",
            fix="Give the data set itself, or a loader with shuffle=False.",
        )
    for batch in loader:
        if not isinstance(batch, (list, tuple)) or len(batch) < 2:  # noqa: PLR2004
            raise DataError(
                "The data set gives no pairs of image and label.",
                given=type(batch).__name__,
                fix="Give images, labels and predictions by name instead.",
            )
        yield batch[0], batch[1]


def _is_in_order(loader: Any) -> bool:
    """Return whether a loader draws every sample once, first to last; one that draws from a stream has no order to keep."""
    known = ("SequentialSampler", "BatchSampler", "_InfiniteConstantSampler", "NoneType")
    samplers = (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    return all(type(sampler).__name__ in known for sampler in samplers)


def _files(data: Any, n_samples: int) -> list[str] | None:
    if hasattr(data, "batch_size") and hasattr(data, "dataset"):
        data = data.dataset
    known = getattr(data, "samples", None)
    if not isinstance(known, list) or len(known) != n_samples:
        return None
    return [str(entry[0]) for entry in known if isinstance(entry, tuple)] or None
