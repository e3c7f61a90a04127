"""The classifier on a few labelled images, before anything long begins."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.preflight import CheckState, PreflightCheck
from weakspot.core.roles import Classifier
from weakspot.pipeline.preflight.accuracy import check_accuracy
from weakspot.pipeline.preflight.answers import LabelledAnswers
from weakspot.pipeline.preflight.class_order import ClassOrder, check_class_order, named_outputs
from weakspot.pipeline.preflight.preprocessing import BATCH, check_preprocessing
from weakspot.pipeline.preflight.source_look import (
    LabelledImages,
    SourceLook,
    read_labelled_images,
)
from weakspot.pipeline.settings import PartSettings, Settings
from weakspot.pipeline.settings_text import toml_value

AS_GOOD = 0.05
_NUMBER = re.compile(r"-?\d+")


def check_classifier(
    look: SourceLook, classifier: Classifier, settings: Settings
) -> tuple[PreflightCheck, ...]:
    """Return what a few labelled images say of class names, preprocessing and accuracy; nothing where they can say nothing."""
    if classifier.task is not Task.SINGLE_LABEL or not look.samples:
        return ()
    drawn = read_labelled_images(
        look, default_split=settings.data.default_split, image_side=classifier.image_side
    )
    answers, outputs = _answers(drawn, classifier, settings)
    if answers is None:
        return ()
    order_check, order = check_class_order(answers, outputs)
    code = {name: number for number, name in enumerate(answers.class_names)}
    codes = np.array([code[name] for name in outputs])
    prepared_check, way = check_preprocessing(
        classifier, drawn.images, answers.labels, codes, answers.predictions
    )
    if order is not None and way is not None and way.accuracy > order.accuracy - AS_GOOD:
        # Wrongly prepared images can be taken for one another class by class; what explains more is said.
        order_check = order = None
    elif order is not None:
        prepared_check, way = check_preprocessing(
            classifier,
            drawn.images,
            answers.labels,
            order.meant[codes],
            order.meant[answers.predictions],
        )
    if order_check is not None and order is not None:
        order_check = with_right_names(order_check, order, outputs, answers.class_names, settings)
    if prepared_check is not None and way is not None:
        prepared_check = _with_line(prepared_check, options_line(settings.classifier, way.options))
    found = (order_check, prepared_check, check_accuracy(answers))
    return tuple(check for check in found if check is not None)


def with_right_names(
    check: PreflightCheck,
    order: ClassOrder,
    outputs: Sequence[str],
    class_names: Sequence[str],
    settings: Settings,
) -> PreflightCheck:
    """Return a check of the class order with the remedy: the right names of the outputs."""
    if check.state is not CheckState.PROBLEM:
        return check
    if not settings.classifier.name:
        fix = "Name the predictions anew, or hand the classifier over with its class_names in the order of its outputs."
        return check.model_copy(update={"fix": fix})
    names = list(named_outputs(order, outputs, class_names))
    return _with_line(check, options_line(settings.classifier, {"class_names": names}))


def options_line(part: PartSettings, changes: dict[str, Any]) -> str:
    """Return the options of a part with some of them changed, as they stand in weakspot.toml; empty if it is not configured."""
    return f"options = {toml_value({**part.options, **changes})}" if part.name else ""


def _with_line(check: PreflightCheck, line: str) -> PreflightCheck:
    fix = (
        f"{check.fix.rstrip('.')}: under [classifier] in weakspot.toml write" if line else check.fix
    )
    return check.model_copy(update={"fix": fix, "settings_line": line})


def _answers(
    drawn: LabelledImages, classifier: Classifier, settings: Settings
) -> tuple[LabelledAnswers | None, tuple[str, ...]]:
    """Return what the classifier says, and the names of its outputs; None if names and outputs do not fit together."""
    labelled = settings.data.class_names or _in_order(set(drawn.labels))
    outputs = classifier.class_names or labelled
    if not drawn.images or not set(drawn.labels) <= set(outputs):
        return None, outputs
    predicted = _predicted_outputs(classifier, drawn)
    if predicted is None or predicted.shape[1] != len(outputs) or len(set(outputs)) < len(outputs):
        return None, outputs
    names = (*(name for name in labelled if name in outputs), *_others(outputs, labelled))
    code = {name: number for number, name in enumerate(names)}
    return LabelledAnswers(
        class_names=names,
        labels=np.array([code[label] for label in drawn.labels]),
        predictions=np.array([code[name] for name in outputs])[np.argmax(predicted, axis=1)],
        is_training=np.array(drawn.is_training, dtype=np.bool_),
    ), outputs


def _others(outputs: Sequence[str], labelled: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in outputs if name not in set(labelled))


def _in_order(labels: set[str]) -> tuple[str, ...]:
    """Return labels as an ingest orders them: numbers by their value."""
    if all(_NUMBER.fullmatch(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))


def _predicted_outputs(classifier: Classifier, drawn: LabelledImages) -> IntArray | None:
    found = []
    for start in range(0, len(drawn.images), BATCH):
        prepared = [classifier.prepare(image) for image in drawn.images[start : start + BATCH]]
        found.append(np.asarray(classifier.classify(prepared).probabilities))
    return np.concatenate(found) if found else None
