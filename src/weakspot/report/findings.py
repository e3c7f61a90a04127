"""Confirmed slices, and the others, with everything a report says of them, their curves and their images.

How many images, and how large, so that one file opens quickly and can be sent by mail.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import ClassFinding, Evidence, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, predicted_classes
from weakspot.core.run import Decision, DecisionKind, MethodRecord, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName, matches
from weakspot.data.charts import ChartPoint, scatter
from weakspot.report import wording
from weakspot.report.repairs import Move, StrategyComparison, p_words


@dataclass(frozen=True, kw_only=True)
class ShownImage:
    """One image of a report.

    Args:
        sample_id: which sample; thumbnails are given by this id.
        answer: what the classifier said, in words.
        has_failed: whether that counts as a failure.
    """

    sample_id: str
    answer: str
    has_failed: bool

    @property
    def caption(self) -> str:
        return f"{'taken for' if self.has_failed else 'right:'} {self.answer}"


@dataclass(frozen=True, kw_only=True)
class SliceImages:
    """The samples deepest inside a slice, and those of the class farthest from it."""

    hard: tuple[ShownImage, ...] = ()
    easy: tuple[ShownImage, ...] = ()

    @property
    def sample_ids(self) -> tuple[str, ...]:
        return tuple(image.sample_id for image in self.hard + self.easy)


def choose_images(
    found: FailureSlice, samples: SampleSet, criterion: FailureCriterion, *, n_images: int = 12
) -> SliceImages:
    """Return the samples of the class that lie deepest inside and farthest outside, chosen by the rule and not by result."""
    problems = class_problems(samples.dataset, samples.rows, criterion)
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        return SliceImages()
    scores = found.rule.scores(samples, problem.rows)
    inside = found.inside(samples, problem)
    order = np.argsort(-scores, kind="stable")
    hard = [int(place) for place in order if inside[place]]
    easy = [int(place) for place in order[::-1] if not inside[place] and np.isfinite(scores[place])]
    return SliceImages(
        hard=_shown(samples, problem, np.array(hard[:n_images], dtype=np.int64)),
        easy=_shown(samples, problem, np.array(easy[:n_images], dtype=np.int64)),
    )


def _shown(samples: SampleSet, problem: ClassProblem, places: IntArray) -> tuple[ShownImage, ...]:
    dataset, rows, failed = samples.dataset, problem.rows[places], problem.failed[places]
    if dataset.task is Task.SINGLE_LABEL:
        answers = [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    else:
        answers = ["wrong" if one else "right" for one in failed]
    return tuple(
        ShownImage(sample_id=name, answer=answer, has_failed=bool(wrong))
        for name, answer, wrong in zip(dataset.sample_ids(rows), answers, failed, strict=True)
    )


MEGABYTE = 1_000_000
MIN_SIDE = 64
N_TRIED = 24
TAG_BYTES = 160

MakeThumbnail = Callable[[str, int], bytes | None]


ImagePlan = tuple[int, int]
"""How images are shown: so many at each end of a slice, and their longest side."""


def fit_images(
    images: Mapping[str, SliceImages],
    make: MakeThumbnail,
    *,
    asked: ImagePlan,
    most_bytes: int,
    most_megabytes: float,
) -> tuple[dict[str, SliceImages], dict[str, bytes], str]:
    """Return as many images as fit, the first slices before later ones; their JPEG data by sample id; and what was left out, in words.

    Args:
        images: what would be shown, by slice id, most important slice first.
        make: returns the thumbnail of a sample with a longest side, None if there is no image.
        asked: what the settings ask for.
        most_bytes: room for images in the file.
        most_megabytes: size of the whole file, as it is said to people.
    """
    smallest = min(1, asked[0]), min(MIN_SIDE, asked[1])
    n_each, side = next(
        (plan for plan in _plans(*asked) if _estimate(images, make, *plan) <= most_bytes), smallest
    )
    made: dict[str, bytes | None] = {}
    shown: dict[str, SliceImages] = {}
    room = most_bytes
    for slice_id, each in images.items():
        cut = _cut(each, n_each)
        for sample_id in cut.sample_ids:
            if sample_id not in made:
                made[sample_id] = make(sample_id, side)
        room -= sum(_size(made[sample_id]) for sample_id in cut.sample_ids)
        if room < 0:
            break
        shown[slice_id] = cut
    thumbnails = {name: data for name, data in made.items() if data is not None}
    left_out = []
    if n_each < asked[0]:
        left_out.append(f"at most {n_each} of {asked[0]} images are shown at each end of a slice")
    if side < asked[1]:
        left_out.append(f"they are {side} instead of {asked[1]} pixels large")
    if len(shown) < len(images):
        after = f"findings after number {len(shown)} are shown without images"
        left_out.append(after if shown else "no images are shown")
    note = (
        f"To keep this file below {most_megabytes:g} MB, {', '.join(left_out)} ([report] most_megabytes in weakspot.toml)."
        if left_out
        else ""
    )
    return shown, thumbnails, note


def _plans(n_each: int, side: int) -> Iterator[ImagePlan]:
    """Yield ways to show images, from what is asked for down to what can still be recognised."""
    yield n_each, side
    for share, size in ((0.5, 1.0), (0.5, 0.7), (0.25, 0.6), (0.125, 0.5)):
        smaller = min(side, max(MIN_SIDE, round(size * side)))
        yield min(n_each, max(1, round(share * n_each))), smaller


def _estimate(
    images: Mapping[str, SliceImages], make: MakeThumbnail, n_each: int, side: int
) -> float:
    """Return about how many bytes images take in the page, from some of them spread over all slices."""
    names = [name for each in images.values() for name in _cut(each, n_each).sample_ids]
    tried = names[:: max(1, len(names) // N_TRIED)]
    sizes = [_size(make(name, side)) for name in tried]
    return 1.1 * len(names) * sum(sizes) / len(sizes) if sizes else 0.0


def _size(data: bytes | None) -> int:
    """Return what an image takes in the page: base64 and the tags around it."""
    return TAG_BYTES + (4 * (len(data) + 2) // 3 if data is not None else 0)


def _cut(each: SliceImages, n_each: int) -> SliceImages:
    return SliceImages(hard=each.hard[:n_each], easy=each.easy[:n_each])


def class_finding_images(
    findings: Sequence[ClassFinding],
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    n_images: int,
) -> dict[str, SliceImages]:
    """Return by finding the images that show it: `hard` of the evaluation, `easy` of training; only confirmed ones have any."""
    shown = [one for one in findings if one.is_confirmed]
    wanted = {name for one in shown for name in (*one.examples_here, *one.examples_there)}
    if not wanted:
        return {}
    known = _shown_rows(wanted, samples, criterion)

    def of(names: Sequence[str]) -> tuple[ShownImage, ...]:
        return tuple(known[name] for name in names[:n_images] if name in known)

    return {
        one.finding_id: SliceImages(hard=of(one.examples_here), easy=of(one.examples_there))
        for one in shown
        if one.examples_here or one.examples_there
    }


def _shown_rows(
    wanted: set[str], samples: SampleSet, criterion: FailureCriterion
) -> dict[str, ShownImage]:
    dataset = samples.dataset
    places = zip(dataset.sample_ids(samples.rows), samples.rows.tolist(), strict=True)
    rows = {name: row for name, row in places if name in wanted}
    return {name: _image(name, row, dataset, criterion) for name, row in rows.items()}


def _image(name: str, row: int, dataset: Dataset, criterion: FailureCriterion) -> ShownImage:
    alone = np.array([row])
    is_judged = dataset.task is Task.SINGLE_LABEL and bool(dataset.is_labelled[row])
    if not is_judged or not dataset.has_predictions:
        return ShownImage(sample_id=name, answer="", has_failed=False)
    said = int(predicted_classes(dataset, alone)[0])
    answer = dataset.class_names[said] if said >= 0 else ""
    has_failed = said >= 0 and bool(criterion.failed(dataset, alone)[0])
    return ShownImage(sample_id=name, answer=answer, has_failed=has_failed)


WIDTH, HEIGHT, MARGIN = 320, 120, 24
MIN_POINTS = 2


@dataclass(frozen=True, kw_only=True)
class CurveChart:
    """Curves that share their axes: K samples nearest to the name on a logarithmic axis, accuracy from 0 to 100 %.

    Args:
        lines: names whose curves are drawn, and whether each names the slice rather than the other end.
        fewest: smallest K.
        most: largest K.
    """

    lines: tuple[tuple[SliceName, bool], ...]
    fewest: int
    most: int
    width: int = WIDTH
    height: int = HEIGHT
    margin: int = MARGIN

    def points(self, name: SliceName) -> str:
        """Return the `x,y` pairs of a name's curve in the chart's own units."""
        span = math.log(self.most / self.fewest) or 1.0
        places = [
            (
                MARGIN + (WIDTH - 2 * MARGIN) * math.log(max(count, 1) / self.fewest) / span,
                MARGIN + (HEIGHT - 2 * MARGIN) * (1.0 - accuracy),
            )
            for count, accuracy in name.curve
        ]
        return " ".join(f"{across:.1f},{down:.1f}" for across, down in places)


def curve_chart(names: Sequence[SliceName], easy_names: Sequence[SliceName]) -> CurveChart | None:
    """Return the curves of the best name at either end, None if there is nothing to draw."""
    lines = tuple(
        (name, is_hard)
        for ordered, is_hard in ((names, True), (easy_names, False))
        for name in [one for one in ordered if len(one.curve) >= MIN_POINTS][:1]
    )
    counts = [count for name, _ in lines for count, _ in name.curve]
    return CurveChart(lines=lines, fewest=max(1, min(counts)), most=max(counts)) if lines else None


def trade_off_plot(compared: StrategyComparison) -> str:
    """Return the plot as SVG text, empty if no strategy has a place in it."""
    points = [
        ChartPoint(
            name=row.title,
            across=100 * row.overall.change,
            up=100 * row.on_slices.change,
            across_interval=_span(row.overall),
            up_interval=_span(row.on_slices),
            series="baselines" if row.is_baseline else "strategies",
            is_marked=row.is_chosen,
        )
        for row in compared.points
        if row.overall is not None and row.on_slices is not None
    ]
    if not points:
        return ""
    return scatter(
        points,
        title="What repairs do to slices, against what they do overall",
        x_label="change of overall accuracy, points",
        y_label="change on slices, points",
    )


def _span(move: Move) -> tuple[float, float]:
    return 100 * move.interval.low, 100 * move.interval.high


@dataclass(frozen=True, kw_only=True)
class SliceSentences:
    """One slice in words; what is not known is empty.

    Args:
        sentence: what it says.
        proof: how it was tested.
        effect: how large the gap is.
        strength: how consistent it was where it was found.
        not_sure: words that may fit and may not.
        doubts: what a second witness said of names, where it disagrees or could be asked.
        cause: the probable cause.
        confused_with: what its samples are taken for.
        labels: what was seen of its labels.
        explained: why it is no finding of its own; empty if it is one.
        people: what people decided about it.
    """

    sentence: str = ""
    proof: str = ""
    effect: str = ""
    strength: str = ""
    not_sure: str = ""
    doubts: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    confused_with: str = ""
    labels: str = ""
    explained: str = ""
    people: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding(SliceSentences):
    """One confirmed slice.

    Args:
        number: place in the report, from 1.
        slice_: the slice.
        evidence: the figures.
        curve: accuracy by closeness to the names, None if it was not measured.
        also_found: other slices with nearly the same members, as `title (method)`.
        images: what to show.
    """

    number: int
    slice_: FailureSlice
    evidence: Evidence
    curve: CurveChart | None
    also_found: tuple[str, ...]
    images: SliceImages

    @property
    def phrase(self) -> str:
        """Return its name as a caption, empty if it has none."""
        return "" if self.slice_.name is None else self.slice_.name.phrase

    @property
    def has_suspect_labels(self) -> bool:
        """Return whether labels should be looked at first."""
        return self.evidence.labels is not None and self.evidence.labels.is_flagged


@dataclass(frozen=True, kw_only=True)
class RefusedSlice:
    """One slice that is no finding: it was not confirmed, or a person dismissed it.

    Args:
        slice_: which slice.
        verdict: what its evidence says, in words; empty if it has none.
        evidence: the figures, None if it was never measured.
        decision: who dismissed it and why, None if nobody did.
    """

    slice_: FailureSlice
    verdict: str
    evidence: Evidence | None
    decision: Decision | None = None

    @property
    def was_tested(self) -> bool:
        """Return whether it has a p-value."""
        return self.evidence is not None and self.evidence.verdict is Verdict.NOT_CONFIRMED


def finding(
    number: int, found: FailureSlice, evidence: Evidence, record: RunRecord, images: SliceImages
) -> Finding:
    return Finding(
        number=number,
        slice_=found,
        evidence=evidence,
        curve=curve_chart([name for name in found.names if not name.is_unsure], found.easy_names),
        also_found=tuple(_also_found(found.slice_id, record)),
        images=images,
        **vars(slice_sentences(found, evidence, record)),
    )


def slice_sentences(
    slice_: FailureSlice, evidence: Evidence | None, record: RunRecord
) -> SliceSentences:
    """Word a slice; of one that was not measured only what is known of its names."""
    doubts = tuple(
        sentence
        for sentence in (
            *(wording.held_sentence(name) for name in slice_.names),
            *(wording.witness_sentence(name) for name in slice_.names if name.witness),
        )
        if sentence
    )
    if evidence is None:
        return SliceSentences(doubts=doubts, not_sure=wording.nearest_sentence(slice_))
    cause, labels = evidence.cause, evidence.labels
    confused_with = None if cause is None else cause.confused_with
    return SliceSentences(
        sentence=wording.finding_sentence(slice_, evidence),
        proof=wording.proof_sentence(evidence),
        effect=wording.effect_sentence(evidence),
        strength=_strength(slice_),
        not_sure=wording.nearest_sentence(slice_),
        doubts=doubts,
        cause=wording.cause_sentences(evidence),
        confused_with="" if confused_with is None else confused_with.sentence,
        labels="" if labels is None else labels.sentence,
        explained=_explain(evidence, record),
        people=_people(slice_.slice_id, record.decisions),
    )


def dismissed_slices(record: RunRecord) -> tuple[RefusedSlice, ...]:
    """Return the slices that people dismissed and nobody restored, oldest decision first."""
    known = record.slices_by_id()
    evidence = {entry.slice_id: entry for entry in record.evidence}
    return tuple(
        RefusedSlice(
            slice_=known[slice_id],
            verdict=wording.VERDICT_WORDS[evidence[slice_id].verdict]
            if slice_id in evidence
            else "",
            evidence=evidence.get(slice_id),
            decision=decision,
        )
        for slice_id, decision in record.dismissed().items()
        if slice_id in known
    )


def _people(slice_id: str, decisions: Sequence[Decision]) -> str:
    words = {
        DecisionKind.ACCEPTED: "Accepted by",
        DecisionKind.RENAMED: "Put in words by",
        DecisionKind.MERGED: "Merged by",
    }
    own = [one for one in decisions if one.slice_id == slice_id]
    found = {kind: list(dict.fromkeys(one.by for one in own if one.kind is kind)) for kind in words}
    return " ".join(
        f"{words[kind]} {', '.join(people)}." for kind, people in found.items() if people
    )


def _strength(found: FailureSlice) -> str:
    if found.strength is None:
        return ""
    chance = f", {p_words(found.strength_p)}" if found.strength_p is not None else ""
    return f"{found.strength:.2f} by {found.method}{chance}"


def _explain(evidence: Evidence, record: RunRecord) -> str:
    if evidence.explained is None:
        return ""
    return wording.explanation_sentence(
        evidence.explained, record.slice_by_id(evidence.explained.slice_id).title
    )


def _also_found(slice_id: str, record: RunRecord) -> Iterator[str]:
    for entry in record.evidence:
        if entry.same_as == slice_id and entry.slice_id != slice_id:
            other = record.slice_by_id(entry.slice_id)
            yield wording.title_with_method(other)


def unconfirmed_slices(record: RunRecord) -> tuple[RefusedSlice, ...]:
    """Return the slices that were neither confirmed nor dismissed, smallest q-value first and those without a test last."""
    dismissed = record.dismissed()
    others = [
        entry
        for entry in record.evidence
        if entry.verdict is not Verdict.CONFIRMED and entry.slice_id not in dismissed
    ]
    ordered = sorted(
        others,
        key=lambda entry: (
            entry.verdict is not Verdict.NOT_CONFIRMED,
            entry.q_value,
            entry.p_value,
            entry.slice_id,
        ),
    )
    known = record.slices_by_id()
    return tuple(
        RefusedSlice(
            slice_=known[entry.slice_id],
            verdict=wording.VERDICT_WORDS[entry.verdict]
            + ("" if entry.same_as is None else f": {known[entry.same_as].title}"),
            evidence=entry,
        )
        for entry in ordered
    )


def n_tested(record: RunRecord) -> int:
    """Return how many tests were made: over all turns, each with its own samples."""
    if any(entry.batch for entry in record.evidence):
        # Slices that were asked about before are counted with the others of that time.
        return sum(entry.batch > 0 for entry in record.evidence)
    by_data = {entry.measured_on.digest: entry.n_tested for entry in record.evidence}
    return sum(by_data.values())


def methods_of(record: RunRecord) -> tuple[MethodRecord, ...]:
    merged: dict[str, MethodRecord] = {}
    for one in record.methods:
        before = merged.get(one.method, MethodRecord(method=one.method))
        merged[one.method] = MethodRecord(
            method=one.method,
            seconds=before.seconds + one.seconds,
            n_considered=before.n_considered + one.n_considered,
            n_found=before.n_found + one.n_found,
            n_tested=before.n_tested + one.n_tested,
            note=before.note if one.note in before.note else f"{before.note} {one.note}".strip(),
        )
    return tuple(merged.values())


def count_sentence(record: RunRecord, findings: Sequence[Finding]) -> str:
    considered = sum(one.n_considered for one in record.methods)
    looked_at = (
        f"{wording.count(considered, 'candidate')} looked at on the discovery samples, "
        if considered
        else ""
    )
    return (
        f"{looked_at}{wording.count(len(record.slices), 'slice')} found, {n_tested(record)} tested on held-out samples, "
        f"{len(findings)} confirmed."
    )
