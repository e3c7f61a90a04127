"""All checks before a run, after its samples are ready, and for `weakspot doctor -p`.

The ingested samples are asked about labels, files and near copies in training and evaluation.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from weakspot.core.arrays import AnyArray, BoolArray, IntArray, generator, unit_rows
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import StoreError
from weakspot.core.roles import Classifier
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.core.samples import SampleSet
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.data.locations import UnreadableLocationError, is_local, read_location
from weakspot.data.prediction_columns import with_extra_classes
from weakspot.data.source import SampleSource
from weakspot.data.table_source import PredictionsSource
from weakspot.run.halves import evaluated_splits
from weakspot.run.ingestion import IngestResult, summary_of
from weakspot.run.models import reads_embeddings
from weakspot.run.preflight import source_look
from weakspot.run.preflight.classifier import (
    ACCURACY_CHECK,
    CLASS_ORDER_CHECK,
    PREPROCESSING_CHECK,
    answers_of,
    check_accuracy,
    check_class_order,
    check_classifier,
    with_right_names,
)
from weakspot.run.preflight.source_look import (
    SourceLook,
    check_splits,
    fine,
    look_at_source,
    refuse_without_evaluation,
)
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings
from weakspot.store import atomic
from weakspot.store.project import DATA_FOLDER, ProjectStore

NAMES, COUNTS, EXTRA = "class names", "class counts", "extra classes"
FEW = 10
_MAX_LISTED = 5
_BETWEEN = re.compile(r"[\s_\-]+")


def check_label_names(counts: Mapping[str, int], known: Collection[str] = ()) -> PreflightCheck:
    """Say which labels are the same but for capitals, spaces, hyphens and underscores.

    Args:
        counts: samples by label.
        known: the classifier's own classes; names that it tells apart are meant.
    """
    alike: dict[str, list[str]] = {}
    for name in counts:
        alike.setdefault(_BETWEEN.sub(" ", name).strip().casefold(), []).append(name)
    # Single letters may well differ by their size, as in hand-written characters.
    doubled = [
        sorted(names)
        for plain, names in alike.items()
        if len(names) > 1 and len(plain) > 1 and not set(names) <= set(known)
    ]
    if not doubled:
        return fine(NAMES, f"No two of {len(counts)} class names differ only in spelling.")
    listed = "; ".join(
        " and ".join(f"{name!r} ({counts[name]:,})" for name in names)
        for names in doubled[:_MAX_LISTED]
    )
    return PreflightCheck(
        check=NAMES,
        state=CheckState.PROBLEM,
        sentence=f"Labels that are hardly two classes, with their samples: {listed}.",
        fix="Write the labels of one class in one way.",
        short=f"{len(doubled)} classes are spelt in two ways",
    )


def check_class_counts(evaluated: Mapping[str, int]) -> PreflightCheck:
    """Say which classes have too few samples where failures are looked for.

    Args:
        evaluated: evaluation samples by class.
    """
    few = {name: number for name, number in evaluated.items() if number < FEW}
    if not few:
        least = min(evaluated.values(), default=0)
        return fine(COUNTS, f"Every class has at least {least:,} evaluation samples.")
    ordered = sorted(few.items(), key=lambda item: (item[1], item[0]))
    listed = ", ".join(f"{name} {number}" for name, number in ordered[:_MAX_LISTED])
    more = f" and {len(few) - _MAX_LISTED} more" if len(few) > _MAX_LISTED else ""
    return PreflightCheck(
        check=COUNTS,
        state=CheckState.NOTICE,
        sentence=f"{len(few)} of {len(evaluated)} classes have fewer than {FEW} evaluation samples ({listed}{more}): "
        "little can be proven of them.",
        fix="Label more evaluation samples of these classes.",
        short=f"{len(few)} classes with fewer than {FEW} samples",
    )


def check_extra_classes(
    labelled: Sequence[str], class_names: Sequence[str]
) -> PreflightCheck | None:
    """Say which classes have no sample at all; None if every class has some."""
    has_label = set(labelled)
    extra = [name for name in class_names if name not in has_label]
    if not extra:
        return None
    listed = ", ".join(extra[:_MAX_LISTED])
    more = f" and {len(extra) - _MAX_LISTED} more" if len(extra) > _MAX_LISTED else ""
    return PreflightCheck(
        check=EXTRA,
        state=CheckState.NOTICE,
        sentence=f"The classifier knows {len(extra)} classes that no sample has ({listed}{more}); predicting one of them is wrong.",
        short=f"{len(extra)} classes of the classifier without samples",
    )


ALIKE = 0.98
"""Correlation of two thumbnails from which on they show the same photograph."""
ABOUT_ALIKE = 0.92
STANDS_OUT = 3.0
"""At most so many times the images may be about alike: where thumbnails resemble each other anyway, nothing can be told."""
SIDE = 16
MIN_CONTRAST = 4.0
MAX_EVALUATION, MAX_TRAINING = 150, 40_000
N_NEIGHBOURS = 5
MIN_IMAGES = 20


NearCopies = tuple[BoolArray, int]
"""Which evaluation rows are nearly the same as a training image [n], and how many of them were looked at, at random."""


def find_near_copies(samples: SampleSet, space: str, evaluated: IntArray) -> NearCopies | None:
    """Look for near copies of some evaluation rows in training; None where nothing tells.

    Args:
        samples: all samples.
        space: whose embeddings tell which training images are compared.
        evaluated: the rows [n].
    """
    if space not in samples.spaces or not samples.dataset.has_images:
        return None
    random = generator(0, "preflight", "near copies")
    training = _usable(samples, space, samples.dataset.rows_of(Split.TRAIN))
    places = np.flatnonzero(np.isin(evaluated, _usable(samples, space, evaluated)))
    if min(len(training), len(places)) < MIN_IMAGES:
        return None
    training = random.permutation(training)[:MAX_TRAINING]
    places = random.permutation(places)[:MAX_EVALUATION]
    neighbours = _neighbours(samples, space, evaluated[places], training)
    closest = _closest(samples.dataset, evaluated[places], neighbours)
    is_copy = np.zeros(len(evaluated), dtype=np.bool_)
    if int((closest >= ABOUT_ALIKE).sum()) <= STANDS_OUT * int((closest >= ALIKE).sum()):
        is_copy[places[closest >= ALIKE]] = True
    return is_copy, len(places)


def _usable(samples: SampleSet, space: str, rows: IntArray) -> IntArray:
    """Return the rows that have an embedding and an image on this machine."""
    if not len(rows):
        return rows
    rows = rows[samples.has_embeddings(space, rows)]
    places = samples.dataset.locations(rows)
    return rows[[place is not None and is_local(place) for place in places]]


def _neighbours(
    samples: SampleSet, space: str, evaluated: IntArray, training: IntArray
) -> IntArray:
    """Return the training rows whose embeddings are nearest to those of each evaluation row [n, k]."""
    own, others = (unit_rows(samples.embeddings(space, rows)) for rows in (evaluated, training))
    order = np.argpartition(-(own @ others.T), N_NEIGHBOURS - 1, axis=1)[:, :N_NEIGHBOURS]
    return training[order]


def _closest(dataset: Dataset, rows: IntArray, others: IntArray) -> AnyArray:
    """Return the highest correlation of each row with one of its others [n], -1 where nothing can be told."""
    wanted = np.unique(np.concatenate([rows, others.ravel()]))
    places = zip(wanted.tolist(), dataset.locations(wanted), strict=True)
    thumbnails = {row: _thumbnail(location or "") for row, location in places}

    def correlation(row: int, other: int) -> float:
        first, second = thumbnails[row], thumbnails[other]
        return -1.0 if first is None or second is None else float(first @ second)

    pairs = zip(rows.tolist(), others.tolist(), strict=True)
    return np.array([max(correlation(row, one) for one in own) for row, own in pairs])


def _thumbnail(location: str) -> AnyArray | None:
    """Return what an image shows beside its mean colour, as a unit vector; None for one colour and what cannot be read."""
    try:
        image = decode_image(read_location(location), image_side=4 * SIDE).image
    except (UnreadableImageError, UnreadableLocationError, MemoryError):
        return None
    tiny = image.resize((SIDE, SIDE), Image.Resampling.BOX)
    shown = np.asarray(tiny, dtype=np.float64)
    shown = (shown - shown.mean(axis=(0, 1))).ravel()
    return shown / np.linalg.norm(shown) if shown.std() >= MIN_CONTRAST else None


FILES, LEAKS, CONFLICTS, GROUPS = "files", "leaks", "conflicting labels", "groups across splits"
LEAKED_SHARE = 0.05
"""From this share on, evaluation samples that are also in training make figures wrong; fewer are only worth knowing."""
MIN_LEAKED = 3


def check_files(quarantined: Mapping[str, int], n_samples: int) -> PreflightCheck:
    n_aside = sum(quarantined.values())
    if not n_aside:
        return fine(FILES, f"All {n_samples:,} samples could be read.")
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in quarantined.items())
    return PreflightCheck(
        check=FILES,
        state=CheckState.NOTICE,
        sentence=f"{n_aside:,} of {n_samples + n_aside:,} samples were set aside: {reasons}.",
        fix="`weakspot ingest` says the same; the names are in the quarantine table of the project.",
        short=f"{n_aside:,} {'file' if n_aside == 1 else 'files'} set aside",
    )


def check_leaks(
    dataset: Dataset, evaluated: IntArray, near: NearCopies | None = None
) -> PreflightCheck | None:
    """Say how many evaluation images are in training, too; None without images or without training.

    Args:
        dataset: all samples.
        evaluated: rows that are evaluated [n].
        near: which of them are nearly the same as a training image; None if that was not looked at.
    """
    training = dataset.rows_of(Split.TRAIN)
    if not len(training) or not len(evaluated) or not dataset.has_images:
        return None
    codes = np.asarray(
        dataset.table.column("content_hash").combine_chunks().dictionary_encode().indices
    )
    is_copy = np.isin(codes[evaluated], codes[training])
    counts = [(int(is_copy.sum()), len(evaluated), "exactly")]
    if near is not None:
        counts.append((int((near[0] & ~is_copy).sum()), near[1], "nearly"))
    told = [
        f"{number:,} of {total:,} evaluation images {how}"
        for number, total, how in counts
        if number
    ]
    if not told:
        looked = "" if near is None else f", and none of {near[1]:,} nearly the same"
        return fine(
            LEAKS, f"None of {len(evaluated):,} evaluation images has a copy in training{looked}."
        )
    is_bad = any(number >= max(MIN_LEAKED, LEAKED_SHARE * total) for number, total, _ in counts)
    return PreflightCheck(
        check=LEAKS,
        state=CheckState.PROBLEM if is_bad else CheckState.NOTICE,
        sentence=f"Training holds {', and '.join(told)}: figures look better than they are.",
        fix="Take these images out of one of the splits.",
        short=f"{sum(number for number, _, _ in counts):,} evaluation images are also in training",
    )


def check_conflicts(dataset: Dataset, rows: IntArray) -> PreflightCheck | None:
    """Say how many images have several labels; None where that cannot be told."""
    if not dataset.has_images or "label" not in dataset.table.column_names:
        return None
    table = dataset.table.select(["content_hash", "label"]).take(pa.array(rows))
    pairs = table.group_by(["content_hash", "label"]).aggregate([]).column("content_hash")
    n_labels = np.asarray(pairs.value_counts().field("counts")) if len(pairs) else np.zeros(0)
    n_conflicts = int((n_labels > 1).sum())
    if not n_conflicts:
        return fine(CONFLICTS, "No image occurs with two different labels.")
    return PreflightCheck(
        check=CONFLICTS,
        state=CheckState.NOTICE,
        sentence=f"{n_conflicts:,} images occur with different labels: one of them is wrong whatever is predicted.",
        fix="Correct the labels; the images are in the duplicates table of the project.",
        short=f"{n_conflicts:,} images with two labels",
    )


def check_groups(n_groups: int, n_across: int) -> PreflightCheck | None:
    """Say how many groups, as the data name them, are in several splits; None without groups."""
    if not n_groups:
        return None
    if not n_across:
        return fine(GROUPS, f"None of {n_groups:,} groups is in several splits.")
    return PreflightCheck(
        check=GROUPS,
        state=CheckState.NOTICE,
        sentence=f"{n_across:,} of {n_groups:,} groups are in several splits: evaluation knows them from training.",
        fix="Keep every group in one split.",
        short=f"{n_across:,} groups in several splits",
    )


def check_data(
    dataset: Dataset,
    summary: IngestResult,
    settings: Settings,
    *,
    outputs: Sequence[str] | None = None,
    near: NearCopies | None = None,
) -> tuple[PreflightCheck, ...]:
    """Return every check that needs no image.

    Args:
        dataset: the samples, with predictions as far as they are known.
        summary: what came out of the ingest.
        settings: the project's settings.
        outputs: the classifier's classes in the order of its outputs; None if nobody says them.
        near: which evaluated samples are nearly the same as a training image; None if that was not looked at.
    """
    splits = tuple(split.value for split in evaluated_splits(settings, dataset))
    evaluated = evaluated_rows(dataset, settings)
    counts = _class_counts(dataset, np.flatnonzero(dataset.is_labelled))
    labelled = [name for name, number in counts.items() if number]
    n_evaluated = _class_counts(dataset, evaluated)
    checks = [
        check_splits(
            summary.per_split,
            n_dealt=summary.n_dealt,
            configured=settings.verify.splits,
            used=splits,
        ),
        check_label_names({name: counts[name] for name in labelled}, outputs or ()),
        check_class_counts({name: n_evaluated[name] for name in labelled}),
        check_extra_classes(labelled, dataset.class_names),
        check_files(summary.quarantined, summary.n_samples),
        check_leaks(dataset, evaluated, near),
        check_conflicts(dataset, np.flatnonzero(dataset.is_labelled)),
        check_groups(summary.n_groups, summary.n_groups_across_splits),
        *_of_predictions(dataset, summary, settings, splits, outputs),
    ]
    return tuple(check for check in checks if check is not None)


def check_look(look: SourceLook, settings: Settings) -> tuple[PreflightCheck, ...]:
    """Return what can be said of labels and splits before anything was ingested."""
    total: Counter[str] = Counter()
    for counted in look.counts.values():
        total.update(counted)
    if not total:
        return ()
    per_split = {split.value: look.n_of(split) for split in Split}
    configured = settings.verify.splits
    is_there = any(per_split[name] for name in configured) or look.n_of(None)
    used = configured if is_there else (Split.TEST.value,)
    if look.n_of(None):
        per_split["without a split"] = look.n_of(None)
    return (
        check_splits(per_split, n_dealt=look.n_of(None), configured=configured, used=used),
        check_label_names(total, settings.data.class_names),
    )


def evaluated_rows(dataset: Dataset, settings: Settings) -> IntArray:
    """Return the labelled rows that failures are looked for in."""
    rows = dataset.rows_of(*evaluated_splits(settings, dataset))
    return rows[dataset.is_labelled[rows]]


def _of_predictions(
    dataset: Dataset,
    summary: IngestResult,
    settings: Settings,
    splits: tuple[str, ...],
    outputs: Sequence[str] | None,
) -> tuple[PreflightCheck | None, ...]:
    answers = answers_of(dataset, splits)
    if answers is None:
        return ()
    named = tuple(outputs or dataset.class_names)
    check, order = check_class_order(answers, named)
    if check is not None and order is not None:
        check = with_right_names(check, order, named, answers.class_names, settings)
    return check, check_accuracy(answers, is_dealt=summary.n_dealt > 0)


def _class_counts(dataset: Dataset, rows: IntArray) -> dict[str, int]:
    numbers = (
        np.bincount(dataset.labels[rows], minlength=dataset.n_classes)
        if dataset.task is Task.SINGLE_LABEL
        else dataset.label_matrix[rows].sum(axis=0)
    )
    return {name: int(number) for name, number in zip(dataset.class_names, numbers, strict=True)}


CHECK_ORDER = (
    CLASS_ORDER_CHECK,
    PREPROCESSING_CHECK,
    source_look.CHECK,
    LEAKS,
    NAMES,
    ACCURACY_CHECK,
    EXTRA,
    COUNTS,
    FILES,
    CONFLICTS,
    GROUPS,
)
CACHE_FILE = "preflight.json"
_VERSION = 1
_CHECKS = TypeAdapter(tuple[PreflightCheck, ...])


def check_before(
    source: SampleSource, classifier: Classifier | None, settings: Settings, store: ProjectStore
) -> tuple[PreflightCheck, ...]:
    """Look at labels, splits and a few images before anything long begins; what was looked at before is taken.

    Raises:
        NotEnoughDataError: if no sample could be evaluated.
    """
    if isinstance(source, PredictionsSource) and classifier is None:
        # A table without images is read in less time than a look at it would take.
        return ()
    key = _key(source, classifier, settings)
    known = _load(store, key)
    if known is not None:
        return known
    look = _look(source, settings)
    found = _of_classifier(look, classifier, settings)
    with store.writing():
        content = {"key": key, "checks": _CHECKS.dump_python(found, mode="json")}
        atomic.write_json(store.data / CACHE_FILE, content)
    return found


def check_after(
    early: Sequence[PreflightCheck], prepared: Prepared, summary: IngestResult, settings: Settings
) -> tuple[PreflightCheck, ...]:
    """Return all checks once predictions and embeddings are known; what was said of a few samples is said of all."""
    samples = prepared.samples
    near = find_near_copies(samples, CLIP, evaluated_rows(samples.dataset, settings))
    outputs = None if prepared.classifier is None else prepared.classifier.class_names
    late = check_data(samples.dataset, summary, settings, outputs=outputs, near=near)
    return merge_checks(early, without_second_guess(early, late))


def without_second_guess(
    early: Sequence[PreflightCheck], late: Sequence[PreflightCheck]
) -> tuple[PreflightCheck, ...]:
    """Return later checks without the class order if images are prepared wrongly: it was looked at together with that."""
    is_wrong = any(
        check.check == PREPROCESSING_CHECK and check.state is CheckState.PROBLEM for check in early
    )
    return tuple(check for check in late if not is_wrong or check.check != CLASS_ORDER_CHECK)


def check_now(
    source: SampleSource, classifier: Classifier | None, settings: Settings
) -> tuple[PreflightCheck, ...]:
    """Return what can be said of a source in seconds, without a project."""
    look = _look(source, settings)
    return merge_checks(check_look(look, settings), _of_classifier(look, classifier, settings))


def check_ingested(
    folder: Path, classifier: Classifier | None, settings: Settings
) -> tuple[PreflightCheck, ...]:
    """Return what the samples say that a project holds; nothing before the first ingest."""
    if not (folder / DATA_FOLDER).is_dir():
        return ()
    store = ProjectStore.open(folder)
    tables = store.current_tables()
    if tables is None:
        return ()
    names = None if classifier is None else classifier.class_names
    dataset = with_extra_classes(store.dataset(), names)
    return check_data(dataset, summary_of(tables), settings, outputs=names)


def merge_checks(*parts: Iterable[PreflightCheck]) -> tuple[PreflightCheck, ...]:
    """Return checks in their usual order; of one that was made several times, the last."""
    by_name = {check.check: check for part in parts for check in part}
    return tuple(by_name[name] for name in CHECK_ORDER if name in by_name)


def _look(source: SampleSource, settings: Settings) -> SourceLook:
    look = look_at_source(source, settings.data.default_split)
    refuse_without_evaluation(look, configured=settings.verify.splits, where=source.location)
    return look


def _of_classifier(
    look: SourceLook, classifier: Classifier | None, settings: Settings
) -> tuple[PreflightCheck, ...]:
    if classifier is None or reads_embeddings(classifier):
        return ()
    return check_classifier(look, classifier, settings)


def _key(source: SampleSource, classifier: Classifier | None, settings: Settings) -> str:
    model = None if classifier is None else (classifier.classifier_id, classifier.class_names)
    told = [
        _VERSION,
        source.fingerprint(),
        source.location,
        model,
        settings.data.model_dump_json(),
        settings.classifier.options,
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _load(store: ProjectStore, key: str) -> tuple[PreflightCheck, ...] | None:
    path = store.data / CACHE_FILE
    if not path.exists():
        return None
    try:
        content = atomic.read_json(path)
        return _CHECKS.validate_python(content["checks"]) if content["key"] == key else None
    except (StoreError, ValidationError, KeyError):
        return None
