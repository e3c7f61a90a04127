"""Sets of failures at scale: every caption is generated until enough of its images are misclassified, and those are kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray
from weakspot.core.bounds import Count, check_bounds
from weakspot.core.errors import RefusedPromptError
from weakspot.core.evidence import Share
from weakspot.core.failures import FailureCriterion
from weakspot.core.record import Record
from weakspot.core.run import Progress, no_progress
from weakspot.generation.search.prompts import sentences_of, whole_prompt
from weakspot.generation.search.sampling import SampledImages

MOST_SENTENCES = 2


class GeneratesImages(Protocol):
    """As much of a sampler as is needed here."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probability columns."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Return places `first` to `first + n` of the series of a prompt."""


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
    class_name: str, baseline: str, text: str, *, origin: str, most_sentences: int = MOST_SENTENCES
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
    sampler: GeneratesImages,
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
    found: list[CaptionYield] = []
    taken: set[str] = set()
    progress(0, len(captions))
    for number, caption in enumerate(captions, start=1):
        gathered = _Gathered(caption=caption, sampler=sampler, criterion=criterion, effort=effort)
        brought = gathered.run(taken)
        taken.update(brought.kept)
        found.append(brought)
        progress(number, len(captions))
    if found and all(one.refusal for one in found):
        raise RefusedPromptError(
            "The generator can generate not one of the captions.",
            given=len(found),
            fix=found[0].refusal,
        )
    return tuple(found)


@dataclass(kw_only=True, eq=False)
class _Gathered:
    """One caption, while it is generated."""

    caption: SourceCaption
    sampler: GeneratesImages
    criterion: FailureCriterion
    effort: AdversarialEffort
    n_asked: int = 0
    n_judged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    n_failed: int = 0
    first: Share | None = None
    rejected: Counter[str] = field(default_factory=Counter)

    def run(self, taken: set[str]) -> CaptionYield:
        refusal = ""
        try:
            for first, n_images in self._steps():
                self._take(
                    self.sampler.generate(
                        self.caption.prompt, self.caption.class_name, first=first, n=n_images
                    )
                )
                if len(self.failed.keys() - taken) >= self.effort.keep:
                    break
        except RefusedPromptError as error:
            refusal = " ".join(part for part in (error.what, error.fix) if part)
        kept = [key for key in self.failed if key not in taken][: self.effort.keep]
        return CaptionYield(
            caption=self.caption,
            n_asked=self.n_asked,
            n_judged=self.n_judged,
            n_failed=self.n_failed,
            first=self.first or Share.of(0, 0),
            kept=tuple(kept),
            predicted=tuple(self.failed[key] for key in kept),
            wrong_labels=dict(Counter(self.failed.values()).most_common()),
            rejected=dict(self.rejected.most_common()),
            refusal=refusal,
        )

    def _steps(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self.effort.most_per_caption, self.effort.step):
            yield first, min(self.effort.step, self.effort.most_per_caption - first)

    def _take(self, draws: SampledImages) -> None:
        self.n_asked += draws.n_asked
        self.rejected.update(draws.rejected)
        fails = self._fails(draws)
        self.n_judged += len(fails)
        self.n_failed += int(fails.sum())
        self.first = self.first or Share.of(int(fails.sum()), len(fails))
        said = np.argmax(draws.probabilities, axis=1) if len(fails) else []
        for key, has_failed, code in zip(draws.keys, fails.tolist(), said, strict=True):
            if has_failed:
                self.failed.setdefault(key, self.sampler.class_names[int(code)])

    def _fails(self, draws: SampledImages) -> BoolArray:
        names = self.sampler.class_names
        labels = np.full(len(draws.keys), names.index(self.caption.class_name), dtype=np.int64)
        return (
            self.criterion.failed_predictions(draws.probabilities, labels, names)
            if len(labels)
            else labels.astype(np.bool_)
        )


def pooled(shares: Sequence[Share]) -> Share:
    """Return several shares as one.

    >>> pooled([Share.of(1, 4), Share.of(3, 6)]).value
    0.4
    """
    return Share.of(sum(one.count for one in shares), sum(one.total for one in shares))
