"""How many pictures, and how large, fit into a report: one file that still opens quickly and can be sent by mail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weakspot.report.pictures import ShownPicture, SlicePictures

MEGABYTE = 1_000_000
SMALLEST_SIDE = 64
N_TRIED = 24
TAG_BYTES = 160

MakeThumbnail = Callable[[str, int], bytes | None]


@dataclass(frozen=True, kw_only=True)
class PicturePlan:
    """How pictures are shown: so many at each end of a slice, so large."""

    n_each: int
    side: int


@dataclass(frozen=True, kw_only=True)
class FittedPictures:
    """What is shown of every slice, and the thumbnails.

    Args:
        pictures: by slice id.
        thumbnails: JPEG data by sample id.
        note: what was left out, in a sentence; empty if nothing was.
    """

    pictures: Mapping[str, SlicePictures]
    thumbnails: Mapping[str, bytes]
    note: str = ""


def fit_pictures(
    pictures: Mapping[str, SlicePictures], make: MakeThumbnail, *, asked: PicturePlan, most_bytes: int, most_megabytes: float
) -> FittedPictures:
    """Return as many pictures as fit, the first slices before later ones.

    Args:
        pictures: what would be shown, by slice id, most important slice first.
        make: returns the thumbnail of a sample with a longest side, None if there is no picture.
        asked: what the settings ask for.
        most_bytes: room for pictures in the file.
        most_megabytes: size of the whole file, as it is said to people.
    """
    plan = next((plan for plan in _plans(asked) if _estimate(pictures, make, plan) <= most_bytes), None)
    chosen = plan or PicturePlan(n_each=min(1, asked.n_each), side=min(SMALLEST_SIDE, asked.side))
    made: dict[str, bytes | None] = {}
    shown: dict[str, SlicePictures] = {}
    room = most_bytes
    for slice_id, each in pictures.items():
        cut = _cut(each, chosen.n_each)
        for sample_id in cut.sample_ids:
            if sample_id not in made:
                made[sample_id] = make(sample_id, chosen.side)
        room -= sum(_size(made[sample_id]) for sample_id in cut.sample_ids)
        if room < 0:
            break
        shown[slice_id] = cut
    thumbnails = {name: data for name, data in made.items() if data is not None}
    return FittedPictures(pictures=shown, thumbnails=thumbnails, note=_note(pictures, len(shown), chosen, asked, most_megabytes))


def _plans(asked: PicturePlan) -> Iterator[PicturePlan]:
    """Yield ways to show pictures, from what is asked for down to what can still be recognised."""
    yield asked
    for share, size in ((0.5, 1.0), (0.5, 0.7), (0.25, 0.6), (0.125, 0.5)):
        side = min(asked.side, max(SMALLEST_SIDE, round(size * asked.side)))
        yield PicturePlan(n_each=min(asked.n_each, max(1, round(share * asked.n_each))), side=side)


def _estimate(pictures: Mapping[str, SlicePictures], make: MakeThumbnail, plan: PicturePlan) -> float:
    """Return about how many bytes pictures take in the page, from some of them spread over all slices."""
    names = [name for each in pictures.values() for name in _cut(each, plan.n_each).sample_ids]
    tried = names[:: max(1, len(names) // N_TRIED)]
    sizes = [_size(make(name, plan.side)) for name in tried]
    return 1.1 * len(names) * sum(sizes) / len(sizes) if sizes else 0.0


def _size(data: bytes | None) -> int:
    """Return what a picture takes in the page: base64 and the tags around it."""
    return TAG_BYTES + (4 * (len(data) + 2) // 3 if data is not None else 0)


def _cut(each: SlicePictures, n_each: int) -> SlicePictures:
    def first(shown: Sequence[ShownPicture]) -> tuple[ShownPicture, ...]:
        return tuple(shown[:n_each])

    return SlicePictures(hard=first(each.hard), easy=first(each.easy))


def _note(pictures: Mapping[str, SlicePictures], n_shown: int, chosen: PicturePlan, asked: PicturePlan, megabytes: float) -> str:
    """Return what was left out so that the file stays small."""
    parts = []
    if chosen.n_each < asked.n_each:
        parts.append(f"at most {chosen.n_each} of {asked.n_each} pictures are shown at each end of a slice")
    if chosen.side < asked.side:
        parts.append(f"they are {chosen.side} instead of {asked.side} pixels large")
    if n_shown < len(pictures):
        parts.append(f"findings after number {n_shown} are shown without pictures" if n_shown else "no pictures are shown")
    if not parts:
        return ""
    return f"To keep this file below {megabytes:g} MB, {', '.join(parts)} ([report] most_megabytes in weakspot.toml)."
