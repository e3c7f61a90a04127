"""What a search found, put to a second generator and to other classifiers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.failures import FailureCriterion
from weakspot.core.group_tests import paired_group_p
from weakspot.core.record import Record
from weakspot.generate.adversarial_sources import ModelUnderTest
from weakspot.generate.counterfactuals import (
    CounterfactualRequest,
    CounterfactualResult,
    CounterfactualSeries,
    sentence,
)
from weakspot.project.project import Project
from weakspot.report.repairs import p_words
from weakspot.report.wording import CERTAIN, percent
from weakspot.run.embedding import choose_embedder
from weakspot.run.models import checked_output, reads_embeddings
from weakspot.run.settings import load_settings
from weakspot.run.wiring import build_classifier

N_EACH = 60
IMAGES_A_CALL = 16
SEVERAL = 2


class FindingElsewhere(Record):
    """How often another classifier fails on the same images, with a caption and without.

    Args:
        model: whose classifier it is.
        caption: what the images show.
        without: failures on the images without the caption.
        with_it: failures on those with it.
        p_value: of a change by McNemar's exact test, images of one object as a group, times the number of such questions.
    """

    model: str
    caption: str
    without: Share
    with_it: Share
    p_value: float

    def sentence(self) -> str:
        doubt = "" if self.p_value <= CERTAIN else ", may be chance"
        return (
            f"{self.model} fails on {percent(self.with_it.value)} of {self.with_it.total} images with “{self.caption}” and on "
            f"{percent(self.without.value)} without ({p_words(self.p_value)}{doubt})."
        )


class Confirmation(Record):
    """Findings of a search on images of another generator.

    Args:
        series: the captions beside images without them, by the project's own classifier.
        elsewhere: the same images by other classifiers.
    """

    series: CounterfactualSeries
    elsewhere: tuple[FindingElsewhere, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"On images of {self.series.generator_id} ({self.series.n_each} a caption were asked for):"
        for rate in self.series.rates:
            is_sure = rate.change > 0 and rate.p_after_looks <= CERTAIN
            yield f"  {'Confirmed' if is_sure else 'Not confirmed'}. {sentence(rate)}"
        yield from (f"  {note}" for note in self.series.notes)
        if self.elsewhere:
            yield "Other classifiers on the same images:"
            yield from (f"  {one.sentence()}" for one in self.elsewhere)


def classifier_of(folder: Path) -> ModelUnderTest:
    """Return the classifier of a project, with the embedder that it reads from, if it does.

    Raises:
        ConfigError: if there is no project, or it has no classifier.
    """
    settings = load_settings(folder)
    classifier = build_classifier(settings.classifier, folder, provider=settings.engine.provider)
    if classifier is None:
        raise ConfigError(
            "This project has no classifier that could be asked.",
            where=str(folder),
            fix="Configure one.",
        )
    embedder = None
    if reads_embeddings(classifier):
        embedder, _ = choose_embedder(
            settings.embedder, folder=folder, provider=settings.engine.provider
        )
    return ModelUnderTest(name=folder.resolve().name, classifier=classifier, embedder=embedder)


def fails(
    model: ModelUnderTest,
    images: Sequence[Image.Image],
    class_name: str,
    criterion: FailureCriterion,
) -> BoolArray:
    """Return which images of a class a classifier fails on [n].

    Raises:
        ConfigError: if it does not know the class.
    """
    names = tuple(model.classifier.class_names or ())
    if class_name not in names:
        raise ConfigError(
            f"The classifier of {model.name} does not know the class {class_name!r}.",
            given=list(names)[:10],
        )
    parts = [
        _probabilities(model, images[start : start + IMAGES_A_CALL])
        for start in range(0, len(images), IMAGES_A_CALL)
    ]
    labels = np.full(len(images), names.index(class_name))
    return np.asarray(criterion.failed_predictions(np.concatenate(parts), labels, names))


def _probabilities(model: ModelUnderTest, images: Sequence[Image.Image]) -> FloatArray:
    reader = model.embedder or model.classifier
    prepared = [reader.prepare(image) for image in images]
    if model.embedder is not None:
        prepared = list(model.embedder.embed_prepared(prepared))
    return checked_output(model.classifier, prepared).probabilities


def confirm_findings(
    project: Project,
    class_name: str,
    captions: Sequence[str],
    *,
    others: Sequence[ModelUnderTest] = (),
    n_each: int = N_EACH,
) -> Confirmation:
    """Put captions to the generator that a project is opened with, and the images to other classifiers too.

    Args:
        project: with another generator than the one that the captions were found with.
        class_name: the class of the captions.
        captions: what was found.
        others: further classifiers.
        n_each: images of every caption, and as many without.

    Raises:
        ConfigError: if another classifier does not know the class.
        RefusedPromptError: if the generator can draw none of the captions.
    """
    request = CounterfactualRequest(class_name=class_name, captions=tuple(captions), n_each=n_each)
    found = project.counterfactual(request)
    n_questions = max(1, len(others) * len(captions))
    elsewhere = [
        one
        for other in others
        for one in _elsewhere(other, found, class_name, project.criterion, n_questions)
    ]
    return Confirmation(series=found.series, elsewhere=tuple(elsewhere))


def _elsewhere(
    other: ModelUnderTest,
    found: CounterfactualResult,
    class_name: str,
    criterion: FailureCriterion,
    n_questions: int,
) -> Iterator[FindingElsewhere]:
    for rate, row in zip(found.series.rates, found.rows[1:], strict=True):
        pairs = [
            (before.image, after.image, before.parent or f"place {place}")
            for place, (before, after) in enumerate(zip(found.rows[0], row, strict=True))
            if before.image is not None and after.image is not None
        ]
        if len(pairs) < SEVERAL:
            continue
        without = fails(other, [before for before, _, _ in pairs], class_name, criterion)
        with_it = fails(other, [after for _, after, _ in pairs], class_name, criterion)
        groups = np.unique([parent for _, _, parent in pairs], return_inverse=True)[1]
        p_value = paired_group_p(~with_it & without, with_it & ~without, groups)
        yield FindingElsewhere(
            model=other.name,
            caption=rate.caption,
            without=Share.of(int(without.sum()), len(pairs)),
            with_it=Share.of(int(with_it.sum()), len(pairs)),
            p_value=min(1.0, p_value * n_questions),
        )
