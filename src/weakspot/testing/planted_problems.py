"""What can be wrong with a planted world, and the slices on which its classifier must then fail."""

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, DoubleArray, IntArray, generator
from weakspot.core.bounds import Bounds, Fraction, check_bounds
from weakspot.core.dataset import METADATA_PREFIX, SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.failures import Side
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS

HALF = 0.5

ProblemKind = Literal["spurious", "rare", "label-noise", "none"]


def _are_two_of(known: Container[str], one: str, other: str) -> bool:
    return one in known and other in known and one != other


@dataclass(frozen=True, kw_only=True)
class PlantedProblem:
    """A flaw in the training data, and with it a slice on which a classifier trained on that data fails.

    Args:
        kind: `spurious` in training, `class_name` mostly comes with `usual_value` and `rival` with `value`; `rare` samples of
            `class_name` with `value` are rare in training and look much like `rival`; `label-noise` some labels are wrong, in
            every split; `none` nothing is wrong and failures are pure chance given the class.
        strength: rho, pi or r: the share of the two classes that is forced to its cue (`spurious`), of `class_name` that has
            `value` in training (`rare`), or of samples with a wrong label (`label-noise`).
        class_name: the class with the slice.
        rival: the class that its failures are taken for.
        factor: what the slice is about.
        value: the value of the factor that marks the slice.
        usual_value: the value that `class_name` has in training (`spurious`).
        evaluation_share: share of `value`, and of `usual_value` for `spurious`, wherever nothing is forced.
    """

    kind: ProblemKind = "none"
    strength: Fraction = 0.0
    class_name: str = "disc"
    rival: str = "star"
    factor: str = "background"
    value: str = "grassy"
    usual_value: str = "plain"
    evaluation_share: Annotated[float, Bounds(gt=0, lt=HALF)] = 0.25

    def __post_init__(self) -> None:
        problems = []
        if self.factor not in FACTORS or self.factor == "kind":
            problems.append(
                f"There is no factor {self.factor!r}; choose one of {list(FACTORS)[1:]}."
            )
        elif not _are_two_of(FACTORS[self.factor], self.value, self.usual_value):
            problems.append(
                f"Two different values are needed; choose from {list(FACTORS[self.factor])}."
            )
        if not _are_two_of(KINDS, self.class_name, self.rival):
            problems.append(f"Two different classes are needed; choose from {list(KINDS)}.")
        check_bounds(self, where="problem", problems=problems)


def spurious(rho: float = 0.95, *, class_name: str = "disc", rival: str = "star") -> PlantedProblem:
    """Return a correlation of strength rho between two classes and their backgrounds in training."""
    return PlantedProblem(kind="spurious", strength=rho, class_name=class_name, rival=rival)


def rare(share: float = 0.02, *, class_name: str = "disc", value: str = "green") -> PlantedProblem:
    """Return a colour that only the given share of a class has in training."""
    usual = "red" if value != "red" else "blue"
    return PlantedProblem(
        kind="rare",
        strength=share,
        class_name=class_name,
        factor="colour",
        value=value,
        usual_value=usual,
    )


def label_noise(rate: float = 0.1) -> PlantedProblem:
    """Return wrong labels on the given share of all samples."""
    return PlantedProblem(kind="label-noise", strength=rate)


def nothing() -> PlantedProblem:
    return PlantedProblem(kind="none")


BLOCK = 4096
N_KINDS_SHARES = (0.5, 0.3, 0.2)


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratedRows:
    """Rows of a planted world.

    Args:
        codes: scenes [n, 7], see `Scene.codes`.
        splits: position in `SPLIT_ORDER` [n].
        truth: which classes are really in the scene [n, c].
        labels: which classes the label names [n, c]; differs from `truth` under label noise.
    """

    codes: ByteArray
    splits: ByteArray
    truth: BoolArray
    labels: BoolArray


@dataclass(frozen=True, kw_only=True)
class FactorPlan:
    """How rows are drawn."""

    problem: PlantedProblem
    classes: tuple[str, ...]
    split_shares: Mapping[Split, float]
    is_multi_label: bool
    seed: int

    def draw(self, n_rows: int) -> GeneratedRows:
        starts = range(0, max(n_rows, 1), BLOCK)
        blocks = [
            self._block(number, min(BLOCK, n_rows - start)) for number, start in enumerate(starts)
        ]
        return GeneratedRows(
            codes=np.concatenate([block.codes for block in blocks]),
            splits=np.concatenate([block.splits for block in blocks]),
            truth=np.concatenate([block.truth for block in blocks]),
            labels=np.concatenate([block.labels for block in blocks]),
        )

    def _block(self, number: int, n_rows: int) -> GeneratedRows:
        random = generator(self.seed, "planted rows", str(number))
        shares = np.array([self.split_shares.get(split, 0.0) for split in SPLIT_ORDER])
        splits = _pick(random.random(BLOCK), shares / shares.sum())
        truth = self._truth(random)
        codes = np.zeros((BLOCK, len(FACTOR_NAMES)), dtype=np.uint8)
        codes[:, 0] = truth @ np.array([1 << KINDS.index(name) for name in self.classes])
        in_training = splits == SPLIT_ORDER.index(Split.TRAIN)
        for place, name in enumerate(FACTOR_NAMES[1:], start=1):
            codes[:, place] = self._values(name, truth, in_training, random)
        if self.is_multi_label:
            codes[truth.sum(axis=1) > 1, FACTOR_NAMES.index("count")] = FACTORS["count"].index(
                "one"
            )
        labels = self._labels(truth, random)
        return GeneratedRows(
            codes=codes[:n_rows],
            splits=splits[:n_rows].astype(np.uint8),
            truth=truth[:n_rows],
            labels=labels[:n_rows],
        )

    def _truth(self, random: np.random.Generator) -> BoolArray:
        ranks = random.random((BLOCK, len(self.classes))).argsort(axis=1).argsort(axis=1)
        many = random.random(BLOCK)
        if not self.is_multi_label:
            return np.equal(ranks, 0)
        n_kinds = 1 + _pick(many, np.array(N_KINDS_SHARES))
        return np.less(ranks, n_kinds[:, None])

    def _values(
        self, name: str, truth: BoolArray, in_training: BoolArray, random: np.random.Generator
    ) -> IntArray:
        first, second = random.random((2, BLOCK))
        values, problem = FACTORS[name], self.problem
        if name != problem.factor or problem.kind not in ("spurious", "rare"):
            return _pick(first, np.full(len(values), 1 / len(values)))
        common = [problem.value] + ([problem.usual_value] if problem.kind == "spurious" else [])
        found = _pick(first, _shares(values, dict.fromkeys(common, problem.evaluation_share)))
        affected = in_training & truth[:, self.classes.index(problem.class_name)]
        if problem.kind == "rare":
            return np.where(
                affected, _pick(first, _shares(values, {problem.value: problem.strength})), found
            )
        rivals = in_training & truth[:, self.classes.index(problem.rival)]
        is_forced = second < problem.strength
        found[rivals & ~affected & is_forced] = values.index(problem.value)
        found[affected & ~rivals & is_forced] = values.index(problem.usual_value)
        return found

    def _labels(self, truth: BoolArray, random: np.random.Generator) -> BoolArray:
        is_wrong = random.random(BLOCK) < self.problem.strength
        step = random.integers(1, max(len(self.classes), 2), BLOCK)
        if self.problem.kind != "label-noise":
            return truth
        labels = truth.copy()
        wrong = np.flatnonzero(is_wrong)
        if self.is_multi_label:
            flipped = (wrong + step[wrong]) % len(self.classes)
            labels[wrong, flipped] = ~labels[wrong, flipped]
            return labels
        labels[wrong] = False
        labels[wrong, (truth[wrong].argmax(axis=1) + step[wrong]) % len(self.classes)] = True
        return labels


def _shares(values: Sequence[str], fixed: Mapping[str, float]) -> DoubleArray:
    rest = (
        (1.0 - sum(fixed.values())) / (len(values) - len(fixed))
        if len(values) > len(fixed)
        else 0.0
    )
    return np.array([fixed.get(value, rest) for value in values])


def _pick(uniform: DoubleArray, shares: DoubleArray) -> IntArray:
    return np.minimum(np.searchsorted(np.cumsum(shares), uniform, side="right"), len(shares) - 1)


def world_table(
    rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool, seed: int
) -> Dataset:
    """Return drawn rows as a data set without predictions."""
    n_rows = len(rows.codes)
    prefix = hashlib.sha256(f"planted {seed} {classes} {is_multi_label}".encode()).hexdigest()[:16]
    ids = pa.array([f"{prefix}{row:016x}" for row in range(n_rows)], pa.string())
    columns: dict[str, pa.Array] = {
        "sample_id": ids,
        "content_hash": ids,
        "location": pa.nulls(n_rows, pa.string()),
        "key": ids,
        "split": pa.array(rows.splits, pa.int8()),
    }
    if is_multi_label:
        ends = np.concatenate([[0], np.cumsum(rows.labels.sum(axis=1))])
        columns["labels"] = pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), pa.array(np.nonzero(rows.labels)[1], pa.int32())
        )
    else:
        columns["label"] = pa.array(rows.labels.argmax(axis=1), pa.int32())
    columns["width"] = columns["height"] = pa.array(np.zeros(n_rows, dtype=np.int32))
    columns[METADATA_PREFIX + "kind"] = _words(rows.codes[:, 0], _mask_names())
    for place, name in enumerate(FACTOR_NAMES[1:], start=1):
        columns[METADATA_PREFIX + name] = _words(rows.codes[:, place], FACTORS[name])
    columns[METADATA_PREFIX + "label_is_wrong"] = pa.array((rows.labels != rows.truth).any(axis=1))
    task = Task.MULTI_LABEL if is_multi_label else Task.SINGLE_LABEL
    return Dataset(class_names=classes, task=task, table=pa.table(columns))


def _words(codes: AnyArray, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(
        pa.string()
    )


def _mask_names() -> tuple[str, ...]:
    return tuple(
        "+".join(kind for place, kind in enumerate(KINDS) if mask >> place & 1)
        for mask in range(1 << len(KINDS))
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueSlice:
    """A planted slice.

    Args:
        class_name: the class whose samples fail.
        side: for multi-label worlds, whether members have or lack the label.
        inside: which rows of the world are members [n]; all of them are labelled (or lack) the class.
        phrase: the slice in words.
        factor: what sets it apart, or None when it is about wrong labels.
        value: the value that members have.
    """

    class_name: str
    side: Side | None
    inside: BoolArray
    phrase: str
    factor: str | None = None
    value: str | None = None


def true_slices(
    problem: PlantedProblem, rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    if problem.kind == "none" or (problem.strength == 0.0 and problem.kind != "rare"):
        return ()
    if problem.kind == "label-noise":
        return _mislabelled(rows, classes, is_multi_label=is_multi_label)
    crossed = [(problem.class_name, problem.value)]
    if problem.kind == "spurious":
        crossed.append((problem.rival, problem.usual_value))
    found = [_failing(problem, rows, classes, name=name, value=value) for name, value in crossed]
    if not is_multi_label:
        return tuple(found)
    present = [replace(item, side=Side.PRESENT) for item in found]
    return (*present, *_taken_for(problem, rows, classes, found))


def _has(problem: PlantedProblem, rows: GeneratedRows, value: str) -> BoolArray:
    return np.equal(
        rows.codes[:, FACTOR_NAMES.index(problem.factor)], FACTORS[problem.factor].index(value)
    )


def _failing(
    problem: PlantedProblem, rows: GeneratedRows, classes: tuple[str, ...], *, name: str, value: str
) -> TrueSlice:
    words = (
        f"a photo of a {value} {name}"
        if problem.factor != "background"
        else f"a photo of a {name} on a {value} background"
    )
    inside = np.logical_and(rows.labels[:, classes.index(name)], _has(problem, rows, value))
    return TrueSlice(
        class_name=name, side=None, inside=inside, phrase=words, factor=problem.factor, value=value
    )


def _taken_for(
    problem: PlantedProblem,
    rows: GeneratedRows,
    classes: tuple[str, ...],
    found: Sequence[TrueSlice],
) -> tuple[TrueSlice, ...]:
    """Return the samples that lack a label and get it all the same: the other half of each mistake in a multi-label world."""
    if problem.kind == "rare":
        lacks = ~rows.labels[:, classes.index(problem.rival)]
        return (
            replace(
                found[0], class_name=problem.rival, side=Side.ABSENT, inside=found[0].inside & lacks
            ),
        )
    cues = ((problem.class_name, problem.usual_value), (problem.rival, problem.value))
    return tuple(
        TrueSlice(
            class_name=name,
            side=Side.ABSENT,
            inside=_has(problem, rows, value) & ~rows.labels[:, classes.index(name)],
            phrase=f"a photo of something {value}",
            factor=problem.factor,
            value=value,
        )
        for name, value in cues
    )


def _mislabelled(
    rows: GeneratedRows, classes: tuple[str, ...], *, is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    found = []
    for code, name in enumerate(classes):
        labelled, real = rows.labels[:, code], rows.truth[:, code]
        words = f"a photo of something that is labelled {name} and is none"
        side = Side.PRESENT if is_multi_label else None
        found.append(TrueSlice(class_name=name, side=side, inside=labelled & ~real, phrase=words))
        if is_multi_label:
            words = f"a photo of a {name} that is not labelled so"
            found.append(
                TrueSlice(class_name=name, side=Side.ABSENT, inside=real & ~labelled, phrase=words)
            )
    return tuple(found)
