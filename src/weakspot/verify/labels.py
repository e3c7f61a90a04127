"""Do the failures of a slice look like wrong labels rather than wrong predictions?

A classifier and near training samples accuse a label; witnesses that never saw a prediction are heard against it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    even_part,
    unit_rows,
)
from weakspot.core.assistants import CaptionRows
from weakspot.core.bounds import Count, Fraction, check_bounds
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    Evidence,
    LabelFinding,
    Share,
    SliceSides,
    Verdict,
    sides_of,
)
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    Side,
    class_problems,
    predicted_classes,
    probabilities_of,
)
from weakspot.core.group_tests import count_groups, effective_number, group_p
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.verify.pair_probe import (
    MIN_ROWS,
    PairProbe,
    pair_rows,
    squared_distance,
    unit_embeddings,
)

CHUNK_ROWS = 16_384
BLOCK_FAILURES = 256


def class_thresholds(labels: IntArray, probabilities: AnyArray) -> DoubleArray:
    """Return how likely every class [c] usually is for samples that carry its label; 1 for a class that nobody carries.

    >>> class_thresholds(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])).round(2).tolist()
    [0.8, 0.8]
    """
    n_classes = probabilities.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    own = np.asarray(probabilities[np.arange(len(labels)), labels], dtype=np.float64)
    sums = np.bincount(labels, weights=own, minlength=n_classes)
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)


def confident_class(probabilities: AnyArray, thresholds: DoubleArray) -> IntArray:
    """Return for every row the likeliest of the classes that reach their threshold, -1 if none does.

    >>> confident_class(np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1]]), np.array([0.8, 0.5, 0.5])).tolist()
    [-1, 1]
    """
    reached = np.where(probabilities >= thresholds, probabilities, -1.0)
    return np.where(reached.max(axis=1) >= 0, reached.argmax(axis=1), -1).astype(np.int64)


def confidently_other(
    dataset: Dataset, reference: IntArray, problem: ClassProblem, failing: IntArray
) -> IntArray:
    """Return for every failure the class that it confidently is instead of its label, -1 if it is none.

    In a multi-label task there is one alternative, the other side, and 0 stands for it.

    Args:
        dataset: all samples.
        reference: rows that thresholds are taken from; the classifier must not have been trained on them.
        problem: the class.
        failing: rows of the class.
    """
    labelled = reference[dataset.is_labelled[reference]]
    probabilities = probabilities_of(dataset, labelled, purpose="suspect labels")
    has_prediction = np.isfinite(probabilities).all(axis=1)
    known, probabilities = labelled[has_prediction], probabilities[has_prediction]
    given = probabilities_of(dataset, failing, purpose="suspect labels")
    code = dataset.class_code(problem.class_name)
    if dataset.task is Task.SINGLE_LABEL:
        found = confident_class(given, class_thresholds(dataset.labels[known], probabilities))
        return np.where(found == code, -1, found)
    has_label = dataset.label_matrix[known, code]
    present = float(probabilities[has_label, code].mean()) if has_label.any() else 1.0
    absent = float(probabilities[~has_label, code].mean()) if not has_label.all() else 0.0
    is_other = (
        given[:, code] >= present if problem.side is Side.ABSENT else given[:, code] <= absent
    )
    return np.where(is_other, 0, -1)


def nearest_rows(
    embeddings: FloatArray, training: SampleSet, rows: IntArray, *, space: str, n_nearest: int
) -> tuple[FloatArray, IntArray]:
    """Return similarity and row of the nearest training samples, chunk by chunk; minus infinity where there are fewer."""
    best = np.full((len(embeddings), n_nearest), -np.inf, dtype=np.float32)
    found = np.full((len(embeddings), n_nearest), -1, dtype=np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        near = unit_rows(training.embeddings(space, chunk))
        for first in range(0, len(embeddings), BLOCK_FAILURES):
            block = slice(first, first + BLOCK_FAILURES)
            _take_nearer(best[block], found[block], embeddings[block] @ near.T, chunk)
    return best, found


def _take_nearer(
    best: FloatArray, found: IntArray, similarities: FloatArray, rows: IntArray
) -> None:
    """Put rows [m] that are nearer than the farthest found so far in its place; both arrays [n, k] are changed."""
    for place in np.flatnonzero((similarities > best.min(axis=1, keepdims=True)).any(axis=1)):
        nearer = np.flatnonzero(similarities[place] > best[place].min())
        values = np.concatenate([best[place], similarities[place, nearer]])
        order = _largest(values, best.shape[1])
        found[place] = np.concatenate([found[place], rows[nearer]])[order]
        best[place] = values[order]


def _largest(values: FloatArray, n_wanted: int) -> IntArray:
    """Return places of the largest values in order, the first of equal ones first; only those that may be among them are sorted."""
    least = np.partition(values, len(values) - n_wanted)[len(values) - n_wanted]
    kept = np.flatnonzero(values >= least)
    return kept[np.argsort(-values[kept], kind="stable")[:n_wanted]]


MAX_RIVALS = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelPairs:
    """A class and those that its failures are taken for, as training samples show them.

    Args:
        problem: the class.
        training: whose labels are asked.
        evaluation: whose failures are looked at.
        space: whose embeddings are read.
    """

    problem: ClassProblem
    training: SampleSet
    evaluation: SampleSet
    space: str
    probes: dict[int, PairProbe | None] = field(default_factory=dict)

    def sides(self, rows: IntArray, accused: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which rows lie where only the class [n] lies that they are taken for, and which lie in the bulk of both.

        Classes that few rows are taken for are left out: both are False there.
        """
        only, either = np.zeros((2, len(rows)), dtype=np.bool_)
        for _, probe, places in self._rivals(rows, accused):
            embeddings = unit_embeddings(self.evaluation, rows[places], self.space)
            if len(embeddings) == len(places):
                only[places], either[places] = (
                    probe.is_rival_only(embeddings),
                    probe.is_either(embeddings),
                )
        return only, either

    def distance_share(self, rows: IntArray, accused: IntArray, rule: Rule) -> float | None:
        """Return the squared distance of rows from the classes they are taken for, as a part of that between the classes.

        Samples with a wrong label are ordinary samples of the other class, so it is near 0 for them; a kind of its own keeps its
        distance. The other class is taken as a whole and by those of its samples that the rule takes in, whichever is nearer.
        """
        parts = [
            _distances(
                probe,
                unit_embeddings(self.evaluation, rows[places], self.space),
                self._members(code, rule),
            )
            for code, probe, places in self._rivals(rows, accused)
        ]
        known = np.concatenate(parts) if parts else np.zeros(0)
        return float(known.mean()) if len(known) else None

    def _members(self, code: int, rule: Rule) -> DoubleArray:
        _, rival = self._pair(code)
        return unit_embeddings(self.training, rival[rule.members(self.training, rival)], self.space)

    def _pair(self, code: int) -> tuple[IntArray, IntArray]:
        names, problem = self.training.dataset.class_names, self.problem
        return pair_rows(self.training, problem.class_name, problem.side, names[code])

    def _rivals(
        self, rows: IntArray, accused: IntArray
    ) -> Iterator[tuple[int, PairProbe, IntArray]]:
        """Yield the most frequent accused classes with a probe and the places of their rows that have an embedding."""
        has = self.evaluation.has_embeddings(self.space, rows)
        counts = Counter(accused[(accused >= 0) & has].tolist())
        for code, _ in counts.most_common(MAX_RIVALS):
            if code not in self.probes:
                self.probes[code] = PairProbe.of(self.training, *self._pair(code), self.space)
            probe = self.probes[code]
            if probe is not None:
                yield code, probe, np.flatnonzero((accused == code) & has)


def _distances(probe: PairProbe, failing: DoubleArray, members: DoubleArray) -> DoubleArray:
    between = max(squared_distance(probe.own, probe.rival), 1e-12)
    found = []
    for others in (probe.rival, members):
        if len(others) >= MIN_ROWS:
            scatter = others.var(axis=0, ddof=1).sum()
            found.append(np.square(failing - others.mean(axis=0)).sum(axis=1) - scatter)
    nearest = min(found, key=lambda distances: float(distances.mean()))
    return np.asarray(nearest / between)


def captions_agree(
    captions: CaptionRows,
    dataset: Dataset,
    problem: ClassProblem,
    rows: IntArray,
    accused: IntArray,
) -> tuple[BoolArray, BoolArray]:
    """Return for which rows the caption names the accused class and not the label, and for which it names the label alone."""
    if dataset.task is not Task.SINGLE_LABEL or not len(rows):
        return np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    own = _pattern(problem.class_name)
    agrees, objects = [], []
    for caption, code in zip(captions(rows), accused.tolist(), strict=True):
        names_own = bool(own.search(caption))
        names_other = code >= 0 and bool(_pattern(dataset.class_names[code]).search(caption))
        agrees.append(names_other and not names_own)
        objects.append(names_own and not names_other)
    return np.array(agrees, dtype=np.bool_), np.array(objects, dtype=np.bool_)


def _pattern(class_name: str) -> re.Pattern[str]:
    """Return what finds a class in a caption, with or without a plural s.

    >>> bool(_pattern("sea_lion").search("Two sea lions on a rock")), bool(_pattern("ear").search("a bear"))
    (True, False)
    """
    words = re.escape(class_name.replace("_", " ").strip())
    return re.compile(rf"\b{words}s?\b", re.IGNORECASE)


PROBABILITIES, PREDICTION, NEIGHBOURS = "probabilities", "prediction", "neighbours"
PROBE, SECOND, CAPTIONS = "training probe", "second encoder", "captions"
FURTHER = frozenset({PROBABILITIES, SECOND, CAPTIONS})
MOST = 0.5


@dataclass(frozen=True, kw_only=True)
class LabelChecker:
    """Flags confirmed slices whose labels should be looked at first.

    Args:
        space: whose embeddings tell which training samples are near; not the classifier's own, which shares its blind spots.
        n_neighbours: how many training samples are asked.
        min_suspect: least number of suspect labels for a flag.
        flag_share: a slice is flagged if at least this share of its failures has a suspect label,
        flag_less: from this share on, if it is also larger than among the failures outside, no other cause is named.
        second: a further space whose neighbours are asked, where there is one.
        sure_share: the classifier's probabilities agree if it is as sure of the other class as is usual there for at least this
            share of the failures with a suspect label.
        most_either: a slice is only flagged if at most this share of its failures lies in the bulk of both classes: where more
            do, the classes look alike.
        farthest: a slice is only flagged if its failures lie no farther from the other class than this part of the squared
            distance between the classes: samples with a wrong label are ordinary samples of the other class.
        largest_p: of Fisher's test of that difference.
        level: of the intervals.
        max_failures: of more failures inside, or outside, an even part of this size is looked at: neighbours of all failures among
            all training samples would cost the square of the data set.
    """

    space: str = "clip"
    n_neighbours: Count = 10
    min_suspect: Count = 3
    flag_share: Fraction = 0.5
    flag_less: Fraction = 0.25
    second: str = "second"
    sure_share: Fraction = 0.3
    most_either: Fraction = 0.15
    farthest: Fraction = 0.5
    largest_p: Fraction = 0.05
    level: float = 0.95
    max_failures: Count = 500

    def __post_init__(self) -> None:
        check_bounds(self)

    def check(
        self,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence],
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
        captions: CaptionRows | None = None,
    ) -> tuple[Evidence, ...]:
        """Return the same evidence, in the same order, with a look at the labels of every confirmed slice.

        Wrong labels explain away other causes: where a slice is flagged, its cause, if it was looked into before, becomes that. Where
        labels are suspect and too few witnesses can be asked, it becomes unknown.

        Args:
            slices: all slices.
            evidence: what was measured of them.
            training: whose labels are asked as neighbours.
            evaluation: the samples that slices were confirmed on; the classifier must not have been trained on them.
            criterion: what counts as a failure.
            captions: a captioner, asked about the failures whose labels are suspect.
        """
        by_id = {found.slice_id: found for found in slices}
        wanted = {
            entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED
        } & by_id.keys()
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion) if wanted else ()
        findings = {}

        def pairs_of(problem: ClassProblem) -> LabelPairs:
            return LabelPairs(
                problem=problem, training=training, evaluation=evaluation, space=self.space
            )

        for slice_id in wanted:
            sides = sides_of(by_id[slice_id], evaluation, problems)
            findings[slice_id] = (
                None
                if sides.problem is None
                else self._finding(by_id[slice_id], sides, pairs_of(sides.problem), captions)
            )
        return tuple(
            _with_labels(entry, findings.get(entry.slice_id))
            if entry.verdict is Verdict.CONFIRMED
            else entry
            for entry in evidence
        )

    def suspect_rows(
        self,
        found: FailureSlice,
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> IntArray:
        """Return the failures inside a slice whose label is suspect, ascending; none if no independent witness can be asked."""
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion)
        sides = sides_of(found, evaluation, problems)
        if sides.problem is None:
            return np.zeros(0, dtype=np.int64)
        failing = np.sort(sides.problem.rows[sides.problem.failed & sides.inside])
        pairs = LabelPairs(
            problem=sides.problem, training=training, evaluation=evaluation, space=self.space
        )
        said = self._suspects(pairs, failing, None)
        return failing[said.is_suspect] if PROBE in said.witnesses else failing[:0]

    def _finding(
        self,
        found: FailureSlice,
        sides: SliceSides,
        pairs: LabelPairs,
        captions: CaptionRows | None,
    ) -> LabelFinding | None:
        asked = self._ask(sides, pairs.problem)
        rows = pairs.problem.rows[asked]
        said = self._suspects(pairs, rows, captions)
        if not said.witnesses:
            return None
        inside, outside = sides.inside[asked], sides.outside[asked]
        groups = None if pairs.problem.groups is None else pairs.problem.groups[asked]
        within, without = (
            Share.of(
                int(said.is_suspect[side].sum()),
                int(side.sum()),
                level=self.level,
                effective=effective_number(groups, side),
            )
            for side in (inside, outside)
        )
        n_suspect = count_groups(groups, said.is_suspect & inside)
        is_many = n_suspect >= self.min_suspect and within.value >= self.flag_share
        is_flagged = is_many and self._is_flagged(found, pairs, rows[inside], said.only(inside))
        is_doubtful = PROBE in said.witnesses and (
            is_many
            or (
                n_suspect >= self.min_suspect
                and within.value >= self.flag_less
                and self._is_more(said.is_suspect, inside, outside, groups)
            )
        )
        is_doubtful &= not is_flagged
        return LabelFinding(
            n_suspect=within.count,
            share=within.value,
            inside=within,
            outside=without,
            witnesses=said.witnesses,
            is_flagged=is_flagged,
            is_doubtful=is_doubtful,
            sentence=_sentence(
                within, without, said.witnesses, is_flagged=is_flagged, is_doubtful=is_doubtful
            ),
        )

    def _is_flagged(
        self, found: FailureSlice, pairs: LabelPairs, rows: IntArray, said: "_Said"
    ) -> bool:
        if PROBE not in said.witnesses or FURTHER.isdisjoint(said.witnesses):
            return False
        share = pairs.distance_share(rows, said.accused, found.rule)
        is_there = share is not None and share <= self.farthest
        return is_there and bool(said.is_either.mean() <= self.most_either)

    def _ask(self, sides: SliceSides, problem: ClassProblem) -> IntArray:
        """Return the places of the failures whose labels are looked at, ascending: all, or an even part of those on each side."""
        inside, outside = (
            np.flatnonzero(sides.inside & problem.failed),
            np.flatnonzero(sides.outside & problem.failed),
        )
        if max(len(inside), len(outside)) <= self.max_failures:
            return np.flatnonzero(problem.failed)
        return np.sort(
            np.concatenate(
                [even_part(inside, self.max_failures), even_part(outside, self.max_failures)]
            )
        )

    def _is_more(
        self, suspect: BoolArray, inside: BoolArray, outside: BoolArray, groups: IntArray | None
    ) -> bool:
        known = inside | outside
        own = None if groups is None else groups[known]
        return group_p(inside[known], suspect[known], own) <= self.largest_p

    def _suspects(
        self, pairs: LabelPairs, failing: IntArray, captions: CaptionRows | None
    ) -> "_Said":
        dataset, problem = pairs.evaluation.dataset, pairs.problem
        confident = (
            None
            if dataset.probabilities is None
            else confidently_other(dataset, pairs.evaluation.rows, problem, failing)
        )
        near = self._neighbours(self.space, failing, pairs.training, pairs.evaluation)
        accused = _taken_for(dataset, problem, failing)
        if near is None:
            alone = () if confident is None else (PROBABILITIES,)
            is_suspect = (accused if confident is None else confident) >= 0
            nowhere = np.zeros_like(is_suspect)
            return _Said(accused=accused, is_suspect=is_suspect, is_either=nowhere, witnesses=alone)
        is_suspect = (accused >= 0) & _neighbours_agree(dataset, problem, accused, near)
        only, either = pairs.sides(failing, accused)
        is_suspect &= only
        # Of ordinary samples about half reach the usual probability of their class; of doubtful ones few do.
        is_sure = confident is not None and bool(
            (confident == accused)[is_suspect].mean() >= self.sure_share
            if is_suspect.any()
            else True
        )
        witnesses = [PROBABILITIES if is_sure else PREDICTION, NEIGHBOURS, PROBE]
        further = self._neighbours(self.second, failing, pairs.training, pairs.evaluation)
        if further is not None:
            is_suspect &= _neighbours_agree(dataset, problem, accused, further)
            witnesses.append(SECOND)
        if captions is not None and is_suspect.any():
            places = np.flatnonzero(is_suspect)
            agrees, objects = captions_agree(
                captions, dataset, problem, failing[places], accused[places]
            )
            is_suspect[places[objects]] = False
            witnesses += [CAPTIONS] if agrees.mean() >= MOST else []
        return _Said(
            accused=accused, is_suspect=is_suspect, is_either=either, witnesses=tuple(witnesses)
        )

    def _neighbours(
        self, space: str, rows: IntArray, training: SampleSet, evaluation: SampleSet
    ) -> IntArray | None:
        """Return the nearest training rows [n, k] of rows, -1 where a row has no embedding; None if nobody can be asked."""
        if space not in evaluation.spaces or space not in training.spaces:
            return None
        labelled = training.rows[training.dataset.is_labelled[training.rows]]
        embeddings = unit_rows(evaluation.embeddings(space, rows))
        best, found = nearest_rows(
            embeddings, training, labelled, space=space, n_nearest=self.n_neighbours
        )
        if len(labelled) < self.n_neighbours or not np.isfinite(best).any():
            return None
        return np.where(np.isfinite(best), found, -1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Said:
    """What failures are taken for (-1: nothing else), which labels are suspect, which lie between classes, and who was asked."""

    accused: IntArray
    is_suspect: BoolArray
    is_either: BoolArray
    witnesses: tuple[str, ...]

    def only(self, chosen: BoolArray) -> "_Said":
        return replace(
            self,
            accused=self.accused[chosen],
            is_suspect=self.is_suspect[chosen],
            is_either=self.is_either[chosen],
        )


def _taken_for(dataset: Dataset, problem: ClassProblem, failing: IntArray) -> IntArray:
    """Return the class that every failure is taken for, -1 if it is its own all the same; 0 in a multi-label task."""
    if dataset.task is not Task.SINGLE_LABEL:
        return np.zeros(len(failing), np.int64)
    found = predicted_classes(dataset, failing)
    return np.where(found == dataset.class_code(problem.class_name), -1, found)


def _with_labels(entry: Evidence, finding: LabelFinding | None) -> Evidence:
    cause = entry.cause
    if finding is not None and cause is not None:
        if finding.is_flagged:
            cause = _instead(cause, Cause.LABELS)
        elif finding.is_doubtful and cause.cause is not Cause.CONFUSABLE:
            cause = _instead(cause, Cause.UNKNOWN)
    return entry.model_copy(update={"labels": finding, "cause": cause})


def _instead(found: CauseFinding, cause: Cause) -> CauseFinding:
    """Return a finding with another cause: figures stay, what spoke for the earlier one is not said any more."""
    figures = found.sentence.removesuffix(" ".join(found.signs)).strip()
    return found.model_copy(update={"cause": cause, "signs": (), "sentence": figures})


def _neighbours_agree(
    dataset: Dataset, problem: ClassProblem, accused: IntArray, near: IntArray
) -> BoolArray:
    """Return for which failures most neighbours carry the label that the classifier is confident of."""
    if not len(near):
        return np.zeros(0, dtype=np.bool_)
    if dataset.task is Task.SINGLE_LABEL:
        agrees = np.equal(dataset.labels[near], accused[:, None])
    else:
        carries = dataset.label_matrix[near, dataset.class_code(problem.class_name)]
        agrees = carries if problem.side is Side.ABSENT else ~carries
    return np.asarray((agrees & (near >= 0)).mean(axis=1) > MOST, dtype=np.bool_)


def _sentence(
    inside: Share,
    outside: Share,
    witnesses: Sequence[str],
    *,
    is_flagged: bool,
    is_doubtful: bool,
) -> str:
    count = f"{inside.count} of {inside.total} failures inside"
    if is_flagged:
        others = f", against {outside.count} of {outside.total} outside" if outside.total else ""
        further = " and the ".join(["", *(name for name in witnesses if name in FURTHER)])
        return (
            f"Evidence points to wrong labels: {count} lie among training samples of another label and apart from those of their "
            f"own{others};{further.removeprefix(' and')} agree. Look at these labels before repairing anything."
        )
    if NEIGHBOURS not in witnesses:
        return (
            f"The classifier alone would call {inside.count} of {inside.total} labels wrong; without embeddings of an independent "
            "encoder that cannot be told from a blind spot."
        )
    if is_doubtful:
        return (
            f"{count} lie among training samples of another label. These may be wrong labels or a kind of its own; probabilities, a "
            "second encoder or captions would tell."
        )
    return f"The labels look right: {inside.count} of {inside.total} failures have a suspect label."
