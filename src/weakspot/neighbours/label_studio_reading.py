"""What people labelled in Label Studio, as a table of labels: exports in JSON, JSON_MIN, CSV and TSV."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from weakspot.core.errors import DataError
from weakspot.neighbours.bundle import Written
from weakspot.neighbours.label_studio_files import CONTROL, LOCAL_URL, OBJECT
from weakspot.neighbours.label_tables import AgreedLabels
from weakspot.neighbours.manifest_files import refuse_extension

_ANNOTATIONS = ("annotations", "completions")
_NAMES = (CONTROL, "labels", "choice", "choices", "class")
_PICTURES = (OBJECT, "img", "picture", "url")


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What one person said of one sample; no labels if nothing was said."""

    data: Mapping[str, Any]
    labels: tuple[str, ...] = field(default=())


def read_annotations(source: Path, target: Path) -> Written:
    """Write a table of the labels that people gave; where they disagree, the sample is left out and counted.

    Raises:
        DataError: if this is no export of Label Studio, or it has no labels.
    """
    refuse_extension(target)
    labels = AgreedLabels()
    for answer in _answers(source):
        sample_id, path = _text(answer.data.get("sample_id")), _path(answer.data)
        if not sample_id and not path:
            raise DataError("A task names neither a sample nor a picture.", where=str(source), given=str(dict(answer.data))[:120])
        labels.add(answer.labels, sample_id=sample_id, path=path)
    return labels.written(source, target)


def _answers(source: Path) -> Iterator[_Answer]:
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(source, "it is no UTF-8 text") from error
    if source.suffix.lower() in (".csv", ".tsv"):
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter="," if source.suffix.lower() == ".csv" else "\t")
        for line in lines:
            yield _Answer(data=line, labels=_choices(_answer_cell(line)))
        return
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(source, "it is no JSON") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise _unreadable(source, "it is no list of tasks")
    for task in tasks:
        yield from _of_task(task)


def _of_task(task: Mapping[str, Any]) -> Iterator[_Answer]:
    given = next((task[name] for name in _ANNOTATIONS if isinstance(task.get(name), list)), None)
    if given is None:
        yield _Answer(data=task, labels=_choices(_answer_cell(task)))
        return
    data = task.get("data")
    known = data if isinstance(data, dict) else {}
    finished = [one for one in given if isinstance(one, dict) and not one.get("was_cancelled")]
    if not finished:
        yield _Answer(data=known)
    for one in finished:
        listed = one.get("result")
        given = listed if isinstance(listed, list) else []
        results = [result for result in given if isinstance(result, dict) and result.get("type") == "choices"]
        chosen = [choice for result in results for choice in _choices(result.get("value"))]
        yield _Answer(data=known, labels=tuple(dict.fromkeys(chosen)))


def _answer_cell(line: Mapping[str, Any]) -> object:
    return next((line[name] for name in _NAMES if line.get(name)), None)


def _choices(value: object) -> tuple[str, ...]:
    """Return the choices in a value: a word, a list, or an object with `choices`, also written as JSON text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return _choices(json.loads(value))
        except (ValueError, RecursionError):
            return (value,)
    if isinstance(value, dict):
        return _choices(value.get("choices"))
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return (str(value),) if value else ()


def _path(data: Mapping[str, Any]) -> str:
    given = _text(data.get("path")) or next((_text(data[name]) for name in _PICTURES if data.get(name)), "")
    return unquote(given.partition(LOCAL_URL)[2]) if LOCAL_URL in given else given


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _unreadable(source: Path, why: str) -> DataError:
    return DataError(
        f"This is no export of Label Studio: {why}.",
        where=str(source),
        fix="Export as JSON, JSON-MIN, CSV or TSV.",
    )
