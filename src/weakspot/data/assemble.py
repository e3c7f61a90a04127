"""Examined samples to the final table: surveyed first, then classes, splits, ids, duplicates, predictions.

Two passes over the parts: one to see which classes there are and what is wrong, one to write rows. Between them only a hash and a
few small numbers a sample are in memory.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, generator
from weakspot.core.dataset import GROUP, METADATA_PREFIX, NO_LABEL, SPLIT_ORDER, Split, Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.data.columns import (
    METADATA,
    METADATA_VALUES,
    MetadataColumns,
    did_you_mean,
    values_of,
)
from weakspot.data.duplicates import Copies, duplicates_table, find_copies, packed_hashes
from weakspot.data.groups import (
    NONE,
    GroupChoice,
    GroupsSeen,
    NamedGroups,
    SampleParts,
    all_moments,
    burst_sentence,
    count_bursts,
    moments_in,
    named_groups,
)
from weakspot.data.prediction_columns import likeliest_classes
from weakspot.data.settings import DataSettings
from weakspot.data.source import (
    Problems,
    generated_rows,
    generated_values,
    parse_split,
    put_apart,
    refuse_verifying,
    split_names,
)

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
    "moment",
)
_SEPARATOR = "\x1f"
_NUMBER = re.compile(r"-?\d+")
_MAX_NAMES_SHOWN = 8


@dataclass(kw_only=True)
class ExaminedSurvey:
    """What the first pass saw.

    Args:
        settings: how samples become a data set.
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
        moments: when samples were taken, and by which camera.
        n_several: samples with several labels.
        n_predicted: samples that came with predicted labels.
        n_probable: samples that came with probabilities.
        n_several_predicted: samples with several predicted labels.
        problems: what is wrong whatever the settings.
    """

    settings: DataSettings
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
    moments: SampleParts = field(default_factory=list)
    n_several: int = 0
    n_predicted: int = 0
    n_probable: int = 0
    n_several_predicted: int = 0
    problems: Problems = field(default_factory=Problems)

    @property
    def n_samples(self) -> int:
        return sum(len(part) for part in self.splits)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the classes: as given, else the labels in order, numbers in numerical order."""
        if self.settings.class_names:
            return self.settings.class_names
        if all(_NUMBER.fullmatch(label) for label in self.labels):
            return tuple(sorted(self.labels, key=lambda label: (int(label), label)))
        return tuple(sorted(self.labels))

    @property
    def task(self) -> Task:
        if self.settings.task != "auto":
            return Task(self.settings.task)
        return Task.MULTI_LABEL if self.n_several else Task.SINGLE_LABEL

    def check(self, *, where: str) -> None:
        """Raise one error that lists everything that is wrong.

        Raises:
            DataError: if anything is.
        """
        for message, key in (*self._label_problems(), *self._prediction_problems()):
            self.problems.add(message, row=key)
        self.problems.raise_if_any(what="The samples cannot be used as they are:", where=where)

    def _label_problems(self) -> Iterator[tuple[str, str | None]]:
        if not self.labels:
            yield (
                "no sample has a label; name the label column or put every class in a folder of its own",
                None,
            )
        for label, key in self.first_with["label"].items():
            if self.settings.class_names and label not in self.settings.class_names:
                hint, known = (
                    did_you_mean(label, self.settings.class_names),
                    _few(self.settings.class_names),
                )
                yield (
                    f"{self.labels[label]} samples have the unknown label {label!r}{hint}; the classes are {known}",
                    key,
                )
        numbers = [label for label in self.labels if _NUMBER.fullmatch(label)]
        words = [label for label in self.labels if not _NUMBER.fullmatch(label)]
        if not self.settings.class_names and numbers and words:
            both = f"numbers ({_few(numbers)}) and words ({_few(words)})"
            yield (
                f"labels are of mixed types: {both}; if all are meant, list them as class_names",
                None,
            )
        if self.settings.task == "single-label" and self.n_several:
            yield (
                f"{self.n_several} samples have several labels, but the task is set to single-label",
                None,
            )

    def _prediction_problems(self) -> Iterator[tuple[str, str | None]]:
        known = set(self.class_names)
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
        if self.task is Task.SINGLE_LABEL and self.n_several_predicted:
            yield (
                f"{self.n_several_predicted} samples have several predicted labels, but no sample has several labels",
                None,
            )


def survey(parts: Iterable[pa.Table], settings: DataSettings) -> ExaminedSurvey:
    """Look at every examined sample once; only hashes and small numbers are kept."""
    seen = ExaminedSurvey(
        settings=settings, groups=GroupsSeen(choice=GroupChoice.of(settings.group))
    )
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
    seen.moments.append(moments_in(part))
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


_UNIT = 1_000_000


def choose_splits(
    given: AnyArray,
    strata: AnyArray,
    first_rows: AnyArray,
    settings: DataSettings,
    *,
    seed: int = 0,
    has_groups: bool = False,
) -> AnyArray:
    """Return the split of every sample [n].

    Args:
        given: position of the given split in `SPLIT_ORDER`, -1 where none is given [n].
        strata: number of the combination of labels, -1 unlabelled [n].
        first_rows: the first row with the same content or of the same group, itself if it is the first [n].
        settings: fractions and default.
        seed: of the shuffle.
        has_groups: whether rows of different content belong together; large groups are then dealt out as evenly as small ones.
    """
    chosen = given.astype(np.int8)
    if settings.split is not None:
        return np.where(chosen == NO_SPLIT, SPLIT_ORDER.index(settings.split), chosen).astype(
            np.int8
        )
    chosen = _as_copies(chosen, first_rows)
    is_open = chosen == NO_SPLIT
    chosen[is_open & (strata == UNLABELLED)] = SPLIT_ORDER.index(Split.POOL)
    if has_groups:
        return _with_groups(chosen, strata, first_rows, settings, seed)
    is_original = (chosen == NO_SPLIT) & (
        first_rows == np.arange(len(chosen), dtype=first_rows.dtype)
    )
    chosen[is_original] = _stratify(strata[is_original], settings, seed)
    return np.where(chosen == NO_SPLIT, chosen[first_rows], chosen).astype(np.int8)


def _with_groups(
    chosen: AnyArray, strata: AnyArray, first_rows: AnyArray, settings: DataSettings, seed: int
) -> AnyArray:
    open_rows = np.flatnonzero(chosen == NO_SPLIT)
    # The first row of a group may be unlabelled or have a split; the first that has not stands for those that have not.
    _, leading, unit_of = np.unique(first_rows[open_rows], return_index=True, return_inverse=True)
    sizes = np.bincount(unit_of, minlength=len(leading))
    chosen[open_rows] = _stratify(strata[open_rows[leading]], settings, seed, sizes)[unit_of]
    return chosen


def _as_copies(given: AnyArray, first_rows: AnyArray) -> AnyArray:
    """Give rows without a split the split that a copy of the same image, or another of the group, was given."""
    named = np.flatnonzero(given != NO_SPLIT)[::-1]
    of_first = np.full(len(given), NO_SPLIT, dtype=np.int8)
    of_first[first_rows[named]] = given[named]
    return np.where(given == NO_SPLIT, of_first[first_rows], given).astype(np.int8)


def _stratify(
    strata: AnyArray, settings: DataSettings, seed: int, sizes: AnyArray | None = None
) -> AnyArray:
    """Deal groups out so that every stratum, large or small, comes as near to the fractions as whole groups allow."""
    small = np.int32 if len(strata) <= np.iinfo(np.int32).max else np.int64
    shuffled = generator(seed, "splits").permutation(len(strata)).astype(small)
    if sizes is not None:
        shuffled = shuffled[np.argsort(sizes[shuffled], kind="stable").astype(small)]
    order = shuffled[np.argsort(strata[shuffled], kind="stable").astype(small)]
    del shuffled
    chosen = np.full(len(strata), SPLIT_ORDER.index(Split.TRAIN), dtype=np.int8)
    is_test = _every(len(order), settings.test_fraction)
    chosen[order[is_test]] = SPLIT_ORDER.index(Split.TEST)
    rest = order[~is_test]
    share = (
        settings.validation_fraction / (1 - settings.test_fraction)
        if settings.test_fraction < 1
        else 0.0
    )
    chosen[rest[_every(len(rest), min(share, 1.0))]] = SPLIT_ORDER.index(Split.VALIDATION)
    return chosen


def _every(n_rows: int, fraction: float) -> AnyArray:
    """Return an evenly spaced choice of a fraction of rows; whole-number arithmetic keeps it the same everywhere."""
    passed = np.arange(n_rows + 1, dtype=np.int64)
    passed *= round(fraction * _UNIT)
    passed += _UNIT // 2
    passed //= _UNIT
    return np.asarray(passed[1:] > passed[:-1])


def class_codes(names: pa.Array, class_names: Sequence[str]) -> tuple[IntArray, IntArray]:
    owners = np.asarray(pc.list_parent_indices(names)).astype(np.int64)
    codes = pc.index_in(pc.list_flatten(names), value_set=pa.array(list(class_names), pa.string()))
    return owners, np.asarray(codes).astype(np.int64)


def given_predictions(part: pa.Table, seen: ExaminedSurvey) -> dict[str, AnyArray]:
    """Return what the samples of a part say of predictions; the same names for every part of a source."""
    class_names, task = seen.class_names, seen.task
    columns: dict[str, AnyArray] = {}
    probabilities = (
        _probabilities(part.column("probabilities").chunk(0), class_names)
        if seen.n_probable
        else None
    )
    predictions = part.column("predictions").chunk(0)
    if probabilities is not None:
        columns["probabilities"] = probabilities
    if task is Task.SINGLE_LABEL and (seen.n_predicted or probabilities is not None):
        columns["predictions"] = _predicted_classes(predictions, probabilities, class_names)
    if task is Task.MULTI_LABEL and seen.n_predicted:
        columns["predicted_matrix"] = _predicted_matrix(predictions, class_names)
    return columns


def _probabilities(given: pa.Array, class_names: Sequence[str]) -> FloatArray:
    matrix = np.full((len(given), len(class_names)), np.nan, dtype=np.float32)
    rows = np.flatnonzero(np.asarray(pc.is_valid(given)))
    valid = given.drop_null()
    if len(valid):
        owners = np.repeat(rows, np.diff(np.asarray(valid.offsets)))
        codes = np.asarray(
            pc.index_in(valid.keys, value_set=pa.array(list(class_names), pa.string()))
        ).astype(np.int64)
        matrix[owners, codes] = np.asarray(valid.items)
    return matrix


def _predicted_classes(
    given: pa.Array, probabilities: FloatArray | None, class_names: Sequence[str]
) -> IntArray:
    classes = np.full(len(given), NO_LABEL, dtype=np.int64)
    if probabilities is not None:
        classes = likeliest_classes(probabilities)
    owners, codes = class_codes(given, class_names)
    classes[owners] = codes
    return classes


def _predicted_matrix(given: pa.Array, class_names: Sequence[str]) -> BoolArray:
    matrix = np.zeros((len(given), len(class_names)), dtype=np.bool_)
    owners, codes = class_codes(given, class_names)
    matrix[owners, codes] = True
    return matrix


ReadParts = Callable[[Sequence[str] | None], Iterator[pa.Table]]
"""Yields the parts from the first on, with the named columns as far as they have them."""

EVALUATED = [SPLIT_ORDER.index(one) for one in (Split.VALIDATION, Split.TEST)]
MOVED_NOTE = "put-into-synthetic"
QUARANTINE_COLUMNS = ("key", "location", "reason", "detail")


@dataclass(frozen=True, kw_only=True, eq=False)
class Assembly:
    """A data set ready to be written.

    Args:
        splits: split of every sample, as position in `SPLIT_ORDER` [n].
        is_labelled: which samples have a true label [n].
        is_renamed: which samples were put into `synthetic` although their source names another split [n].
        n_dealt: labelled samples that name no split and were dealt out by the fractions.
        copies: which samples have the same content.
        groups: which samples belong together; None if no sample names a group.
        group_note: why a column of groups was not taken; empty if there is nothing to say.
        burst_note: that images taken within seconds may belong together; empty if there is nothing to say.
        seen: what the first pass saw.
        read_parts: yields the parts again.
    """

    splits: AnyArray
    is_labelled: BoolArray
    is_renamed: BoolArray
    n_dealt: int
    copies: Copies
    groups: NamedGroups | None
    group_note: str
    burst_note: str
    seen: ExaminedSurvey
    read_parts: ReadParts

    @property
    def n_samples(self) -> int:
        return len(self.splits)

    def batches(self) -> Iterator[tuple[pa.Table, Mapping[str, AnyArray]]]:
        """Yield some rows of the final table after others, and what was predicted of them.

        The rows are as `Dataset.table`, with one more column `notes`; beside them are `predictions`, `predicted_matrix` and
        `probabilities` as far as they were given, as in `Dataset`.
        """
        start = 0
        for part in self.read_parts(None):
            examined = part.filter(pc.is_null(part.column("reason"))).combine_chunks()
            rows = np.arange(start, start + examined.num_rows)
            start += len(rows)
            if len(rows):
                yield self._table(examined, rows), given_predictions(examined, self.seen)

    def quarantine(self) -> Iterator[pa.Table]:
        """Yield the samples that were set aside: key, location, reason, detail."""
        for part in self.read_parts(QUARANTINE_COLUMNS):
            yield part.filter(pc.is_valid(part.column("reason"))).select(list(QUARANTINE_COLUMNS))

    def duplicates(self) -> pa.Table:
        """Return the contents that occur more than once; see `duplicates_table`."""
        parts = (
            part.filter(pc.is_null(part.column("reason")))
            for part in self.read_parts(("key", "content_hash", "labels", "reason"))
        )
        return duplicates_table(parts, self.copies, self.splits)

    def _table(self, part: pa.Table, rows: IntArray) -> pa.Table:
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            "sample_id": self.copies.sample_ids(part.column("content_hash").chunk(0), rows),
            "content_hash": part.column("content_hash"),
            "location": part.column("location"),
            "key": part.column("key"),
            **({} if self.groups is None else {GROUP: self.groups.column(rows)}),
            "split": pa.array(self.splits[rows], pa.int8()),
            **self._labels(part.column("labels").chunk(0)),
            "width": part.column("width"),
            "height": part.column("height"),
            "notes": self._notes(part.column("notes"), rows),
        }
        for name, values in self.seen.metadata.columns(part).items():
            columns[METADATA_PREFIX + name] = values
        return pa.table(columns)

    def _notes(self, notes: pa.ChunkedArray, rows: IntArray) -> pa.Array | pa.ChunkedArray:
        renamed = self.is_renamed[rows]
        if not renamed.any():
            return notes
        added = [
            [*own, MOVED_NOTE] if moved else own
            for own, moved in zip(notes.to_pylist(), renamed.tolist(), strict=True)
        ]
        return pa.array(added, notes.type)

    def _labels(self, labels: pa.Array) -> dict[str, pa.Array]:
        owners, codes = class_codes(labels, self.seen.class_names)
        if self.seen.task is Task.SINGLE_LABEL:
            label = np.full(len(labels), NO_LABEL, dtype=np.int32)
            label[owners] = codes
            return {"label": pa.array(label)}
        counts = np.bincount(owners, minlength=len(labels))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        unknown = (
            np.zeros(len(labels), dtype=np.bool_)
            if self.seen.settings.unlabelled_is_negative
            else counts == 0
        )
        return {
            "labels": pa.ListArray.from_arrays(
                offsets, pa.array(codes, pa.int32()), mask=pa.array(unknown)
            )
        }


def assemble(
    read_parts: ReadParts, settings: DataSettings, *, where: str, seed: int = 0
) -> Assembly:
    """Look at all examined samples and decide classes, task, splits and ids.

    Args:
        read_parts: yields tables of the `EXAMINED_SCHEMA`, as often as asked.
        settings: how to decide.
        where: the source, for messages.
        seed: of the split of samples that name none.

    Raises:
        NotEnoughDataError: if every sample was set aside, with the reasons.
        DataError: listing everything that is wrong with labels, splits and predictions, or generated samples to be verified on.
    """
    seen = survey(read_parts(SURVEY_COLUMNS), settings)
    if not seen.n_samples:
        raise _nothing_left(seen, where)
    seen.check(where=where)
    copies = find_copies(seen.hashes)
    strata, named = _join(seen.strata), _join(seen.splits)
    given, is_wrong = put_apart(named, _join(seen.generated), copies.first_rows)
    refuse_verifying(is_wrong, _keys(read_parts), where=where)
    groups, group_note = _groups(seen, copies, where=where)
    splits = choose_splits(
        given,
        strata,
        copies.first_rows if groups is None else groups.first_rows,
        settings,
        seed=seed,
        has_groups=groups is not None,
    )
    burst_note = ""
    if groups is None and settings.group != NONE:
        is_evaluated = np.isin(splits, EVALUATED) & (strata != UNLABELLED)
        bursts = count_bursts(all_moments(seen.moments), strata, is_evaluated)
        burst_note = burst_sentence(*bursts)
    is_labelled = (
        np.ones(len(strata), dtype=np.bool_)
        if settings.unlabelled_is_negative
        else strata != UNLABELLED
    )
    return Assembly(
        splits=splits,
        is_labelled=is_labelled,
        is_renamed=(given != named) & (named != NO_SPLIT),
        n_dealt=0
        if settings.split is not None
        else int(((given == NO_SPLIT) & (strata != UNLABELLED)).sum()),
        copies=copies,
        groups=groups,
        group_note=group_note,
        burst_note=burst_note,
        seen=seen,
        read_parts=read_parts,
    )


def _groups(seen: ExaminedSurvey, copies: Copies, *, where: str) -> tuple[NamedGroups | None, str]:
    """Return the groups, and why those of a column were not taken.

    Raises:
        DataError: if the user says where groups stand, and no sample has one there.
    """
    codes, choice = seen.groups.codes(), seen.groups.choice
    if codes is None:
        if choice.kind == "none" or not choice.is_told:
            return None, ""
        raise DataError(
            f"No sample has a group: the {choice.kind} {choice.value!r} is found nowhere.",
            where=where,
            given=choice.value,
            fix='Correct [data] group: a column, "folder:1", "file-name", a pattern with one capture, or "none".',
        )
    note = seen.groups.why_not(codes)
    return (None if note else named_groups(codes, seen.groups.names, copies.first_rows)), note


def _join(parts: list[AnyArray]) -> AnyArray:
    """Return the parts in one piece; the list is emptied, because memory counts here."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _keys(read_parts: ReadParts) -> Iterator[str]:
    for part in read_parts(("key", "reason")):
        yield from part.filter(pc.is_null(part.column("reason"))).column("key").to_pylist()


def _nothing_left(seen: ExaminedSurvey, where: str) -> NotEnoughDataError:
    if not seen.reasons:
        return NotEnoughDataError(
            "The source has no samples.",
            where=where,
            fix="Check the path and the kind of the source.",
        )
    counted = ", ".join(f"{count} {reason}" for reason, count in seen.reasons.most_common())
    return NotEnoughDataError(
        f"Not one of {seen.reasons.total()} samples can be used: {counted}.",
        where=where,
        fix="Look at one of the files by hand; if paths are relative, check what they are relative to.",
    )
