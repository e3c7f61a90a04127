"""A planted slice as a folder: photographs, a table of labels and planted predictions, and the truth beside it."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from names.parts import Part
from names.photographs import (
    SIDE,
    Photograph,
    background,
    compose,
    cut_outs,
    shop_photographs,
    small_photographs,
)
from names.slices import GROUNDED, UNCLEAR, Planted

SHARE_CHANGED = 0.25
FAILS_INSIDE, FAILS_OUTSIDE = 0.7, 0.08
OTHER = "something else"
MIN_COLOURED = 0.12
HUES = {"red": (243, 10), "blue": (145, 180)}
"""First and last hue of 256; red lies at both ends."""
N_SEARCHED, N_LOOKED_AT = 900, 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """A photograph as it is shown and whether it belongs to the slice."""

    photograph: Photograph
    is_member: bool


def make_world(planted: Planted, part: Part, folder: Path, work: Path, *, seed: int) -> Path:
    """Write photographs, `table.csv` and `truth.json` unless they are there; return the table."""
    table = folder / "table.csv"
    if table.exists():
        return table
    random = np.random.default_rng([seed, *planted.key.encode()])
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows, truth = [], {}
    for number, shown in enumerate(_photographs(planted, part, work, random)):
        name = _write(shown.photograph, folder, f"{number:04d}")
        fails = random.random() < (FAILS_INSIDE if shown.is_member else FAILS_OUTSIDE)
        rows.append(
            (name, planted.class_name, OTHER if fails else planted.class_name, "validation")
        )
        truth[name] = shown.is_member
    for number, photograph in enumerate(_beside(planted, part, work)):
        name = _write(photograph, folder, f"other-{number:04d}")
        fails = random.random() < FAILS_OUTSIDE
        rows.append((name, OTHER, planted.class_name if fails else OTHER, "validation"))
    (folder / "truth.json").write_text(json.dumps(truth))
    with table.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("path", "label", "prediction", "split"), *rows])
    return table


def _write(photograph: Photograph, folder: Path, stem: str) -> str:
    name = f"images/{stem}.{'jpg' if photograph.data else 'png'}"
    if photograph.data:
        (folder / name).write_bytes(photograph.data)
    else:
        ImageOps.fit(photograph.image, (SIDE, SIDE), Image.Resampling.BICUBIC).save(folder / name)
    return name


def _photographs(
    planted: Planted, part: Part, work: Path, random: np.random.Generator
) -> Iterator[Shown]:
    if planted.source == "cut-outs":
        yield from _composed(planted, part, work, random)
        return
    every = list(_of_class(planted, part, work))
    if planted.chosen == "grounded":
        every = [one for one in every if one[1] not in UNCLEAR]
    kept = sorted(random.permutation(len(every))[: part.n_of_class])
    n_changed = round(SHARE_CHANGED * len(kept)) if planted.change else 0
    changed = set(random.permutation(kept)[:n_changed].tolist())
    for place in kept:
        photograph, number = every[place]
        if planted.change is None:
            yield Shown(photograph=photograph, is_member=_is_member(planted, photograph, number))
        elif place in changed:
            image = planted.change(photograph.image, random)
            yield Shown(photograph=Photograph(kind=photograph.kind, image=image), is_member=True)
        else:
            yield Shown(photograph=photograph, is_member=False)


def _is_member(planted: Planted, photograph: Photograph, number: int) -> bool:
    if planted.chosen in HUES:
        return colour_share(photograph.image, planted.chosen) >= MIN_COLOURED
    return (
        number in GROUNDED if planted.chosen == "grounded" else photograph.kind in planted.members
    )


def colour_share(image: Image.Image, colour: str) -> float:
    """Return the share of pixels that clearly have a colour in the middle of a photograph."""
    middle = image.crop((SIDE // 6, SIDE // 6, 5 * SIDE // 6, 5 * SIDE // 6)).convert("HSV")
    hue, saturation, value = (np.asarray(channel, dtype=np.float64) for channel in middle.split())
    first, last = HUES[colour]
    is_hue = (hue >= first) & (hue <= last) if first < last else (hue >= first) | (hue <= last)
    return float((is_hue & (saturation >= 130) & (value >= 80)).mean())


def _of_class(planted: Planted, part: Part, work: Path) -> Iterator[tuple[Photograph, int]]:
    """Yield photographs with their numbers."""
    for kind in planted.kinds:
        most = _n_of_kind(planted, part, kind)
        found = (
            shop_photographs(kind)
            if planted.source == "shop"
            else small_photographs(work, part.sheet, kind, most)
        )
        shown = [(photograph, number) for number, photograph in enumerate(found)]
        if planted.source == "shop" and planted.members:
            shown = shown[:most]
        yield from (
            _balanced(shown, part.n_of_class, planted.chosen) if planted.chosen in HUES else shown
        )


def _n_of_kind(planted: Planted, part: Part, kind: str) -> int:
    if planted.chosen in HUES:
        return N_SEARCHED
    if not planted.members:
        return N_LOOKED_AT if planted.chosen else part.n_of_class
    is_member = kind in planted.members
    n_alike = len(planted.members) if is_member else len(planted.kinds) - len(planted.members)
    return round(part.n_of_class * (SHARE_CHANGED if is_member else 1 - SHARE_CHANGED) / n_alike)


def _balanced(
    shown: list[tuple[Photograph, int]], n_all: int, colour: str
) -> list[tuple[Photograph, int]]:
    """Return those of a colour and others that are clearly not, in the shares of a world."""
    shares = [colour_share(photograph.image, colour) for photograph, _ in shown]
    n_members = round(SHARE_CHANGED * n_all)
    pairs = list(zip(shown, shares, strict=True))
    members = [one for one, share in pairs if share >= MIN_COLOURED][:n_members]
    other = [one for one, share in pairs if share < MIN_COLOURED / 6]
    return members + other[: n_all - n_members]


def _composed(
    planted: Planted, part: Part, work: Path, random: np.random.Generator
) -> Iterator[Shown]:
    stamps = cut_outs(work, planted.kinds[0])
    for number in range(part.n_of_class):
        is_member = number % 4 == 0
        behind = background(work, str(random.choice(planted.behind[0 if is_member else 1])))
        image = compose(stamps[number % len(stamps)], behind, random)
        yield Shown(
            photograph=Photograph(kind=planted.class_name, image=image), is_member=is_member
        )


def _beside(planted: Planted, part: Part, work: Path) -> Iterator[Photograph]:
    """Yield photographs of another class, the same for all worlds of a part where that is possible."""
    return small_photographs(work, part.sheet, part.beside_of(planted), part.n_beside)
