"""Everything that is looked at, put together: before a run, after its samples are ready, and for `weakspot doctor -p`."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.roles import Classifier
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.data.prediction_columns import with_extra_classes
from weakspot.data.source import SampleSource
from weakspot.data.table_source import PredictionsSource
from weakspot.run.classification import reads_embeddings
from weakspot.run.ingestion import IngestResult, summary_of
from weakspot.run.preflight import data, source_look
from weakspot.run.preflight.classifier import (
    ACCURACY_CHECK,
    CLASS_ORDER_CHECK,
    PREPROCESSING_CHECK,
    check_classifier,
)
from weakspot.run.preflight.data import check_data, check_look, evaluated_rows, find_near_copies
from weakspot.run.preflight.source_look import SourceLook, look_at_source, refuse_without_evaluation
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings
from weakspot.store import atomic
from weakspot.store.project import DATA_FOLDER, ProjectStore

CHECK_ORDER = (
    CLASS_ORDER_CHECK,
    PREPROCESSING_CHECK,
    source_look.CHECK,
    data.LEAKS,
    data.NAMES,
    ACCURACY_CHECK,
    data.EXTRA,
    data.COUNTS,
    data.FILES,
    data.CONFLICTS,
    data.GROUPS,
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
