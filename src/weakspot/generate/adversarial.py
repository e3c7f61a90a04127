"""Adversarial sets: every caption is generated until enough of its images are misclassified, and those are kept.

The request, the search, the record, and the set as a folder.
"""

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import Field, JsonValue, ValidationError

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.bounds import Count, NonNegativeInt, check_bounds
from weakspot.core.errors import ConfigError, DataError, RefusedPromptError
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import FailureCriterion
from weakspot.core.generated import GenerationResult
from weakspot.core.record import Record
from weakspot.core.run import Progress, no_progress
from weakspot.core.statistics import wilson_interval
from weakspot.generate.distances import SetDistance
from weakspot.generate.sampling import GeneratedSeries
from weakspot.generate.search.sentences import sentences_of, whole_prompt
from weakspot.generate.search.series import SampledImages
from weakspot.store import atomic
from weakspot.store.array_files import folder_name
from weakspot.store.csv_tables import csv_text

LEVEL = 0.95
TOP = 3

MAX_SENTENCES = 2


class SetOnModel(Record):
    """One set of images on one classifier.

    Args:
        set_name: the set.
        model: the classifier.
        is_own: whether the set was made for this classifier, so that it fails on it by choice.
        n_images: images of the set that the classifier answered for.
        n_wrong: those whose likeliest label is wrong.
        n_wrong_of_top: those whose true label is not among the three likeliest.
        interval: of the share that is wrong.
        interval_of_top: of the share whose true label is not among the three likeliest.
    """

    set_name: str
    model: str
    is_own: bool
    n_images: int
    n_wrong: int
    n_wrong_of_top: int
    interval: Interval
    interval_of_top: Interval

    @property
    def rate(self) -> float:
        """Return the share whose likeliest label is wrong, 0 without images."""
        return self.n_wrong / self.n_images if self.n_images else 0.0

    @property
    def rate_of_top(self) -> float:
        """Return the share whose true label is not among the three likeliest, 0 without images."""
        return self.n_wrong_of_top / self.n_images if self.n_images else 0.0


class TransferMatrix(Record):
    """Every set on every classifier.

    Args:
        sets: rows.
        models: columns.
        made_for: by set, the classifier that it was made for; empty for a set that was made for none of them.
        cells: one a set and classifier, in this order.
        n_classes: how many labels there are to choose from.
    """

    sets: tuple[str, ...]
    models: tuple[str, ...]
    made_for: dict[str, str]
    cells: tuple[SetOnModel, ...]
    n_classes: int

    def cell(self, set_name: str, model: str) -> SetOnModel:
        return next(one for one in self.cells if one.set_name == set_name and one.model == model)

    def rates(self, *, of_top: bool = False) -> tuple[tuple[float, ...], ...]:
        found = [[self.cell(name, model) for model in self.models] for name in self.sets]
        return tuple(
            tuple(one.rate_of_top if of_top else one.rate for one in line) for line in found
        )

    @property
    def notes(self) -> tuple[str, ...]:
        found = [
            f"{one.set_name} was made of failures of {one.model}: its own share there is no measurement."
            for one in self.cells
            if one.is_own
        ]
        if self.n_classes <= TOP:
            found.append(
                f"There are {self.n_classes} classes, so that the true one is always among the {TOP} likeliest."
            )
        return tuple(found)


Answers = tuple[FloatArray, IntArray]
"""What one classifier says of one set [n, c], rows that are not finite where it has no answer; and the true classes [n]."""


def transfer_matrix(
    answers: Mapping[str, Mapping[str, Answers]],
    class_names: Sequence[str],
    *,
    made_for: Mapping[str, str] | None = None,
) -> TransferMatrix:
    """Put every set to every classifier.

    Args:
        answers: by set and then by classifier; every set has all classifiers.
        class_names: in the order of the probability columns.
        made_for: by set, the classifier whose failures it is made of.

    Raises:
        DataError: if there is nothing to compare, or a set lacks a classifier.
    """
    models = tuple(next(iter(answers.values()), {}))
    if not models or any(tuple(own) != models for own in answers.values()):
        raise DataError(
            "Every set must be put to the same classifiers.",
            given={name: list(own) for name, own in answers.items()},
        )
    origin = dict(made_for or {})
    cells = tuple(
        _cell(name, model, found, class_names, is_own=origin.get(name) == model)
        for name, own in answers.items()
        for model, found in own.items()
    )
    return TransferMatrix(
        sets=tuple(answers), models=models, made_for=origin, cells=cells, n_classes=len(class_names)
    )


def _cell(
    set_name: str, model: str, answers: Answers, class_names: Sequence[str], *, is_own: bool
) -> SetOnModel:
    is_known = np.isfinite(answers[0]).all(axis=1)
    probabilities, labels = answers[0][is_known], answers[1][is_known]
    n_wrong, n_wrong_of_top = (
        int(criterion.failed_predictions(probabilities, labels, class_names).sum())
        for criterion in (FailureCriterion(kind="top-1"), FailureCriterion(kind="top-k", k=TOP))
    )
    return SetOnModel(
        set_name=set_name,
        model=model,
        is_own=is_own,
        n_images=len(labels),
        n_wrong=n_wrong,
        n_wrong_of_top=n_wrong_of_top,
        interval=_interval(n_wrong, len(labels)),
        interval_of_top=_interval(n_wrong_of_top, len(labels)),
    )


def _interval(n_wrong: int, n_images: int) -> Interval:
    low, high = wilson_interval(n_wrong, n_images, level=LEVEL)
    return Interval(low=low, high=high, level=LEVEL)


@dataclass(frozen=True, kw_only=True)
class AdversarialEffort:
    """How much is generated and kept.

    Args:
        most_per_caption: most images that are ordered of one caption.
        keep: most misclassified images of one caption that are kept; once there are so many, no more are ordered.
        step: images that are ordered at a time.
    """

    most_per_caption: Count = 100
    keep: Count = 10
    step: Count = 16

    def __post_init__(self) -> None:
        check_bounds(self)


class SourceCaption(Record):
    """A caption that images are generated from.

    Args:
        class_name: what the images show.
        prompt: the baseline prompt of the class with the caption's sentences after it.
        origins: the samples or rows that it comes from.
    """

    class_name: str
    prompt: str
    origins: tuple[str, ...] = ()


class CaptionYield(Record):
    """What a caption brought.

    Args:
        caption: the caption.
        n_asked: images that were ordered.
        n_judged: those that passed the quality check, so that the classifier was asked.
        n_failed: those of them that are misclassified.
        first: misclassified among the first images, as many as are ordered of every caption; later ones are only ordered while
            few fail, so that their share would flatter captions.
        kept: the kept ones, by content hash.
        predicted: what the classifier takes each of them for.
        wrong_labels: what all misclassified ones are taken for, commonest first.
        rejected: how many images each quality check rejected.
        refusal: why the generator cannot generate it; empty if it can.
    """

    caption: SourceCaption
    n_asked: int = 0
    n_judged: int = 0
    n_failed: int = 0
    first: Share
    kept: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    rejected: dict[str, int] = Field(default_factory=dict)
    refusal: str = ""


def caption_from(
    class_name: str, baseline: str, text: str, *, origin: str, most_sentences: int = MAX_SENTENCES
) -> SourceCaption | None:
    """Return the caption of an image: the baseline prompt and the first sentences of what was said; None if nothing was.

    Args:
        class_name: what the image shows.
        baseline: the baseline prompt of the class.
        text: what a captioner, or a person, says of the image; a text that begins with the baseline prompt may repeat it.
        origin: the sample or row it is about.
        most_sentences: sentences that are taken.

    >>> caption_from("fly", "a photo of a fly.", "It is on a leaf. It is wet. It is large.", origin="row 1").prompt
    'a photo of a fly. it is on a leaf. it is wet.'
    """
    stripped = " ".join(text.split())
    known = " ".join(baseline.split()).rstrip(".")
    said = (
        stripped[len(known) :].lstrip(". ")
        if stripped.lower().startswith(known.lower())
        else stripped
    )
    sentences = sentences_of(said)[:most_sentences]
    if not sentences:
        return None
    return SourceCaption(
        class_name=class_name,
        prompt=whole_prompt(baseline, sentences),
        origins=(origin,) if origin else (),
    )


def merged(captions: Sequence[SourceCaption]) -> tuple[SourceCaption, ...]:
    """Return every different caption of a class once, with all that it comes from, in the order of first mention."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in captions:
        found.setdefault((one.class_name, one.prompt), []).extend(one.origins)
    return tuple(
        SourceCaption(class_name=class_name, prompt=prompt, origins=tuple(dict.fromkeys(origins)))
        for (class_name, prompt), origins in found.items()
    )


def collect(
    sampler: GeneratedSeries,
    captions: Sequence[SourceCaption],
    criterion: FailureCriterion,
    *,
    effort: AdversarialEffort,
    progress: Progress = no_progress,
) -> tuple[CaptionYield, ...]:
    """Generate every caption until enough images are misclassified or enough were generated, and return what each brought.

    An image that two captions give is kept once. A caption that the generator cannot generate is noted and left out.

    Args:
        sampler: generates images and asks the classifier.
        captions: different ones.
        criterion: when an image is misclassified.
        effort: how much is generated and kept.
        progress: told how many captions are done.

    Raises:
        RefusedPromptError: if the generator can generate not one caption.
    """
    yields: list[CaptionYield] = []
    taken: set[str] = set()
    progress(0, len(captions))
    for number, caption in enumerate(captions, start=1):
        brought = _gathered(sampler, caption, criterion, effort, taken)
        taken.update(brought.kept)
        yields.append(brought)
        progress(number, len(captions))
    if yields and all(brought.refusal for brought in yields):
        raise RefusedPromptError(
            "The generator can generate not one of the captions.",
            given=len(yields),
            fix=yields[0].refusal,
        )
    return tuple(yields)


def _gathered(
    sampler: GeneratedSeries,
    caption: SourceCaption,
    criterion: FailureCriterion,
    effort: AdversarialEffort,
    taken: set[str],
) -> CaptionYield:
    """Generate one caption step by step; images that are taken already are not kept again."""
    names, refusal, first = sampler.class_names, "", Share.of(0, 0)
    n_asked = n_judged = n_failed = 0
    rejected: Counter[str] = Counter()
    failed: dict[str, str] = {}
    try:
        for start in range(0, effort.most_per_caption, effort.step):
            n_images = min(effort.step, effort.most_per_caption - start)
            draws = sampler.generate(caption.prompt, caption.class_name, first=start, n=n_images)
            fails = _fails(draws, names, caption.class_name, criterion)
            first = first if start else Share.of(int(fails.sum()), len(fails))
            n_asked += draws.n_asked
            n_judged += len(fails)
            n_failed += int(fails.sum())
            rejected.update(draws.rejected)
            for place in np.flatnonzero(fails).tolist():
                label = names[int(np.argmax(draws.probabilities[place]))]
                failed.setdefault(draws.keys[place], label)
            if len(failed.keys() - taken) >= effort.keep:
                break
    except RefusedPromptError as error:
        refusal = " ".join(part for part in (error.what, error.fix) if part)
    kept = [key for key in failed if key not in taken][: effort.keep]
    return CaptionYield(
        caption=caption,
        n_asked=n_asked,
        n_judged=n_judged,
        n_failed=n_failed,
        first=first,
        kept=tuple(kept),
        predicted=tuple(failed[key] for key in kept),
        wrong_labels=dict(Counter(failed.values()).most_common()),
        rejected=dict(rejected.most_common()),
        refusal=refusal,
    )


def _fails(
    draws: SampledImages, names: Sequence[str], class_name: str, criterion: FailureCriterion
) -> BoolArray:
    if not draws.keys:
        return np.zeros(0, dtype=np.bool_)
    labels = np.full(len(draws.keys), names.index(class_name), dtype=np.int64)
    return criterion.failed_predictions(draws.probabilities, labels, names)


def pooled(shares: Sequence[Share]) -> Share:
    """Return several shares as one.

    >>> pooled([Share.of(1, 4), Share.of(3, 6)]).value
    0.4
    """
    return Share.of(sum(one.count for one in shares), sum(one.total for one in shares))


KIND = "weakspot adversarial set"


@dataclass(frozen=True, kw_only=True)
class AdversarialRequest:
    """What is asked.

    Args:
        to: folder that the set is written to.
        images: labelled images to caption: a folder with a sub-folder a class, or a table; None for the project's own failures.
        captions: table of captions with the columns label and caption, instead of a captioner.
        effort: how much is generated and kept of every caption.
        most_captions: most captions that are generated, chosen at random.
        n_baseline: images of the baseline prompt of every class, to compare with; 0 for none.
        beside: further sets of images to put beside: their distance, and if labelled what classifiers say of them.
        inception: file, folder or timm name of the Inception network for FID and KID; empty for the embedder's space alone.
    """

    to: Path
    images: Path | None = None
    captions: Path | None = None
    effort: AdversarialEffort = field(default_factory=AdversarialEffort)
    most_captions: Count = 200
    n_baseline: NonNegativeInt = 48
    beside: tuple[Path, ...] = ()
    inception: str = ""

    def __post_init__(self) -> None:
        if self.images is not None and self.captions is not None:
            raise ConfigError(
                "Captions come from images or from a table, not from both.",
                where="--images, --captions",
            )
        check_bounds(self)


class ClassYield(Record):
    """What became of one class.

    Args:
        class_name: the class.
        baseline: misclassified images of the baseline prompt.
        captions: misclassified ones among the first images of every caption, as many of each.
        n_captions: captions that were generated.
        n_kept: images in the set.
        baseline_labels: what misclassified images of the baseline are taken for.
        caption_labels: what those of captions are taken for.
        n_judged: images of captions that the classifier was asked about.
    """

    class_name: str
    baseline: Share
    captions: Share
    n_captions: int
    n_kept: int
    baseline_labels: dict[str, int] = Field(default_factory=dict)
    caption_labels: dict[str, int] = Field(default_factory=dict)
    n_judged: int = 0


class AdversarialSet(Record):
    """An adversarial set: where it comes from, what was generated, what others say of it, how far it is from real images.

    Args:
        kind: what this file is.
        is_complete: whether everything was written.
        versions: of weakspot and of libraries that numbers depend on.
        name: of its folder.
        made_for: the project whose classifier fails.
        inputs: ids of samples and models.
        criterion: what counts as misclassified, in words.
        caption_source: who captioned what.
        settings: numbers that it was made with.
        n_asked: images that were ordered, baselines included.
        n_kept: images in the set.
        rejected: how many images each quality check rejected.
        classes: by class.
        yields: by caption.
        transfer: the set and others on several classifiers; None if there was nothing to compare with.
        distances: of the set, the training images and other sets to the reference.
        reference: the images that distances are measured to, in words.
        notes: what to know.
    """

    kind: str = KIND
    is_complete: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    name: str
    made_for: str
    inputs: dict[str, str] = Field(default_factory=dict)
    criterion: str
    caption_source: str
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    n_asked: int = 0
    n_kept: int = 0
    rejected: dict[str, int] = Field(default_factory=dict)
    classes: tuple[ClassYield, ...] = ()
    yields: tuple[CaptionYield, ...] = ()
    transfer: TransferMatrix | None = None
    distances: tuple[SetDistance, ...] = ()
    reference: str = ""
    notes: tuple[str, ...] = ()


def class_yield(
    class_name: str, yields: Sequence[CaptionYield], baseline: CaptionYield | None
) -> ClassYield:
    own = [one for one in yields if one.caption.class_name == class_name]
    labels: Counter[str] = Counter()
    for one in own:
        labels.update(one.wrong_labels)
    return ClassYield(
        class_name=class_name,
        baseline=pooled([] if baseline is None else [baseline.first]),
        captions=pooled([one.first for one in own]),
        n_captions=sum(not one.refusal for one in own),
        n_kept=sum(len(one.kept) for one in own),
        baseline_labels={} if baseline is None else baseline.wrong_labels,
        caption_labels=dict(labels.most_common()),
        n_judged=sum(one.n_judged for one in own),
    )


TABLE_FILE, RECORD_FILE = "metadata.csv", "manifest.json"
COLUMNS = (
    "image",
    "label",
    "prompt",
    "generator",
    "seed",
    "predicted",
    "caption_from",
    "parents",
    "sha256",
    "synthetic",
)
BETWEEN = "; "
NAME_DIGITS = 20
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]*")


def refuse_foreign(folder: Path) -> None:
    """Refuse to write into a folder that holds anything but an adversarial set; one that is there is replaced.

    Raises:
        ConfigError: if the folder cannot be taken.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError("The set needs a folder, and this is a file.", where=str(folder))
    if any(folder.iterdir()) and read_record(folder) is None:
        raise ConfigError(
            "The folder holds something else than an adversarial set.",
            where=str(folder),
            fix="Give another folder with --to.",
        )


def read_record(folder: Path) -> AdversarialSet | None:
    path = folder / RECORD_FILE
    try:
        found = AdversarialSet.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return found if found.kind == KIND else None


def write_images(
    folder: Path,
    record: AdversarialSet,
    generated: Mapping[str, GenerationResult],
    stored_images: Path,
) -> None:
    """Write the images of a set and their table; images of an earlier set in the same folder go.

    Interrupted, it leaves a folder that says it is not complete, and that the next call finishes.

    Args:
        folder: made if need be.
        record: the set.
        generated: its images by content hash.
        stored_images: the folder that they were generated into.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_record(folder, record.model_copy(update={"is_complete": False}))
        earlier = set(_listed(folder / TABLE_FILE))
        (folder / TABLE_FILE).unlink(missing_ok=True)
        rows = [
            row
            for brought in record.yields
            for row in _save(folder, brought, generated, stored_images)
        ]
        for name in earlier - {row["image"] for row in rows}:
            (folder / name).unlink(missing_ok=True)
        lines = ([row[column] for column in COLUMNS] for row in rows)
        table = csv_text(COLUMNS, lines, is_data=True)
        atomic.write_bytes(folder / TABLE_FILE, table.encode())
    except OSError as error:
        raise ConfigError(
            f"The set cannot be written: {error.strerror}.", where=str(folder)
        ) from error


def write_record(folder: Path, record: AdversarialSet) -> Path:
    path = folder / RECORD_FILE
    atomic.write_bytes(path, (record.model_dump_json(indent=2) + "\n").encode())
    return path


def _save(
    folder: Path,
    brought: CaptionYield,
    generated: Mapping[str, GenerationResult],
    stored_images: Path,
) -> Iterator[dict[str, str]]:
    name = brought.caption.class_name
    below = name if _SAFE_NAME.fullmatch(name) else folder_name(name)
    for key, predicted in zip(brought.kept, brought.predicted, strict=True):
        one = generated[key]
        content = (stored_images / one.file).read_bytes()
        place = f"{below}/{key[:NAME_DIGITS]}{Path(one.file).suffix}"
        (folder / place).parent.mkdir(exist_ok=True)
        if not (folder / place).is_file() or (folder / place).read_bytes() != content:
            atomic.write_bytes(folder / place, content)
        yield {
            "image": place,
            "label": name,
            "prompt": one.request.prompt,
            "generator": one.generator_id,
            "seed": str(one.request.seed),
            "predicted": predicted,
            "caption_from": BETWEEN.join(brought.caption.origins),
            "parents": BETWEEN.join(one.parents),
            "sha256": hashlib.sha256(content).hexdigest(),
            "synthetic": "true",
        }


def _listed(table: Path) -> list[str]:
    """Return the images that the table of an earlier set names, as far as they are below its folder."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as stream:
        names = [row.get("image") or "" for row in csv.DictReader(stream)]
    root = table.parent.resolve()
    return [name for name in names if name and (root / name).resolve().is_relative_to(root)]
