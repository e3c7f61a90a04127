"""Everything that is looked at, put together: before a run, after its samples are ready, and for `weakspot doctor -p`."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weakspot.core.errors import StoreError
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.core.roles import Classifier
from weakspot.ingest.prediction_columns import with_extra_classes
from weakspot.ingest.source import ExaminedSource, SampleSource
from weakspot.pipeline.ingestion import IngestResult, summary_of
from weakspot.pipeline.models.embedding_classifiers import reads_embeddings
from weakspot.pipeline.preflight import (
    accuracy,
    class_order,
    files,
    labels,
    preprocessing,
    splits,
)
from weakspot.pipeline.preflight.classifier_checks import check_classifier
from weakspot.pipeline.preflight.data_checks import check_data, check_look, evaluated_rows
from weakspot.pipeline.preflight.near_copies import find_near_copies
from weakspot.pipeline.preflight.source_look import SourceLook, look_at_source
from weakspot.pipeline.preflight.splits import refuse_without_evaluation
from weakspot.pipeline.preparation import CLIP, Prepared
from weakspot.pipeline.settings import Settings
from weakspot.store import atomic
from weakspot.store.project import DATA_FOLDER, ProjectStore

CHECK_ORDER = (
    class_order.CHECK,
    preprocessing.CHECK,
    splits.CHECK,
    files.LEAKS,
    labels.NAMES,
    accuracy.CHECK,
    labels.EXTRA,
    labels.COUNTS,
    files.FILES,
    files.CONFLICTS,
    files.GROUPS,
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
    if isinstance(source, ExaminedSource) and classifier is None:
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
        check.check == preprocessing.CHECK and check.state is CheckState.PROBLEM for check in early
    )
    return tuple(check for check in late if not is_wrong or check.check != class_order.CHECK)


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
    data = settings.data.model_dump_json()
    told = [
        _VERSION,
        source.fingerprint(),
        source.location,
        model,
        data,
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
