"""How well the embedded segmenter cuts out objects: overlap with true masks, share refused, cost, and a contact sheet.

    python benchmarks/segment.py WORK [--sheet FILE.png] [--photographs FILE.png]

Scenes are of objects and grounds that the mask gate has not learnt from (`segment_scenes`, half 1).
"""

import argparse
import io
import time
from pathlib import Path

import numpy as np
from PIL import Image
from segment_scenes import TrueScene, material, scenes

from weakspot.core.roles import ObjectMask
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.embedded.segmenter import EmbeddedSegmenter

REPORTED_HALF = 1
SEED = 2
N_SCENES = 160
N_TIMED = 12
TILE = 150
COLUMNS = 10


def overlap(mask: ObjectMask, scene: TrueScene) -> float:
    found, truth = mask.coverage > 0.5, scene.truth > 0.5
    return float((found & truth).sum() / max(1, (found | truth).sum()))


def table(given: list[TrueScene], masks: list[ObjectMask]) -> str:
    """Return what became of scenes, by kind and in all, as Markdown."""
    overlaps = np.array([overlap(mask, scene) for mask, scene in zip(masks, given, strict=True)])
    used = np.array([not mask.refused for mask in masks])
    kinds = np.array([scene.kind for scene in given])
    lines = [
        "| scenes | number | used | mean IoU of used | of used above 0.7 | mean IoU of all |",
        "|---|---|---|---|---|---|",
    ]
    for name, of_kind in [
        *((kind, kinds == kind) for kind in ("one", "cut", "heap")),
        ("all", np.ones(len(kinds), dtype=np.bool_)),
    ]:
        kept = overlaps[of_kind & used]
        lines.append(
            f"| {name} | {of_kind.sum()} | {used[of_kind].mean():.0%} | {kept.mean():.3f} | {(kept > 0.7).mean():.0%} "
            f"| {overlaps[of_kind].mean():.3f} |"
        )
    qualities = np.array([mask.quality for mask in masks])
    lines.append("")
    lines.append(
        f"Correlation of estimated quality and true overlap: {np.corrcoef(qualities, overlaps)[0, 1]:.2f}."
    )
    return "\n".join(lines)


def cost(given: list[TrueScene], segmenter: EmbeddedSegmenter) -> str:
    """Return the time of a mask as a multiple of one embedding, taken in turns on one thread."""
    embedder = EmbeddedDefault(threads=1)
    spent = {"mask": 0.0, "embedding": 0.0}
    for number, scene in enumerate(given[: N_TIMED + 1]):
        image = Image.fromarray(scene.pixels)
        start = time.perf_counter()
        segmenter.segment([image], class_names=["object"])
        middle = time.perf_counter()
        embedder.embed_prepared([embedder.prepare(image)])
        if number:  # the first loads
            spent["mask"] += middle - start
            spent["embedding"] += time.perf_counter() - middle
    return f"One mask costs {spent['mask'] / spent['embedding']:.1f} embeddings ({spent['mask'] / N_TIMED:.2f} s here)."


def sheet(images: list[Image.Image], masks: list[ObjectMask]) -> Image.Image:
    """Return images with what is no object darkened: blue where the mask is used, red where it was refused."""
    rows = -(-len(images) // COLUMNS)
    page = Image.new("RGB", (COLUMNS * TILE, rows * TILE))
    for place, (image, mask) in enumerate(zip(images, masks, strict=True)):
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
        paint = np.array([110, 0, 0] if mask.refused else [0, 0, 110])
        cover = mask.coverage[..., None]
        shown = pixels * cover + (1 - cover) * (0.3 * pixels + paint)
        tile = Image.fromarray(np.clip(shown, 0, 255).astype(np.uint8)).resize((TILE, TILE))
        page.paste(tile, (place % COLUMNS * TILE, place // COLUMNS * TILE))
    return page


def shop_photographs(work: Path, n: int) -> list[Image.Image]:
    found = material(work, REPORTED_HALF).shops
    chosen = np.random.default_rng(5).permutation(len(found))[:n]
    return [Image.open(io.BytesIO(found[one])).convert("RGB") for one in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--scenes", type=int, default=N_SCENES)
    chosen = parser.parse_args()
    segmenter = EmbeddedSegmenter(threads=1)
    given = list(scenes(material(chosen.work, REPORTED_HALF), chosen.scenes, seed=SEED))
    images = [Image.fromarray(scene.pixels) for scene in given]
    masks = segmenter.segment(images, class_names=["object"] * len(images))
    print(table(given, masks))
    print(cost(given, segmenter))
    if chosen.sheet:
        sheet(images[:40], masks[:40]).save(chosen.sheet)
    if chosen.photographs:
        photographs = shop_photographs(chosen.work, 40)
        sheet(
            photographs, segmenter.segment(photographs, class_names=["fruit"] * len(photographs))
        ).save(chosen.photographs)


if __name__ == "__main__":
    main()
