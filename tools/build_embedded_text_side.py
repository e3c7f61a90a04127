r"""Make the text side of the embedded default again: `src/weakspot/models/embedded/weights/clip_minilm_text.npz`.

Needs a folder of pairs (`embeddings.npy` and `texts.jsonl` with captions or labels), the float32 image tower, the sentence
encoder, a folder of cut-outs, one or more folders of photographs and WordNet's `data.noun`. The teaching images are drawn
here (`teaching_images.py`); their embeddings are kept in the work folder, so a second call is quick.

    python tools/build_embedded_text_side.py --pairs PAIRS --tower TOWER --sentence-model MODEL --tokenizer TOKENIZER \
        --cutouts CUTOUTS --photographs FOLDER [FOLDER ...] --wordnet data.noun --work WORK --out OUT.npz
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from attribute_images import COLOURS
from PIL import Image
from teaching_images import (
    STYLE_TEXTS,
    Material,
    Taught,
    draw_all,
    draw_nuisance,
    read_material,
    with_article,
)

from weakspot.core.arrays import unit_rows
from weakspot.models.embedded.encoder import KNOWN_EMBEDDING, SentenceEncoder, known_image
from weakspot_lab.align.aligning import settings_of
from weakspot_lab.align.evaluation import phrasings
from weakspot_lab.align.pairs import Concepts, PairGroup, group_from_texts
from weakspot_lab.align.training import AlignParameters, AlignResult, fit_text_side, held_out_recall

PARAMETERS = AlignParameters(steps=400, evaluate_every=50, nuisance_share=0.4, tolerance=0.005)
SHARES = {"captions": 1.0, "labels": 0.5, "colour": 0.5, "style": 0.3, "count": 0.1}
N_HELD_OUT = 500
WORD_TEMPLATES = ("{}", "a photo of a {}", "there is a {}", "a {}", "an image of a {} in the scene")
COLOUR_TEMPLATES = (
    "{0}",
    "something {0}",
    "a photo of something {0}",
    "{1} object",
    "{1} thing",
    "the colour {0}",
)
SMALL_WORDS_TEXT = """a an the of in on at with to and is are by for his her their its from into as it while up out over
through near that two three four five one some him them another other there this has have be being
been who which what off down around across along against behind front next top very"""
SMALL_WORDS = frozenset(SMALL_WORDS_TEXT.split())
CLIP_MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32)
CLIP_DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32)


class Tower:
    """An image tower whose answers are kept on disk, by content of the image."""

    def __init__(self, path: Path, cache: Path) -> None:
        self._session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self._cache_path = cache
        self._known: dict[str, np.ndarray] = {}
        if cache.exists():
            with np.load(cache, allow_pickle=False) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["embeddings"], strict=True))

    def embed(self, images: Iterable[Image.Image]) -> np.ndarray:
        """Return unit vectors [n, d] of square images."""
        arrays = [np.asarray(image, dtype=np.uint8) for image in images]
        keys = [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
        for key, array in zip(keys, arrays, strict=True):
            if key not in self._known:
                scaled = ((array.astype(np.float32) / 255 - CLIP_MEAN) / CLIP_DEVIATION).transpose(
                    2, 0, 1
                )[None]
                self._known[key] = self._session.run(
                    ["image_embeds"], {"pixel_values": np.ascontiguousarray(scaled)}
                )[0][0]
        np.savez(
            self._cache_path,
            keys=np.array(list(self._known)),
            embeddings=np.stack(list(self._known.values())),
        )
        return unit_rows(np.stack([self._known[key] for key in keys]))


class Texts:
    """Sentence embeddings that are kept on disk."""

    def __init__(self, encoder: SentenceEncoder, cache: Path) -> None:
        self._encoder, self._cache_path = encoder, cache
        self.embeddings: dict[str, np.ndarray] = {}
        if cache.exists():
            with np.load(cache, allow_pickle=False) as stored:
                self.embeddings = dict(zip(stored["k"].tolist(), stored["v"], strict=True))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the sentence embeddings [m, s] of texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self.embeddings]
        if new:
            self.embeddings.update(zip(new, self._encoder.encode(new), strict=True))
            np.savez(
                self._cache_path,
                k=np.array(list(self.embeddings)),
                v=np.stack(list(self.embeddings.values())),
            )
        return np.stack([self.embeddings[text] for text in texts])

    def group(
        self,
        name: str,
        images: np.ndarray,
        texts: Sequence[Sequence[str]],
        concepts: Concepts | None,
    ) -> PairGroup:
        """Build a group of pairs with its share of the loss."""
        self(sorted({text for own in texts for text in own}))
        group = group_from_texts(
            name, images, texts, self.embeddings, share=SHARES.get(name, 1.0), concepts=concepts
        )
        return dataclasses.replace(group, takes_nuisance=name != "style")

    def concepts(self, phrases: Sequence[Sequence[str]], presence: np.ndarray) -> Concepts:
        """Build words of known presence from the phrases of each."""
        flat = self([phrase for own in phrases for phrase in own])
        return Concepts(
            text_embeddings=flat.reshape(len(phrases), len(phrases[0]), -1), presence=presence
        )


def caption_group(rows: list[dict], images: np.ndarray, texts: Texts) -> PairGroup:
    words = [
        {word for caption in row["captions"] for word in re.findall(r"[a-z]+", caption.lower())}
        for row in rows
    ]
    counts = collections.Counter(word for own in words for word in own)
    taught = SMALL_WORDS | set(COLOURS)
    kept = [
        word
        for word, count in counts.items()
        if count >= 15 and word not in taught and len(word) > 2
    ]
    presence = np.array([[word in own for word in kept] for own in words], dtype=np.int8)
    concepts = texts.concepts([phrasings(word, WORD_TEMPLATES) for word in kept], presence)
    return texts.group("captions", images, [row["captions"] for row in rows], concepts)


def label_group(rows: list[dict], images: np.ndarray, texts: Texts, wordnet: Path) -> PairGroup:
    parents, lemmas = read_wordnet(wordnet)
    offsets = [
        row["id"][1:].split("_")[0] if row["source"].startswith("imagenet") else "" for row in rows
    ]
    above = [ancestors(offset, parents) for offset in offsets]
    counts = collections.Counter(node for own in above for node in own)
    kinds = [
        sorted(
            {
                lemma
                for node in own
                if 3 <= counts[node] <= 420
                for lemma in lemmas[node][:2]
                if not lemma[0].isupper()
            }
        )
        for own in above
    ]
    own_texts = []
    for row, offset, kind in zip(rows, offsets, kinds, strict=True):
        names = dict.fromkeys(
            [row["label"].lower(), *(lemma.lower() for lemma in lemmas.get(offset, [])[:2])]
        )
        phrases = [phrase for name in names for phrase in phrasings(name, WORD_TEMPLATES[:3])]
        own_texts.append(
            phrases + [phrase for name in kind for phrase in phrasings(name, WORD_TEMPLATES[:2])]
        )
    frequent = [
        kind
        for kind, count in collections.Counter(name for own in kinds for name in own).items()
        if count >= 5
    ]
    presence = np.array([[name in own for name in frequent] for own in kinds], dtype=np.int8)
    presence[[not offset for offset in offsets]] = -1
    concepts = texts.concepts([phrasings(name, WORD_TEMPLATES) for name in frequent], presence)
    return texts.group("labels", images, own_texts, concepts)


def read_wordnet(path: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Read the kinds-of relation and the words of every noun of WordNet 3.0."""
    parents, lemmas = {}, {}
    for line in path.read_text(encoding="latin1").splitlines():
        if line.startswith(" "):
            continue
        parts = line.split(" ")
        n_words = int(parts[3], 16)
        lemmas[parts[0]] = [parts[4 + 2 * place].replace("_", " ") for place in range(n_words)]
        start = 4 + 2 * n_words
        links = [
            parts[start + 1 + 4 * place : start + 5 + 4 * place]
            for place in range(int(parts[start]))
        ]
        parents[parts[0]] = [link[1] for link in links if link[0] in ("@", "@i")]
    return parents, lemmas


def ancestors(offset: str, parents: dict[str, list[str]]) -> list[str]:
    found: list[str] = []
    waiting = [offset]
    while waiting:
        for parent in parents.get(waiting.pop(), []):
            if parent not in found:
                found.append(parent)
                waiting.append(parent)
    return found


def taught_groups(drawn: dict[str, list[Taught]], tower: Tower, texts: Texts) -> list[PairGroup]:
    longest = max(map(len, STYLE_TEXTS.values()))
    phrases = {
        "colour": {
            word: [template.format(word, with_article(word)) for template in COLOUR_TEMPLATES]
            for word in COLOURS
        },
        "style": {word: (own * 3)[:longest] for word, own in STYLE_TEXTS.items()},
    }
    groups = []
    for name, taught in drawn.items():
        words = phrases.get(name)
        concepts = None
        if words is not None:
            presence = np.array(
                [[one.attribute == word for word in words] for one in taught], dtype=np.int8
            )
            for first, second in (("dark", "night"), ("night", "dark")):
                if first in words:
                    presence[
                        [one.attribute == first for one in taught], list(words).index(second)
                    ] = -1
            concepts = texts.concepts(list(words.values()), presence)
        groups.append(
            texts.group(
                name,
                tower.embed(one.image for one in taught),
                [one.texts for one in taught],
                concepts,
            )
        )
    return groups


def learn(
    options: argparse.Namespace, texts: Texts, tower: Tower, material: Material
) -> tuple[AlignResult, float]:
    rows = [
        json.loads(line)
        for line in (options.pairs / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    drawn = draw_all(material)
    embeddings = unit_rows(
        np.load(options.pairs / "embeddings.npy", allow_pickle=False).astype(np.float32)
    )
    captioned = [
        index for index, row in enumerate(rows) if "captions" in row and row["split"] == "train"
    ]
    order = np.random.default_rng(1).permutation(captioned)
    labelled = [index for index, row in enumerate(rows) if "label" in row]
    clear, coarse = (tower.embed(images) for images in draw_nuisance(material))
    held, train = order[:N_HELD_OUT], order[N_HELD_OUT:]
    groups = [
        caption_group([rows[index] for index in train], embeddings[train], texts),
        label_group(
            [rows[index] for index in labelled], embeddings[labelled], texts, options.wordnet
        ),
        *taught_groups(drawn, tower, texts),
    ]
    held_out = texts.group(
        "held out", embeddings[held], [rows[index]["captions"] for index in held], None
    )
    test = [index for index, row in enumerate(rows) if row["split"] == "test"]
    result = fit_text_side(groups, held_out, PARAMETERS, nuisance=coarse - clear, progress=show)
    final = texts.group("test", embeddings[test], [rows[index]["captions"] for index in test], None)
    return result, held_out_recall(result.projection, final)


def show(step: int, steps: int, recall: float) -> None:
    print(f"step {step} of {steps}: held-out recall at 10 {recall:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in (
        "pairs",
        "tower",
        "sentence-model",
        "tokenizer",
        "cutouts",
        "wordnet",
        "work",
        "out",
    ):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    texts = Texts(
        SentenceEncoder(options.sentence_model, options.tokenizer), options.work / "texts.npz"
    )
    tower = Tower(options.tower, options.work / "float.npz")
    result, recall = learn(
        options, texts, tower, read_material(options.cutouts, options.photographs)
    )
    known = tower.embed([Image.fromarray(known_image())])[0].astype(np.float32)
    result.projection.save(options.out, extra={KNOWN_EMBEDDING: known})
    print(json.dumps({**settings_of(result), "test_recall_at_10": recall}, indent=2))


if __name__ == "__main__":
    main()
