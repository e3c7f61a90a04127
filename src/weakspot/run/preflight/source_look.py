"""A look at a source before it is read: its labels, its splits and who decided them, and a few labelled images of every class."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import generator
from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.data.locations import UnreadableLocationError, read_location
from weakspot.data.source import SampleSource, parse_split
from weakspot.models.preprocessing import resize_shorter_side

MAX_LISTED = 50_000
MAX_HELD = 400
"""So many samples whose images the source holds itself: these are in memory."""
MAX_TRAINING, MAX_EVALUATION = 100, 100
MAX_SIDE = 1024
LARGER = 2
"""Images are kept no larger than so many times what the classifier needs."""
_EVALUATED = (Split.VALIDATION, Split.TEST)


@dataclass(kw_only=True, eq=False)
class SourceLook:
    """What was seen.

    Args:
        counts: labelled samples by split and label; the split is None where the source names none.
        samples: labelled samples with an image, as they came.
        is_whole: whether the source was seen to its end.
    """

    counts: dict[Split | None, Counter[str]] = field(default_factory=dict)
    samples: list[RawSample] = field(default_factory=list)
    is_whole: bool = True

    def n_of(self, split: Split | None) -> int:
        return self.counts.get(split, Counter()).total()


def look_at_source(source: SampleSource, default_split: str = "") -> SourceLook:
    """Read names, labels and splits, of a large source only the first ones; no image is opened.

    Args:
        source: the samples.
        default_split: split of those that name none.
    """
    seen = SourceLook()
    n_held = 0
    for position, sample in enumerate(source.read(0)):
        n_held += sample.data is not None
        if position >= MAX_LISTED or n_held > MAX_HELD:
            seen.is_whole = False
            break
        if sample.reason or len(sample.labels) != 1:
            continue
        split = parse_split(sample.split or default_split)
        seen.counts.setdefault(split, Counter())[sample.labels[0]] += 1
        if sample.location is not None or sample.data is not None:
            seen.samples.append(sample)
    return seen


LabelledImage = tuple[Image.Image, str, bool]
"""A decoded image, its label, and whether the source names the split train."""


def read_labelled_images(
    look: SourceLook, *, default_split: str, image_side: int | None
) -> list[LabelledImage]:
    """Decode a few images of training and evaluation, as many of every class as there are; broken ones are left out.

    They come in random order.
    """
    drawn = [
        (image, sample.labels[0], is_training)
        for sample, is_training in _chosen(look.samples, default_split)
        if (image := _decoded(sample, image_side)) is not None
    ]
    order = generator(0, "preflight", "order").permutation(len(drawn))
    return [drawn[place] for place in order]


def _chosen(samples: Sequence[RawSample], default_split: str) -> Iterator[tuple[RawSample, bool]]:
    splits = [parse_split(sample.split or default_split) for sample in samples]
    training = [place for place, split in enumerate(splits) if split is Split.TRAIN]
    others = [place for place, split in enumerate(splits) if split in _EVALUATED or split is None]
    for places, most in ((training, MAX_TRAINING), (others, MAX_EVALUATION)):
        for place in _spread([samples[place].labels[0] for place in places], most):
            yield samples[places[place]], places is training


def _spread(labels: Sequence[str], most: int) -> list[int]:
    """Return places of at most so many samples, random ones, as many of every class as there are."""
    if not labels:
        return []
    order = generator(0, "preflight", "samples").permutation(len(labels))
    codes = np.unique(np.array(labels), return_inverse=True)[1][order]
    by_class = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[by_class], codes[by_class])
    turns = np.arange(len(labels)) - starts
    chosen = by_class[np.argsort(turns, kind="stable")][:most]
    return [int(place) for place in order[chosen]]


def _decoded(sample: RawSample, image_side: int | None) -> Image.Image | None:
    try:
        data = sample.data if sample.data is not None else read_location(sample.location or "")
        image = decode_image(data, image_side=image_side).image
    except (UnreadableImageError, UnreadableLocationError, MemoryError):
        return None
    # All of them are in memory at once, and a photograph of a camera takes 36 MB.
    side = MAX_SIDE if image_side is None else LARGER * image_side
    return image if min(image.size) <= side else resize_shorter_side(image, side)


CHECK = "splits"


def fine(check: str, sentence: str) -> PreflightCheck:
    return PreflightCheck(check=check, state=CheckState.OK, sentence=sentence)


def check_splits(
    per_split: Mapping[str, int], *, n_dealt: int, configured: Sequence[str], used: Sequence[str]
) -> PreflightCheck:
    """Say what the splits are, whether they were dealt out here, and whether another one stands in for validation.

    Args:
        per_split: samples by split.
        n_dealt: samples that named no split and were dealt out.
        configured: the splits that are to be evaluated.
        used: those that are.
    """
    counted = ", ".join(f"{number:,} {name}" for name, number in per_split.items() if number)
    if n_dealt:
        total = sum(per_split.values())
        which = f"All {total:,}" if n_dealt == total else f"{n_dealt:,} of {total:,}"
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"{which} samples name no split and were dealt out at random ({counted}): "
            "train need not be what the classifier was trained on, and it may have been trained on the rest.",
            fix="Name the splits (folders train and val, or a column). If the classifier saw none of these images, write under [data]:",
            settings_line=f'default_split = "{Split.VALIDATION.value}"',
            short="splits dealt at random, train need not be the training",
        )
    if tuple(used) != tuple(configured):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"There is no labelled sample in {' or '.join(configured)} ({counted}), so {' and '.join(used)} is evaluated.",
            fix="To make that plain, write under [verify]:",
            settings_line=f"splits = {list(used)}".replace("'", '"'),
            short=f"{' and '.join(used)} is evaluated: there is no {' or '.join(configured)}",
        )
    if not per_split.get(Split.TRAIN.value, 0):
        return PreflightCheck(
            check=CHECK,
            state=CheckState.NOTICE,
            sentence=f"No sample is in train ({counted}): nothing is said about causes in training, and no layer is retrained.",
            fix="Add the samples that the classifier was trained on, in a folder or split train.",
            short="no training samples",
        )
    return fine(CHECK, f"Splits as the data name them: {counted}.")


def refuse_without_evaluation(look: SourceLook, *, configured: Sequence[str], where: str) -> None:
    """Refuse data in which nothing can be evaluated before they are read.

    Raises:
        NotEnoughDataError: if the source was seen to its end and all its labelled samples are in train, pool or synthetic.
    """
    evaluated = (None, Split.TEST, *[Split(name) for name in configured])
    n_labelled = sum(look.n_of(split) for split in look.counts)
    if look.is_whole and n_labelled and not any(look.n_of(split) for split in evaluated):
        named = {split.value: look.n_of(split) for split in look.counts if split is not None}
        raise NotEnoughDataError(
            f"There are no labelled samples in {' or '.join(configured)} or test to look for failures in.",
            where=where,
            given=named,
            fix="Put samples that the classifier was not trained on into a folder or split validation.",
        )
