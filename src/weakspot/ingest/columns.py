"""Which column of a table means what."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from weakspot.ingest.problems import Problems
from weakspot.ingest.tables import TableHeader

PROBABILITY_PREFIX = "prob_"
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "path": (
        ("path", "url", "image", "file_name"),
        (
            "filename",
            "file",
            "filepath",
            "file_path",
            "image_path",
            "img_path",
            "image_url",
            "uri",
            "img",
        ),
    ),
    "bytes": (("bytes", "image_bytes", "image_base64"),),
    "label": (("label",), ("class", "class_name", "target", "category")),
    "labels": (("labels",),),
    "split": (("split",),),
    "prediction": (("prediction",), ("predicted", "pred", "predicted_label")),
    "predictions": (("predictions",),),
    "probabilities": (("probabilities",), ("probs",)),
    "key": (("sample_id", "key"),),
    "group": (("group",),),
}
_ROLE_SYNONYMS = {"url": "path", "image": "path", "file_name": "path", "sample_id": "key"}
ROLES = tuple(_NAMES)
_EXCLUSIVE = (
    ("path", "bytes"),
    ("label", "labels"),
    ("prediction", "predictions"),
    ("split",),
    ("probabilities",),
    ("key",),
    ("group",),
)


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """The columns of a table by what they mean; None where there is none.

    Args:
        image: where the image is, or the image itself.
        image_is_bytes: whether text in that column is an image in base64, not a path.
        labels: true labels.
        labels_are_many: whether text there is several labels with `;` or `|` between them.
        predictions: predicted labels.
        predictions_are_many: the same for predictions.
        split: names of splits.
        probabilities: list or mapping of probabilities.
        probability_columns: class and column of every `prob_<class>` column.
        key: unique name of a row.
        metadata: all other columns.
    """

    image: str | None = None
    image_is_bytes: bool = False
    labels: str | None = None
    labels_are_many: bool = False
    predictions: str | None = None
    predictions_are_many: bool = False
    split: str | None = None
    probabilities: str | None = None
    probability_columns: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    metadata: tuple[str, ...] = ()

    @property
    def has_predictions(self) -> bool:
        return (
            self.predictions is not None
            or self.probabilities is not None
            or bool(self.probability_columns)
        )


def resolve_columns(
    header: TableHeader, given: Mapping[str, str], problems: Problems, *, with_images: bool = True
) -> ColumnRoles:
    """Find out what every column means; unclear and missing columns go to `problems`.

    Args:
        header: the columns.
        given: role to column name, as the user says; stronger than any guess.
        problems: takes what is wrong.
        with_images: whether a column may be the image.
    """
    chosen = _given_roles(header, given, problems)
    for group in _EXCLUSIVE:
        if not any(role in chosen for role in group) and (with_images or "path" not in group):
            chosen.update(_guess(header, group, problems))
    # What belongs together is a free column too: it may be an attribute, or the groups of a repair.
    taken = {column for role, column in chosen.items() if role != "group"}
    probability_columns = _probability_columns(header, taken)
    taken.update(column for _, column in probability_columns)
    if probability_columns and "probabilities" in chosen:
        problems.add(
            f"Probabilities are given twice: in {chosen['probabilities']!r} and in {probability_columns[0][1]!r}."
        )
    return ColumnRoles(
        image=chosen.get("path", chosen.get("bytes")),
        image_is_bytes="bytes" in chosen,
        labels=chosen.get("label", chosen.get("labels")),
        labels_are_many="labels" in chosen,
        predictions=chosen.get("prediction", chosen.get("predictions")),
        predictions_are_many="predictions" in chosen,
        split=chosen.get("split"),
        probabilities=chosen.get("probabilities"),
        probability_columns=probability_columns,
        key=chosen.get("key"),
        metadata=tuple(
            name for name in header.names if name not in taken | header.binary | header.images
        ),
    )


def _probability_columns(header: TableHeader, taken: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name[len(PROBABILITY_PREFIX) :], name)
        for name in header.names
        if name.lower().startswith(PROBABILITY_PREFIX)
        and name not in taken
        and len(name) > len(PROBABILITY_PREFIX)
    )


def _given_roles(
    header: TableHeader, given: Mapping[str, str], problems: Problems
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for wanted, column in given.items():
        role = _ROLE_SYNONYMS.get(wanted, wanted)
        if role not in _NAMES:
            problems.add(
                f"There is no column role {wanted!r}{did_you_mean(wanted, ROLES)} (roles: {', '.join(ROLES)})."
            )
        elif column not in header.names:
            problems.add(
                f"The column {column!r} given for {wanted!r} is missing{did_you_mean(column, header.names)}."
            )
        else:
            chosen[role] = column
    for group in _EXCLUSIVE:
        both = [role for role in group if role in chosen]
        if len(both) > 1:
            problems.add(f"Columns are given for both {both[0]!r} and {both[1]!r}; give one.")
    return chosen


def _guess(header: TableHeader, group: tuple[str, ...], problems: Problems) -> dict[str, str]:
    if "path" in group and len(header.images) == 1:
        return {"path": next(iter(header.images))}
    for level in range(max(len(_NAMES[role]) for role in group)):
        found = [
            (role, name)
            for role in group
            for name in header.names
            if level < len(_NAMES[role]) and name.strip().lower() in _NAMES[role][level]
        ]
        if len(found) > 1:
            listed = " and ".join(repr(name) for _, name in found)
            problems.add(
                f"The columns {listed} could both be the {group[0]}; say which with columns = {{{group[0]} = ...}}."
            )
        if found:
            return {found[0][0]: found[0][1]}
    return {}


def did_you_mean(given: str, known: tuple[str, ...]) -> str:
    """Return a hint at the nearest known name, or nothing.

    >>> did_you_mean("lable", ("label", "split"))
    " (did you mean 'label'?)"
    """
    near = difflib.get_close_matches(given.lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
