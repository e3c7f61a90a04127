"""What an advice hands out: pool images to label, what to collect, its files in the folder `next`, and its sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray, even_part
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split
from weakspot.core.evidence import Interval
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.samples import SampleSet
from weakspot.data.locations import shown_location
from weakspot.repair.advice.kinds import (
    MAX_FITTED,
    MIN_SEEN,
    ImageKind,
    MeasuredRepair,
    fit_probe,
    held_out_scores,
    probe_by_blocks,
    space_of,
    with_embedding,
)
from weakspot.repair.advice.learning_curve import Forecast
from weakspot.repair.collecting import pool_rows
from weakspot.repair.export import keys_of, shown_labels
from weakspot.repair.labels import (
    IMAGE,
    LABEL,
    LIST_FILE,
    SAMPLE_ID,
    suggested_classes,
    table_bytes,
    write_label_table,
)
from weakspot.repair.measure import each_once, is_image_of
from weakspot.report.wording import points
from weakspot.store.atomic import write_bytes

MIN_LISTED = 40

MIN_TOLD = 0.005


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolChoice:
    """Pool images to label for a kind.

    Args:
        rows: rows of the data set, best first.
        is_labelled: which of them have a label already.
        n_candidates: pool images that they were chosen from.
        n_pool: all pool images.
    """

    rows: IntArray
    is_labelled: BoolArray
    n_candidates: int
    n_pool: int


def choose_from_pool(
    kind: ImageKind,
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    n_wanted: int = 0,
    seed: int,
) -> PoolChoice:
    """Return the pool images to label first: as many as a list holds, or twice as many as are wanted, since some may be of other kinds.

    Those come first that are as much like the kind as half of its own images are, and among them those in which the classifier sees least
    of the class; then the others, most like the kind first. What is labelled already comes before what is not. Of a slice only what its
    rule takes; where nothing can be compared, in the order of `pool_rows`.
    """
    pool = fresh_pool(samples)
    rows = _candidates(kind, samples, pool, criterion)
    is_labelled = samples.dataset.is_labelled[rows]
    scores = _scores(kind, samples, rows, seed=seed)
    if scores is not None:
        likeness, typical = scores
        belief = _belief(kind, samples, rows)
        is_typical = likeness >= typical
        order = np.lexsort(
            (rows, np.where(is_typical, belief, -likeness), ~is_typical, ~is_labelled)
        )
        rows, is_labelled = rows[order], is_labelled[order]
    n_listed = max(MIN_LISTED, 2 * n_wanted)
    return PoolChoice(
        rows=rows[:n_listed],
        is_labelled=is_labelled[:n_listed],
        n_candidates=len(rows),
        n_pool=len(pool),
    )


def fresh_pool(samples: SampleSet) -> IntArray:
    """Return pool rows whose image is neither trained on nor measured on, each image once."""
    dataset = samples.dataset
    rows = dataset.rows_of(Split.POOL)
    others = dataset.rows_of(Split.TRAIN, Split.VALIDATION, Split.TEST)
    return each_once(dataset, rows[~is_image_of(dataset, rows, others)])


def _candidates(
    kind: ImageKind, samples: SampleSet, pool: IntArray, criterion: FailureCriterion
) -> IntArray:
    """Return pool rows that may be of the kind: labelled with its class or not labelled at all, and inside its slice if it is one."""
    dataset = samples.dataset
    if kind.slice_ is not None:
        (own,) = pool_rows((kind.slice_,), samples, criterion)
        return own.rows[np.isin(own.rows, pool)]
    return np.asarray(pool[kind.is_of_class(pool) | ~dataset.is_labelled[pool]], dtype=np.int64)


def _scores(
    kind: ImageKind, samples: SampleSet, rows: IntArray, *, seed: int
) -> tuple[DoubleArray, float] | None:
    """Return how much each row is like the kind [n], and how much its own images are by half; None if nothing can be compared."""
    space = space_of(samples)
    if space is None:
        return None
    own = with_embedding(samples, even_part(kind.rows, MAX_FITTED), space)
    others = with_embedding(samples, even_part(_others(kind, samples), MAX_FITTED), space)
    if len(own) < MIN_SEEN or len(others) < MIN_SEEN:
        return None
    own_scores, _ = held_out_scores(samples, own, others, space, seed=seed)
    head = fit_probe(samples.embeddings(space, own), samples.embeddings(space, others))
    scores = np.nan_to_num(probe_by_blocks(samples, rows, space, head), nan=-np.inf)
    return scores, float(np.median(own_scores))


def _belief(kind: ImageKind, samples: SampleSet, rows: IntArray) -> DoubleArray:
    """Return the probability that the classifier gives to the class of the kind [n]; where it is not known, nothing tells rows apart."""
    dataset = samples.dataset
    if dataset.probabilities is None:
        return np.zeros(len(rows))
    code = dataset.class_code(kind.class_name)
    said = np.nan_to_num(np.asarray(dataset.probabilities[rows, code], dtype=np.float64), nan=1.0)
    return 1.0 - said if kind.side is Side.ABSENT else said


def _others(kind: ImageKind, samples: SampleSet) -> IntArray:
    """Return labelled rows of other classes, of training and of the half that may be looked at.

    For a class as a whole, its own training rows that look different are others, too.
    """
    dataset = samples.dataset
    rows = np.union1d(dataset.rows_of(Split.TRAIN), kind.discovery.rows)
    rows = rows[dataset.is_labelled[rows]]
    is_other = ~kind.is_of_class(rows)
    if kind.slice_ is None and kind.training is not None:
        is_other |= np.isin(rows, dataset.rows_of(Split.TRAIN)) & ~np.isin(rows, kind.training)
    return np.asarray(rows[is_other], dtype=np.int64)


MIN_GAIN = 0.05
MAX_LOST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectionNeed:
    """Images that a finding could do with.

    Args:
        kind: what they are to show.
        choice: what the pool has of it.
        n_wanted: how many; None if that cannot be said.
        forecast: what they will bring, None if that cannot be said.
        why_none: why not.
    """

    kind: ImageKind
    choice: PoolChoice
    n_wanted: int | None = None
    forecast: Forecast | None = None
    why_none: str = ""

    @property
    def moves_errors(self) -> bool:
        """Return whether more than half of what is gained on these images is expected to be lost on others."""
        if self.forecast is None:
            return False
        n_kind = len(self.kind.rows)
        n_others = len(self.kind.discovery) - n_kind
        lost = -self.forecast.elsewhere * n_others
        return lost > MAX_LOST * max(self.forecast.gain * n_kind, 0.0)

    @property
    def may_help(self) -> bool:
        """Return whether more images are worth having: a gain is expected that others do not pay for, or nothing is known of it."""
        if self.forecast is None:
            return True
        is_gain = self.forecast.helps or self.forecast.gain >= MIN_GAIN
        return is_gain and not self.moves_errors


def gain_words(interval: Interval) -> str:
    """Return an interval of a gain in points.

    >>> gain_words(Interval(low=0.4, high=0.75)), gain_words(Interval(low=-0.05, high=0.12))
    ('+40 to +75 points', '−5 to +12 points')
    """
    return f"{points(interval.low)} to {points(interval.high)} points"


def known_words(kind: ImageKind, repair: MeasuredRepair | None) -> str:
    """Return why labels are needed: what training has of the kind, and what weighing it differently did."""
    n_known = kind.n_known
    if n_known is None:
        return "training images are not known here"
    if not n_known:
        return "retraining cannot help: 0 such training images"
    have = f"you have {n_known:,} such training image{'' if n_known == 1 else 's'}"
    if repair is not None and not repair.n_added and not repair.helps:
        return f"{have}, weighing them more did not help"
    return have


def number_words(wish: CollectionNeed) -> str:
    if wish.n_wanted is None:
        return "some"
    is_rising = wish.forecast is not None and wish.forecast.is_rising
    return f"at least {wish.n_wanted:,}" if is_rising else f"about {wish.n_wanted:,}"


def expectation(wish: CollectionNeed) -> str:
    """Return the expected gain and what it costs elsewhere, or why neither can be said."""
    if wish.forecast is None:
        return f"the gain cannot be predicted: {wish.why_none}"
    told = f"expected {gain_words(wish.forecast.interval)} on these images"
    if abs(wish.forecast.elsewhere) >= MIN_TOLD:
        told += f", about {points(wish.forecast.elsewhere)} on others"
    return told


def label_sentence(wish: CollectionNeed, file: str, repair: MeasuredRepair | None) -> str:
    kind, choice = wish.kind, wish.choice
    n_ready, n_listed = int(choice.is_labelled.sum()), len(choice.rows)
    do, ready = ("Add", ", labelled already") if n_ready == n_listed else ("Label", "")
    if 0 < n_ready < n_listed:
        ready = f", {n_ready:,} of them labelled already"
    more = " more" if kind.n_known else ""
    return (
        f"{kind.title}: {known_words(kind, repair)}. {do} {number_words(wish)}{more}: {file} "
        f"(first {n_listed:,} chosen{ready}), {expectation(wish)}"
    )


def collect_sentence(wish: CollectionNeed, file: str, repair: MeasuredRepair | None) -> str:
    kind, choice = wish.kind, wish.choice
    missing = f"none of {choice.n_pool:,} pool images fits" if choice.n_pool else "no pool"
    more = " more" if kind.n_known else ""
    return (
        f"{kind.title}: {known_words(kind, repair)}; {missing}: collect {number_words(wish)}{more}, "
        f"see {file}; {expectation(wish)}"
    )


def retrain_sentence(kind: ImageKind, repair: MeasuredRepair) -> str:
    change = repair.change
    counts = f"{change.right_before:,} to {change.right_after:,} of {change.n_samples:,} test images right"
    how = f"{points(change.change)} points ({gain_words(repair.interval)})"
    return (
        f"{kind.title}: retraining the last layer ({repair.plan.repairer}) helps: {counts}, {how}"
    )


def predicted_retrain_sentence(kind: ImageKind, interval: Interval) -> str:
    return (
        f"{kind.title}: retraining the last layer with more weight on your {kind.n_known or 0:,} such training images "
        f"may help: expected {gain_words(interval)} on these images, not measured yet"
    )


def labels_sentence(kind: ImageKind, n_suspect: int, file: str, *, is_flagged: bool) -> str:
    begin = "look at the labels first" if is_flagged else "some labels may be wrong"
    return f"{kind.title}: {begin}: {n_suspect:,} suspect ones in {file}"


def generate_sentence(kind: ImageKind) -> str:
    return (
        f"{kind.title}: no such images to be had? Generate some and train on them; "
        "what it brings is measured, not promised"
    )


def accept_sentence(wish: CollectionNeed, repair: MeasuredRepair | None) -> str:
    """Return how to live with it: the line for policy.toml lets it pass and holds everything else; first why, if nothing helps."""
    kind, forecast = wish.kind, wish.forecast
    gate = f"accept the limit and gate on it, in policy.toml: {policy_line(kind)}"
    if wish.may_help or forecast is None:
        return f"{kind.title}: or {gate}"
    why = (
        f"would mostly move errors ({gain_words(forecast.interval)} here, about {points(forecast.elsewhere)} on others)"
        if wish.moves_errors
        else f"are not expected to help ({gain_words(forecast.interval)})"
    )
    return f"{kind.title}: {known_words(kind, repair)}; {forecast.n_wanted:,} more {why}: {gate}"


def policy_line(kind: ImageKind) -> str:
    if kind.slice_ is not None:
        return f'[[accepted]] slice = "{kind.subject}", with reason and until'
    right = 1 - kind.n_failed / kind.n_evaluated if kind.n_evaluated else 0.0
    name = kind.class_name.replace("\\", "\\\\").replace('"', '\\"')
    return f'[class_accuracy] per_class = {{ "{name}" = {right:.2f} }}'


NEXT_FOLDER = "next"
LABEL_FILE = f"{NEXT_FOLDER}/{LIST_FILE}"
COLLECT_PAGE = f"{NEXT_FOLDER}/to_collect.md"
SUSPECT_FILE = f"{NEXT_FOLDER}/labels_to_check.csv"
LABEL_COLUMNS = (
    "finding_id",
    "finding",
    "rank",
    SAMPLE_ID,
    IMAGE,
    "key",
    "suggested_class",
    "known_label",
    LABEL,
)
SUSPECT_COLUMNS = (
    "finding_id",
    "finding",
    SAMPLE_ID,
    IMAGE,
    "key",
    "split",
    LABEL,
    "prediction",
)
N_EXAMPLES = 8
N_WORDS = 3


def write_label_list(folder: Path, wishes: Sequence[CollectionNeed], dataset: Dataset) -> None:
    """Write the pool images to label, best first by finding, each once; what people filled in before is kept.

    Raises:
        DataError: if a list is there that cannot be read; it is never overwritten.
    """
    lines: dict[str, dict[str, str]] = {}
    for wish in wishes:
        rows = wish.choice.rows
        columns = (
            dataset.sample_ids(rows),
            _places(rows, dataset),
            keys_of(rows, dataset),
            suggested_classes(dataset, rows),
            shown_labels(rows, dataset),
        )
        for rank, cells in enumerate(zip(*columns, strict=True), 1):
            first = (wish.kind.subject, wish.kind.title, str(rank))
            line = dict(zip(LABEL_COLUMNS, (*first, *cells, ""), strict=True))
            lines.setdefault(line[SAMPLE_ID], line)
    path = folder / LABEL_FILE
    if not lines and not path.exists():
        return
    if not write_label_table(path, LABEL_COLUMNS, list(lines.values())):
        path.unlink()


def write_suspects(folder: Path, suspects: Mapping[ImageKind, IntArray], dataset: Dataset) -> None:
    """Write the evaluation samples whose label is suspect; without any there is no such file."""
    path = folder / SUSPECT_FILE
    if not suspects:
        path.unlink(missing_ok=True)
        return
    lines = []
    for kind, rows in suspects.items():
        columns = (
            dataset.sample_ids(rows),
            _places(rows, dataset),
            keys_of(rows, dataset),
            [SPLIT_ORDER[code].value for code in dataset.splits[rows].tolist()],
            shown_labels(rows, dataset),
            suggested_classes(dataset, rows),
        )
        lines += [
            dict(zip(SUSPECT_COLUMNS, (kind.subject, kind.title, *cells), strict=True))
            for cells in zip(*columns, strict=True)
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, table_bytes(SUSPECT_COLUMNS, lines))


def write_collect_page(folder: Path, wishes: Sequence[CollectionNeed], dataset: Dataset) -> None:
    """Write a page for those who collect: in words, how many, example images, what is missing; without a wish there is none."""
    path = folder / COLLECT_PAGE
    if not wishes:
        path.unlink(missing_ok=True)
        return
    parts = [
        "# What to collect",
        "",
        "Kinds of images that the classifier gets wrong and has seen too few of. New images must be new: not from the sets that the",
        "classifier is measured on, and not many of one object, place or moment.",
    ]
    for wish in wishes:
        parts += ["", *_section(wish, dataset)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, ("\n".join(parts) + "\n").encode())


def _section(wish: CollectionNeed, dataset: Dataset) -> list[str]:
    kind = wish.kind
    n_known = "unknown" if kind.n_known is None else f"{kind.n_known:,}"
    lines = [
        f"## {kind.title}",
        "",
        f"- **How many:** {number_words(wish)}, of the class “{kind.class_name}”; {expectation(wish)}.",
        f"- **What they show:** {_words(kind)}",
        f"- **In training now:** {n_known} such images, of {kind.n_class_training:,} of the class.",
        f"- **Wrong now:** {kind.n_failed:,} of {kind.n_evaluated:,} such evaluation images.",
    ]
    if kind.words_there:
        shown = ", ".join(kind.words_there[:N_WORDS])
        lines.append(f"- **Not these:** training has images that show: {shown}.")
    if wish.choice.n_candidates:
        lines.append(
            f"- **In the pool:** {wish.choice.n_candidates:,} candidates, the best in {Path(LABEL_FILE).name}."
        )
    examples = kind.rows[np.argsort(~kind.failed, kind="stable")][:N_EXAMPLES]
    places = [
        place or key
        for place, key in zip(_places(examples, dataset), keys_of(examples, dataset), strict=True)
    ]
    if places:
        lines += ["- **Like these** (of the half of the evaluation images that may be looked at):"]
        lines += [f"  - `{place}`" for place in places]
    return lines


def _words(kind: ImageKind) -> str:
    if kind.words:
        return ", ".join(f"“{word}”" for word in kind.words[:N_WORDS]) + "."
    if kind.slice_ is not None:
        return kind.slice_.rule.sentence
    return "no words are known; see the examples."


def _places(rows: IntArray, dataset: Dataset) -> list[str]:
    return [shown_location(place) if place else "" for place in dataset.locations(rows)]
