"""Findings of the benchmark as a page: members and the rest of the class as strips of images, and what is said of them.

python -m names.gallery --work DIR --out ../docs/results/findings --keys "deer dark,animal frog"    # after `python -m names`
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageOps

from names.judging import best_slice, judge
from names.parts import PARTS, Part
from names.slices import Planted
from weakspot.core.arrays import IntArray, even_part
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.project.project import Project

SIDE, GAP, N_SHOWN = 84, 4, 9
QUALITY = 82


def strips(found: FailureSlice, samples: SampleSet, folder: Path) -> Image.Image:
    """Return members above, the rest of the class below."""
    rows = found.class_rows(samples)
    inside = found.rule.members(samples, rows)
    width = N_SHOWN * (SIDE + GAP) - GAP
    sheet = Image.new("RGB", (width, 2 * SIDE + 3 * GAP), "white")
    for line, own in enumerate((rows[inside], rows[~inside])):
        for place, image in enumerate(_images(even_part(own, N_SHOWN), samples, folder)):
            sheet.paste(image, (place * (SIDE + GAP), line * (SIDE + 3 * GAP)))
    return sheet


def _images(rows: IntArray, samples: SampleSet, folder: Path) -> list[Image.Image]:
    names = [str(place).rsplit("/", 1)[-1] for place in samples.dataset.locations()]
    return [
        ImageOps.fit(Image.open(folder / "images" / names[row]).convert("RGB"), (SIDE, SIDE))
        for row in rows
    ]


def told(name: SliceName) -> str:
    """Return what is known of a word, in a line."""
    held = name.held
    parts = [f"*{name.contrast}*"]
    if name.is_unsure:
        parts.append(f"not sure: {name.doubt}")
    if held is not None:
        parts.append(f"told other images at {held.auc:.2f}")
    if name.witness:
        score = "" if name.witness_score is None else f" ({100 * name.witness_score:+.0f} points)"
        parts.append(f"{name.witness}{score}")
    return "; ".join(parts)


def section(planted: Planted, part: Part, work: Path, out: Path) -> str:
    """Write the strips of a finding and return its section of the page."""
    folder = work / "worlds" / f"{planted.key.replace(' ', '-')}-{part.seed}"
    project = Project.open(folder / "project")
    record = project.run_record(None)
    samples = project.samples(record)
    found, _ = best_slice(planted, record, samples, folder)
    if found is None:
        return f"## {planted.key}\n\nNot found.\n"
    image = f"{planted.key.replace(' ', '-')}.jpg"
    out.mkdir(parents=True, exist_ok=True)
    strips(found, samples, folder).save(out / image, quality=QUALITY, optimize=True)
    evidence = next(one for one in record.evidence if one.slice_id == found.slice_id)
    answer = judge(planted, record, samples, folder)
    lines = [
        f"## {found.title}",
        "",
        f"![{planted.key}: members above, the rest of the class below]({out.name}/{image})",
        "",
        f"Planted: {planted.key}. Wrong on {100 * evidence.rate_inside:.0f} % of {evidence.n_inside} held-out members and "
        f"{100 * evidence.rate_outside:.0f} % of {evidence.n_outside} others. The name is {answer.verdict}.",
        "",
        *(f"- {told(name)}" for name in found.names[:4]),
        "",
    ]
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    """Read arguments, write images, print the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of the benchmark")
    parser.add_argument("--out", type=Path, required=True, help="folder for the images")
    parser.add_argument("--part", choices=sorted(PARTS), default="second-reporting")
    parser.add_argument("--keys", required=True, help="which slices, with commas between")
    options = parser.parse_args(given)
    part = PARTS[options.part]
    wanted = options.keys.split(",")
    for key in wanted:
        planted = next(one for one in part.slices if one.key == key)
        print(section(planted, part, options.work, options.out), flush=True)


if __name__ == "__main__":
    main()
