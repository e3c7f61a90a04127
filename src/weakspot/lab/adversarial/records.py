"""What an adversarial set is asked to be, and the record of what it became."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, JsonValue

from weakspot.compare.distances import SetDistance
from weakspot.compare.transfer import TransferMatrix
from weakspot.core.bounds import Count, NonNegativeInt, check_bounds
from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.generation.search.adversarial import AdversarialEffort, CaptionYield, pooled

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
