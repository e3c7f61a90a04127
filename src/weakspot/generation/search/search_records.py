"""What a search is asked, and what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from weakspot.core.failures import FailureCriterion
from weakspot.core.record import Record
from weakspot.generation.search.caption_measurement import SequentialDesign
from weakspot.generation.search.prompts import DEFAULT_PROMPT
from weakspot.generation.search.records import CaptionTrial

ENOUGH_FAILURES = 16


@dataclass(frozen=True, kw_only=True)
class CaptionSearch:
    """Where and how to search.

    Args:
        class_name: whose failures are searched for.
        target: count only failures towards this class.
        criterion: when an answer is a failure; `parent` without a hierarchy takes the one that the brackets of the prompts tell.
        template: the baseline prompt, see `baseline_prompt`.
        parents: what classes are kinds of; WordNet says it for those that are not here.
        design: how much is generated, and what is promised.
        most_sentences: most sentences in a caption.
        most_clusters: most clusters of failures of one wrong label.
        enough_failures: failures of the baseline that are wanted before they are clustered, if `design.most_baseline` allows.
        own_captions: a person's captions, measured first.
        reword: shorter wordings of a caption, such as a language model's; None if there is nobody to ask.
    """

    class_name: str
    target: str | None = None
    criterion: FailureCriterion = field(default_factory=FailureCriterion)
    template: str = DEFAULT_PROMPT
    parents: Mapping[str, str] = field(default_factory=dict)
    design: SequentialDesign = field(default_factory=SequentialDesign)
    most_sentences: int = 4
    most_clusters: int = 4
    enough_failures: int = ENOUGH_FAILURES
    own_captions: tuple[str, ...] = ()
    reword: Callable[[str], Sequence[str]] | None = None


class ClusterRecord(Record):
    """A cluster of the baseline's failures.

    Args:
        predicted: the label that they were taken for; empty when it holds failures of any label.
        size: how many images.
        example_keys: some of them.
        caption: what sets them apart; empty if nothing does.
        note: why the caption was not tried, if it was not.
    """

    predicted: str
    size: int
    example_keys: tuple[str, ...]
    caption: str = ""
    note: str = ""


class CaptionFinding(Record):
    """A caption that is proven to make the classifier fail more often, in its shortest form.

    Args:
        trial: what was measured of it, wrong labels included.
        whole: what was measured of the caption before it was shortened; the same if it was not.
        example_keys: images of it that failed.
    """

    trial: CaptionTrial
    whole: CaptionTrial
    example_keys: tuple[str, ...] = ()

    @property
    def is_shortened(self) -> bool:
        return self.trial.prompt != self.whole.prompt


class ClassSearch(Record):
    """Everything that a search found out about one class.

    Args:
        class_name: whose failures were searched for.
        target: the class that failures must be taken for, if one was given.
        criterion: when an answer was a failure, in words.
        baseline: the prompt without a caption, wrong labels included.
        trials: every caption that was tried, in order.
        findings: the proven ones in their shortest form, highest rate first.
        clusters: the baseline's failures, largest cluster first.
        example_keys: images of the baseline that failed.
        caption_source: who captioned.
        notes: what to know of the result.
        n_images: images ordered in all.
        suspicions: captions that fail more often by as much as matters, but too few different objects could be shown to prove it.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {"n_pictures": "n_images"}

    class_name: str
    target: str | None
    criterion: str
    baseline: CaptionTrial
    trials: tuple[CaptionTrial, ...]
    findings: tuple[CaptionFinding, ...]
    clusters: tuple[ClusterRecord, ...]
    example_keys: tuple[str, ...]
    caption_source: str
    notes: tuple[str, ...]
    n_images: int
    suspicions: tuple[str, ...] = ()
