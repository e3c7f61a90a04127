"""A planted slice as a folder: photographs, a table of labels and planted predictions, and the truth beside it."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from names.photographs import (
    SIDE,
    Photograph,
    background,
    compose,
    cut_outs,
    shop_photographs,
    small_photographs,
)
from names.slices import GROUNDED, TUNING, UNCLEAR, Planted

N_OF_CLASS = {"tuning": 132, "reporting": 96}
N_BESIDE = {"tuning": 30, "reporting": 20}
SHARE_CHANGED = 0.25
FAILS_INSIDE, FAILS_OUTSIDE = 0.7, 0.08
OTHER = "something else"
LEAST_RED = 0.12
N_SEARCHED, N_LOOKED_AT = 900, 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """A photograph as it is shown and whether it belongs to the slice."""

    photograph: Photograph
    is_member: bool


def n_of_class(planted: Planted) -> int:
    """Return how many photographs of the class there are; fewer where they are only reported on, to save computing."""
    return N_OF_CLASS["tuning" if planted in TUNING else "reporting"]


def make_world(planted: Planted, folder: Path, work: Path, *, seed: int) -> Path:
    """Write photographs, `table.csv` and `truth.json` unless they are there; return the table."""
    table = folder / "table.csv"
    if table.exists():
        return table
    random = np.random.default_rng([seed, *planted.key.encode()])
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows, truth = [], {}
    for number, shown in enumerate(_photographs(planted, work, random)):
        name = _write(shown.photograph, folder, f"{number:04d}")
        fails = random.random() < (FAILS_INSIDE if shown.is_member else FAILS_OUTSIDE)
        rows.append(
            (name, planted.class_name, OTHER if fails else planted.class_name, "validation")
        )
        truth[name] = shown.is_member
    for number, photograph in enumerate(_beside(planted, work)):
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


def _photographs(planted: Planted, work: Path, random: np.random.Generator) -> Iterator[Shown]:
    if planted.source == "cut-outs":
        yield from _composed(planted, work, random)
        return
    every = list(_of_class(planted, work))
    if planted.chosen == "grounded":
        every = [one for one in every if one[1] not in UNCLEAR]
    kept = sorted(random.permutation(len(every))[: n_of_class(planted)])
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
    if planted.chosen == "red":
        return red_share(photograph.image) >= LEAST_RED
    return (
        number in GROUNDED if planted.chosen == "grounded" else photograph.kind in planted.members
    )


def red_share(image: Image.Image) -> float:
    """Return the share of clearly red pixels in the middle of a photograph."""
    middle = image.crop((SIDE // 6, SIDE // 6, 5 * SIDE // 6, 5 * SIDE // 6)).convert("HSV")
    hue, saturation, value = (np.asarray(channel, dtype=np.float64) for channel in middle.split())
    is_red = ((hue <= 10) | (hue >= 243)) & (saturation >= 130) & (value >= 80)
    return float(is_red.mean())


def _of_class(planted: Planted, work: Path) -> Iterator[tuple[Photograph, int]]:
    """Yield photographs with their numbers; tuning takes training photographs of CIFAR-10, reporting test photographs."""
    part = "data_batch_1" if planted in TUNING else "test_batch"
    for kind in planted.kinds:
        most = _n_of_kind(planted, kind)
        found = (
            shop_photographs(kind)
            if planted.source == "shop"
            else small_photographs(work, part, kind, most)
        )
        shown = [(photograph, number) for number, photograph in enumerate(found)]
        if planted.source == "shop" and planted.members:
            shown = shown[:most]
        yield from _balanced(shown, n_of_class(planted)) if planted.chosen == "red" else shown


def _n_of_kind(planted: Planted, kind: str) -> int:
    if planted.chosen == "red":
        return N_SEARCHED
    if not planted.members:
        return N_LOOKED_AT if planted.chosen else n_of_class(planted)
    is_member = kind in planted.members
    n_alike = len(planted.members) if is_member else len(planted.kinds) - len(planted.members)
    return round(
        n_of_class(planted) * (SHARE_CHANGED if is_member else 1 - SHARE_CHANGED) / n_alike
    )


def _balanced(shown: list[tuple[Photograph, int]], n_all: int) -> list[tuple[Photograph, int]]:
    """Return red ones and others that are clearly not, in the shares of a world."""
    shares = [red_share(photograph.image) for photograph, _ in shown]
    n_red = round(SHARE_CHANGED * n_all)
    red = [one for one, share in zip(shown, shares, strict=True) if share >= LEAST_RED][:n_red]
    other = [one for one, share in zip(shown, shares, strict=True) if share < LEAST_RED / 6]
    return red + other[: n_all - n_red]


def _composed(planted: Planted, work: Path, random: np.random.Generator) -> Iterator[Shown]:
    stamps = cut_outs(work, planted.kinds[0])
    for number in range(n_of_class(planted)):
        is_member = number % 4 == 0
        behind = background(work, str(random.choice(planted.behind[0 if is_member else 1])))
        image = compose(stamps[number % len(stamps)], behind, random)
        yield Shown(
            photograph=Photograph(kind=planted.class_name, image=image), is_member=is_member
        )


def _beside(planted: Planted, work: Path) -> Iterator[Photograph]:
    """Yield photographs of another class, the same for all worlds of a part where that is possible."""
    if planted in TUNING:
        kind = "bird" if planted.class_name in ("truck", "vehicle") else "truck"
        return small_photographs(work, "data_batch_1", kind, N_BESIDE["tuning"])
    kind = "cat" if planted.class_name in ("vehicle", "automobile") else "automobile"
    return small_photographs(work, "test_batch", kind, N_BESIDE["reporting"])
