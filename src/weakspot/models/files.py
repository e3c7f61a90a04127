"""Files of models: written all at once or not at all, a last layer in a file of its own, and what runs a file without this package."""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.models.preprocessing import Preprocessing

_N_SHOWN = 10


@contextmanager
def new_files(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside the given one; when the block ends without an error, what is in it is moved there.

    Args:
        folder: made if need be; files that are in it stay as they are.

    Raises:
        ModelError: if a file of the same name is there already; then nothing is moved.
    """
    place = folder.absolute()
    staging = place.with_name(f".{place.name}.tmp-{secrets.token_hex(4)}")
    try:
        staging.mkdir(parents=True)
        yield staging
        _move(staging, folder)
    except OSError as error:
        raise ModelError(
            f"The files cannot be written: {error.strerror or error}.",
            where=str(folder),
            fix="Choose another folder.",
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_existing(folder: Path, names: Iterable[Path | str]) -> None:
    """Refuse to write files of these names into a folder if there are any such.

    Raises:
        ModelError: with the names that are there already.
    """
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            "This is a file, not a folder.", where=str(folder), fix="Choose another folder."
        )
    taken = sorted(
        str(name) for name in names if (folder / name).exists() or (folder / name).is_symlink()
    )
    if taken:
        more = f" and {len(taken) - _N_SHOWN} more" if len(taken) > _N_SHOWN else ""
        raise ModelError(
            f"Files of these names are there already, and nothing is overwritten: {', '.join(taken[:_N_SHOWN])}{more}.",
            where=str(folder),
            fix="Choose another folder, or move them away.",
        )


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return every file below a folder, relative to it, in order of name."""
    return tuple(path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())


def main_first(folder: Path, names: Iterable[Path], main: Path) -> tuple[Path, ...]:
    """Return files of a folder, the main one first, the others by name."""
    return tuple(folder / name for name in sorted(names, key=lambda name: (name != main, name)))


def _move(staging: Path, folder: Path) -> None:
    names = files_in(staging)
    refuse_existing(folder, names)
    if not folder.exists():
        os.replace(staging, folder)
        return
    moved: list[Path] = []
    try:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / name, folder / name)
            moved.append(folder / name)
    except OSError:
        for file in moved:
            file.unlink(missing_ok=True)
        raise


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


def plain_model_of(classifier: object) -> PlainModel | None:
    """Return the file of a classifier and how to use it, None if it takes more than that."""
    plain: Callable[[], PlainModel | None] | None = getattr(classifier, "plain_model", None)
    return None if plain is None else plain()
