"""How often the truth of a planted slice is among the ten words that are suggested, on photographs, with the embedded default.

Failures are planted: 75 % of the samples that the truth holds of fail, 8 % of the others. Words are suggested on one half. Shop
photographs come from the package index; Flickr8k test photographs and ImageNet photographs as embeddings with their captions and
labels (`--pairs`, `--classes`). Cases of apples and dogs were there when the ranking was chosen, the others were not.

    python benchmarks/suggestions.py --work WORK --pairs PAIRS --classes MORE_PAIRS [--seeds 100 105]
"""

import argparse
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import ClassProblem
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.data.images import decode_image
from weakspot.discover.hypothesis import HypothesisDiscoverer
from weakspot.models.embedded.encoder import PROJECTION_PATH, EmbeddedDefault
from weakspot.models.text_side import TextProjection
from weakspot.project.demo import groceries
from weakspot.run.suggestions import TOP, SuggestionSource
from weakspot.words.wordnet import ancestors

RATES = 0.75, 0.08
N_PER_KIND = 45
MIN_CAPTIONS = 3
MIN_INSIDE = 15
CLASSES = {
    "dog": "dog dogs puppy",
    "man": "man men guy",
    "child": "child children boy girl kid boys girls kids toddler",
}
# Caption words of a slice, and the suggestions that say it.
SAID = {
    "snow": ("snow snowy", "in the snow;snowy;in winter"),
    "water": (
        "water ocean lake river pool sea waves",
        "in the water;in a pond;on a river;underwater;at sea;wet;by the sea",
    ),
    "grass": ("grass grassy lawn", "on the grass;in a field;on a meadow"),
    "beach": ("beach sand sandy", "on a beach;on the sand;sandy;on the shore;by the sea"),
    "running": ("run running runs", "running;moving"),
    "black": ("black", "black"),
    "white": ("white", "white"),
    "brown": ("brown tan", "brown;golden"),
    "field": ("field", "in a field;on the grass;on a meadow"),
    "street": ("street sidewalk road", "on a street;on a road;in a city;in traffic"),
    "mountain": (
        "mountain mountains rock rocks rocky cliff",
        "in the mountains;on a rock;rocky;on a hill",
    ),
    "crowd": ("crowd group people", "in a crowd;in a group;with people"),
    "red": ("red", "red"),
    "sitting": ("sitting sits seated", "sitting"),
    "smiling": ("smiling smile smiles", "smiling"),
}
SPOKEN = {
    "dog": ("snow", "water", "grass", "beach", "running", "black", "white", "brown", "field"),
    "man": ("water", "street", "mountain", "crowd", "sitting", "red"),
    "child": ("water", "beach", "crowd", "smiling", "sitting"),
}
KINDS = {
    ("Apple", "Granny-Smith"): "green;Granny Smith",
    ("Apple", "Red-Delicious"): "red",
    ("Apple", "Golden-Delicious"): "yellow;golden;green",
    ("Pear", "Anjou"): "green",
    ("Pear", "Kaiser"): "brown",
    ("Melon", "Watermelon"): "watermelon;striped;green;red",
    ("Melon", "Cantaloupe"): "cantaloupe;beige;brown;orange",
    ("Melon", "Honeydew-Melon"): "honeydew;yellow",
}
# Class, WordNet ancestor of the hidden ImageNet classes, and the suggestions that say it.
HIDDEN = (
    ("dog", "spitz", "furry;white;in the snow"),
    ("bird", "parrot", "parrot;green;macaw;colourful"),
    ("vehicle", "truck", "truck"),
    ("vehicle", "ship", "at sea;in the water;ship;in a harbour;by the sea"),
    ("vehicle", "locomotive", "at a station;locomotive;train;steam locomotive"),
    ("fruit", "citrus", "orange;yellow;lemon"),
    ("clothing", "footwear", "leather;shoe"),
    ("animal", "bird", "flying;feathered;bird;perched on a branch"),
    ("animal", "fish", "underwater;in the water;fish"),
    ("food", "vegetable", "green;leafy;vegetable;raw;fresh"),
)
CHOSEN_ON = {"apple", "dog"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A slice: the class, embeddings [n, d], whom the truth holds of [n], and how it is said."""

    name: str
    truth: str
    embeddings: np.ndarray
    inside: np.ndarray
    said: tuple[str, ...]


def shop_cases(work: Path) -> list[Case]:
    path = work / "groceries.npz"
    if not path.is_file():
        counts, chosen = Counter(), []
        kinds = {kind for _, kind in KINDS} | {
            "Pink-Lady",
            "Royal-Gala",
            "Conference",
            "Galia-Melon",
        }
        for one in groceries():
            if one.fine in kinds and counts[one.fine] < N_PER_KIND:
                counts[one.fine] += 1
                chosen.append(one)
        embedder = EmbeddedDefault(threads=1)
        rows = [
            embedder.embed_prepared(
                [embedder.prepare(decode_image(one.data, image_side=embedder.image_side).image)]
            )[0]
            for one in chosen
        ]
        np.savez(
            path,
            x=np.stack(rows),
            coarse=[one.coarse for one in chosen],
            fine=[one.fine for one in chosen],
        )
    stored = np.load(path)
    found = []
    for (coarse, fine), said in KINDS.items():
        own = stored["coarse"] == coarse
        found.append(
            Case(
                name=coarse.lower(),
                truth=fine,
                embeddings=stored["x"][own],
                inside=stored["fine"][own] == fine,
                said=tuple(said.split(";")),
            )
        )
    return found


def spoken_cases(pairs: Path, projection: TextProjection) -> list[Case]:
    rows = [json.loads(line) for line in (pairs / "texts.jsonl").read_text().splitlines()]
    test = [number for number, row in enumerate(rows) if row["split"] == "test"]
    images = projection.centre(np.load(pairs / "embeddings.npy")[test].astype(np.float32))
    captions = [
        [set(re.findall("[a-z]+", text.lower())) for text in rows[number]["captions"]]
        for number in test
    ]

    def how_often(words: str) -> np.ndarray:
        wanted = set(words.split())
        return np.array([sum(bool(one & wanted) for one in own) for own in captions])

    found = []
    for name, truths in SPOKEN.items():
        own = how_often(CLASSES[name]) >= MIN_CAPTIONS
        for truth in truths:
            words, said = SAID[truth]
            times = how_often(words)
            kept = own & (times != 1)
            found.append(
                Case(
                    name=name,
                    truth=truth,
                    embeddings=images[kept],
                    inside=times[kept] > 1,
                    said=tuple(said.split(";")),
                )
            )
    return found


def hidden_cases(classes: Path, projection: TextProjection) -> list[Case]:
    lines = (classes / "texts.jsonl").read_text().splitlines()
    labels = [json.loads(line)["label"] for line in lines]
    images = projection.centre(np.load(classes / "vectors.npy").astype(np.float32))
    above = {label: {label, *ancestors(label)} for label in set(labels)}
    found = []
    for name, hidden, said in HIDDEN:
        own = np.array([name in above[label] for label in labels])
        inside = np.array([hidden in above[label] for label in labels])[own]
        few = np.arange(int(own.sum())) % max(1, int(own.sum()) // 400) == 0
        kept = few | inside if inside.mean() < 0.2 else few
        if MIN_INSIDE <= inside[kept].sum() < kept.sum() * 0.6:
            found.append(
                Case(
                    name=name,
                    truth=hidden,
                    embeddings=images[own][kept],
                    inside=inside[kept],
                    said=tuple(said.split(";")),
                )
            )
    return found


def ranks(case: Case, embedder: EmbeddedDefault, seeds: range) -> tuple[list[int], list[str]]:
    """Return the place of the truth among the suggestions of every seed (0: not there), and the first suggestions."""
    found, words = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        failed = rng.random(len(case.inside)) < np.where(case.inside, *RATES)
        half = np.sort(rng.permutation(len(failed))[: len(failed) // 2])
        n = len(half)
        problem = ClassProblem(
            class_name=case.name,
            side=None,
            rows=np.arange(n),
            failed=failed[half],
            confidence=np.ones(n, dtype=np.float32),
        )
        dataset = dataset_from_columns(
            class_names=[case.name, "other"],
            labels=np.zeros(n, dtype=int),
            predictions=failed[half].astype(int),
            splits=["validation"] * n,
        )
        source = SuggestionSource(
            samples=SampleSet(dataset=dataset, rows=np.arange(n)),
            problem=problem,
            embeddings=case.embeddings[half],
            space="clip",
            obstacle="",
            found_on=DataUse.nothing(),
            method=HypothesisDiscoverer(phrases={}),
            assistants=Assistants(
                embed_texts=embedder.embed_texts, trust=embedder.knows, measured=embedder.measured
            ),
            seed=seed,
        )
        words = [one.words for one in source.suggest()]
        said = {one.lower() for one in case.said}
        place = next((k for k, one in enumerate(words, start=1) if one.lower() in said), 0)
        found.append(place)
    return found, words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("work", "pairs", "classes"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs=2, default=(100, 105))
    options = parser.parse_args()
    projection, embedder = TextProjection.load(PROJECTION_PATH), EmbeddedDefault(threads=1)
    remembered: dict[str, np.ndarray] = {}
    embed = embedder.embed_texts

    def embed_once(texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in remembered]
        remembered.update(zip(new, embed(new), strict=True) if new else ())
        return np.stack([remembered[text] for text in texts])

    embedder.embed_texts = embed_once
    cases = [
        *shop_cases(options.work),
        *spoken_cases(options.pairs, projection),
        *hidden_cases(options.classes, projection),
    ]
    hits: dict[bool, list[bool]] = {True: [], False: []}
    print(
        "| class | slice | samples | in the slice | place of the truth, each draw | first suggestions of the last draw |"
    )
    print("|---|---|---|---|---|---|")
    for case in cases:
        places, words = ranks(case, embedder, range(*options.seeds))
        hits[case.name in CHOSEN_ON] += [0 < place <= TOP for place in places]
        shown = ", ".join(str(place) if place else "-" for place in places)
        first = ", ".join(words[:4])
        figures = f"{len(case.inside)} | {int(case.inside.sum())}"
        print(f"| {case.name} | {case.truth} | {figures} | {shown} | {first} |", flush=True)
    for is_chosen, own in hits.items():
        what = "chosen on" if is_chosen else "reported"
        print(f"{what}: {sum(own)} of {len(own)} ({100 * np.mean(own):.0f} %)")


if __name__ == "__main__":
    main()
