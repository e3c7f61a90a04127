"""A last linear layer in a file of its own, for every classifier that cannot be written out itself."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.new_files import refuse_existing
from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head

WEIGHT, BIAS = "weight", "bias"
"""Names of the tensors: those of a torch.nn.Linear, whose load_state_dict takes the file as it is."""
METADATA = "weakspot"
VERSION = 1
_MATRIX = 2


def head_bytes(head: Head, class_names: Sequence[str]) -> bytes:
    """Return a head as the content of a safetensors file, the same bytes for the same head.

    Args:
        head: weights [c, d] and bias [c], written as 32-bit numbers.
        class_names: one name a row.
    """
    from safetensors.numpy import save

    _check(head.weights, head.bias, class_names, where="head")
    # One entry only: the library writes several in an order that changes from run to run.
    about = json.dumps(
        {"version": VERSION, "class_names": list(class_names), "task": head.task.value},
        sort_keys=True,
    )
    tensors = {
        WEIGHT: np.ascontiguousarray(head.weights, np.float32),
        BIAS: np.ascontiguousarray(head.bias, np.float32),
    }
    return bytes(save(tensors, metadata={METADATA: about}))


def write_head(path: Path, head: Head, class_names: Sequence[str]) -> None:
    """Write a head as a safetensors file.

    Raises:
        ModelError: if there is such a file already, or the class names do not fit the head.
    """
    content = head_bytes(head, class_names)
    refuse_existing(path.parent, [path.name])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def read_head(path: Path) -> tuple[Head, tuple[str, ...]]:
    """Return a head and the names of its classes from a file that `write_head` wrote.

    Raises:
        ModelError: if the file is no such file, cut short, or holds a head of another kind.
    """
    tensors, metadata = _open(path)
    about = _about(metadata, where=str(path))
    missing = sorted({WEIGHT, BIAS} - set(tensors))
    if missing:
        raise ModelError(
            f"The file holds no head: there is no {' and no '.join(missing)}.",
            where=str(path),
            given=sorted(tensors),
        )
    weights, bias = np.asarray(tensors[WEIGHT], np.float32), np.asarray(tensors[BIAS], np.float32)
    class_names, task = about["class_names"], about["task"]
    _check(weights, bias, class_names, where=str(path))
    return Head(weights=weights, bias=bias, task=Task(task)), tuple(class_names)


def _open(path: Path) -> tuple[dict[str, Any], Mapping[str, str]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelError("There is no such file.", where=str(path), fix="Correct the path.")
    try:
        with safe_open(str(path), framework="numpy") as opened:
            return {
                name: opened.get_tensor(name)
                for name in opened.keys()  # noqa: SIM118
            }, opened.metadata() or {}
    except (SafetensorError, TypeError, ValueError) as error:
        raise ModelError(
            "This is no safetensors file of numbers, or it is cut short.",
            where=str(path),
            fix="Write it again.",
        ) from error


def _about(metadata: Mapping[str, str], *, where: str) -> dict[str, Any]:
    try:
        about = json.loads(metadata.get(METADATA, "null"))
    except ValueError:
        about = None
    if not isinstance(about, dict):
        raise ModelError(
            "The file does not say what it is: it was not written by weakspot.",
            where=where,
            fix="Use write_head.",
        )
    if about.get("version") != VERSION:
        raise ModelError(
            "The head is of another version.",
            where=where,
            given=about.get("version"),
            fix="Update weakspot.",
        )
    names = about.get("class_names")
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or about.get("task") not in tuple(Task)
    ):
        raise ModelError("The file names no classes or no task.", where=where, given=about)
    return about


def _check(
    weights: FloatArray, bias: FloatArray, class_names: Sequence[str], *, where: str
) -> None:
    if weights.ndim != _MATRIX or bias.shape != weights.shape[:1]:
        raise ModelError(
            "A head has weights [c, d] and a bias [c].",
            where=where,
            given=(weights.shape, bias.shape),
        )
    if len(class_names) != len(bias) or len(set(class_names)) < len(class_names):
        raise ModelError(
            f"A head with {len(bias)} rows needs {len(bias)} different class names.",
            where=where,
            given=list(class_names)[:10],
        )
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise ModelError("The head holds NaN or infinity.", where=where, fix="Train it again.")
