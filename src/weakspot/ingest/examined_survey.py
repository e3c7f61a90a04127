"""First pass over examined samples: which labels, splits and predictions there are, and what is wrong with them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.dataset import SPLIT_ORDER, Task
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.columns import did_you_mean
from weakspot.ingest.duplicates import packed_hashes
from weakspot.ingest.generated import generated_rows, generated_values
from weakspot.ingest.group_names import GroupChoice, GroupsSeen
from weakspot.ingest.metadata_columns import METADATA, METADATA_VALUES, MetadataColumns, values_of
from weakspot.ingest.problems import Problems
from weakspot.ingest.splits import parse_split, split_names

NO_SPLIT = -1
UNLABELLED = -1
SURVEY_COLUMNS = (
    "key",
    "location",
    "content_hash",
    "labels",
    "split",
    "predictions",
    "probabilities",
    METADATA,
    METADATA_VALUES,
    "reason",
)
_SEPARATOR = "\x1f"
_NUMBER = re.compile(r"-?\d+")
_MAX_NAMES_SHOWN = 8


@dataclass(kw_only=True)
class ExaminedSurvey:
    """What the first pass saw.

    Args:
        hashes: content hashes [n, 16 bytes], one array a part.
        splits: position of the given split in `SPLIT_ORDER`, -1 where none is given, one array a part.
        generated: which samples the source calls generated, one array a part.
        strata: number of the combination of labels, -1 unlabelled, one array a part.
        combinations: number of every combination of labels.
        labels: how often each label occurs.
        reasons: how many samples were set aside, by reason.
        first_with: the first sample that has a label, prediction or set of probabilities, by kind and name.
        metadata: the free columns.
        groups: which samples belong together.
        n_several: samples with several labels.
        n_predicted: samples that came with predicted labels.
        n_probable: samples that came with probabilities.
        n_several_predicted: samples with several predicted labels.
        problems: what is wrong whatever the settings.
    """

    hashes: list[AnyArray] = field(default_factory=list)
    splits: list[AnyArray] = field(default_factory=list)
    generated: list[BoolArray] = field(default_factory=list)
    strata: list[AnyArray] = field(default_factory=list)
    combinations: dict[str, int] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    first_with: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"label": {}, "prediction": {}, "probabilities": {}}
    )
    metadata: MetadataColumns = field(default_factory=MetadataColumns)
    groups: GroupsSeen = field(default_factory=GroupsSeen)
    n_several: int = 0
    n_predicted: int = 0
    n_probable: int = 0
    n_several_predicted: int = 0
    problems: Problems = field(default_factory=Problems)

    @property
    def n_samples(self) -> int:
        return sum(len(part) for part in self.splits)

    def class_names(self, settings: AssemblySettings) -> tuple[str, ...]:
        """Return the classes: as given, else the labels in order, numbers in numerical order."""
        if settings.class_names:
            return settings.class_names
        if all(_NUMBER.fullmatch(label) for label in self.labels):
            return tuple(sorted(self.labels, key=lambda label: (int(label), label)))
        return tuple(sorted(self.labels))

    def task(self, settings: AssemblySettings) -> Task:
        if settings.task is not None:
            return settings.task
        return Task.MULTI_LABEL if self.n_several else Task.SINGLE_LABEL

    def check(self, settings: AssemblySettings, *, where: str) -> None:
        """Raise one error that lists everything that is wrong.

        Raises:
            DataError: if anything is.
        """
        for message, key in (*self._label_problems(settings), *self._prediction_problems(settings)):
            self.problems.add(message, row=key)
        self.problems.raise_if_any(what="The samples cannot be used as they are:", where=where)

    def _label_problems(self, settings: AssemblySettings) -> Iterator[tuple[str, str | None]]:
        if not self.labels:
            yield (
                "no sample has a label; name the label column or put every class in a folder of its own",
                None,
            )
        for label, key in self.first_with["label"].items():
            if settings.class_names and label not in settings.class_names:
                hint, known = did_you_mean(label, settings.class_names), _few(settings.class_names)
                yield (
                    f"{self.labels[label]} samples have the unknown label {label!r}{hint}; the classes are {known}",
                    key,
                )
        numbers = [label for label in self.labels if _NUMBER.fullmatch(label)]
        words = [label for label in self.labels if not _NUMBER.fullmatch(label)]
        if not settings.class_names and numbers and words:
            both = f"numbers ({_few(numbers)}) and words ({_few(words)})"
            yield (
                f"labels are of mixed types: {both}; if all are meant, list them as class_names",
                None,
            )
        if settings.task is Task.SINGLE_LABEL and self.n_several:
            yield (
                f"{self.n_several} samples have several labels, but the task is set to single-label",
                None,
            )

    def _prediction_problems(self, settings: AssemblySettings) -> Iterator[tuple[str, str | None]]:
        known = set(self.class_names(settings))
        for name, key in self.first_with["prediction"].items():
            if name not in known:
                yield (
                    f"predictions name the unknown class {name!r}; list class_names if the classifier knows more classes",
                    key,
                )
        for joined, key in self.first_with["probabilities"].items():
            named = set(joined.split(_SEPARATOR))
            if named - known:
                yield (
                    f"probabilities name the unknown classes {_few(sorted(named - known))}; list class_names if they are meant",
                    key,
                )
            if known - named:
                yield f"probabilities lack the classes {_few(sorted(known - named))}", key
        if self.task(settings) is Task.SINGLE_LABEL and self.n_several_predicted:
            yield (
                f"{self.n_several_predicted} samples have several predicted labels, but no sample has several labels",
                None,
            )


def survey(parts: Iterable[pa.Table], groups: GroupChoice) -> ExaminedSurvey:
    """Look at every examined sample once; only hashes and small numbers are kept."""
    seen = ExaminedSurvey(groups=GroupsSeen(choice=groups))
    for part in parts:
        reasons = part.column("reason")
        seen.reasons.update(_counts(reasons))
        examined = part.filter(pc.is_null(reasons)).combine_chunks()
        if examined.num_rows:
            _survey_part(seen, examined)
    return seen


def _survey_part(seen: ExaminedSurvey, part: pa.Table) -> None:
    keys = part.column("key")
    labels = part.column("labels").chunk(0)
    seen.hashes.append(packed_hashes(part.column("content_hash").chunk(0)))
    seen.splits.append(_split_codes(part.column("split").chunk(0), keys, seen.problems))
    seen.generated.append(
        generated_rows(part.column(METADATA)) | generated_values(values_of(part), part.num_rows)
    )
    seen.strata.append(_strata(labels, seen.combinations))
    seen.labels.update(_counts(labels.flatten()))
    seen.n_several += _n_longer_than_one(labels)
    _note_first(seen.first_with["label"], labels, keys)
    seen.metadata.observe(part)
    seen.groups.observe(part)
    predictions = part.column("predictions").chunk(0)
    seen.n_predicted += len(predictions) - predictions.null_count
    seen.n_several_predicted += _n_longer_than_one(predictions)
    _note_first(seen.first_with["prediction"], predictions, keys)
    _survey_probabilities(seen, part.column("probabilities").chunk(0), keys)


def _survey_probabilities(
    seen: ExaminedSurvey, probabilities: pa.Array, keys: pa.ChunkedArray
) -> None:
    given = probabilities.drop_null()
    if not len(given):
        return
    seen.n_probable += len(given)
    joined = pc.binary_join(pa.ListArray.from_arrays(given.offsets, given.keys), _SEPARATOR)
    rows = np.flatnonzero(np.asarray(pc.is_valid(probabilities)))
    for name in pc.unique(joined).to_pylist():
        if name not in seen.first_with["probabilities"]:
            seen.first_with["probabilities"][name] = keys[
                int(rows[pc.index(joined, name).as_py()])
            ].as_py()
    values = np.asarray(pc.fill_null(given.items, float("nan")))
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        row = int(np.searchsorted(np.asarray(given.offsets), bad[0], side="right")) - 1
        seen.problems.add(
            "probabilities must lie in [0, 1]; are these logits?", row=keys[int(rows[row])].as_py()
        )


def _counts(values: pa.Array | pa.ChunkedArray) -> Counter[str]:
    return Counter(
        {item["values"]: item["counts"] for item in pc.value_counts(values.drop_null()).to_pylist()}
    )


def _n_longer_than_one(lists: pa.Array) -> int:
    return int(pc.sum(pc.greater(pc.list_value_length(lists), 1)).as_py() or 0)


def _note_first(first: dict[str, str], lists: pa.Array, keys: pa.ChunkedArray) -> None:
    values, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    for name in pc.unique(values).to_pylist():
        if name not in first:
            first[name] = keys[owners[pc.index(values, name).as_py()].as_py()].as_py()


def _split_codes(names: pa.Array, keys: pa.ChunkedArray, problems: Problems) -> AnyArray:
    encoded = names.dictionary_encode()
    codes = [_split_code(name) for name in encoded.dictionary.to_pylist()]
    for position, name in enumerate(encoded.dictionary.to_pylist()):
        if codes[position] is None:
            problems.add(
                f"{name!r} is no split; use one of {split_names()}",
                row=keys[pc.index(names, name).as_py()].as_py(),
            )
    by_position = np.array(
        [NO_SPLIT if code is None else code for code in codes] + [NO_SPLIT], dtype=np.int8
    )
    return np.asarray(by_position[np.asarray(pc.fill_null(encoded.indices, len(codes)))])


def _split_code(name: str) -> int | None:
    if not name.strip():
        return NO_SPLIT
    split = parse_split(name)
    return None if split is None else SPLIT_ORDER.index(split)


def _strata(labels: pa.Array, combinations: dict[str, int]) -> AnyArray:
    joined = pc.fill_null(pc.binary_join(labels, _SEPARATOR), "")
    encoded = joined.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    numbers = [
        combinations.setdefault(name, len(combinations)) if name else UNLABELLED for name in names
    ]
    return np.asarray(np.array(numbers, dtype=np.int32)[np.asarray(encoded.indices)])


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES_SHOWN} more" if len(listed) > _MAX_NAMES_SHOWN else ""
    return ", ".join(repr(name) for name in listed[:_MAX_NAMES_SHOWN]) + more
