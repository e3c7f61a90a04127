r"""Make the known words of the embedded default again: `src/weakspot/models/embedded/weights/known_words.npz`.

Words with their true text embeddings come from a file (`--word-embeddings`) or from a CLIP ViT-B/16 text tower
(`--text-tower`: name on the hub, folder of a transformers model or of ONNX towers). Less certain ones (`--lent`) only lend to their
neighbours. Captions say which words the projection has learnt from images; these keep its word. Writing in an image
and size in the frame are taught by drawn images (`teaching_writing.py`); backgrounds, surfaces, numbers, weather and what is hidden
by made scenes (`teaching_scenes.py`).

    python tools/build_known_words.py --words WORDS.jsonl --word-embeddings WORDS.npy --lent LENT.json \
        --lent-embeddings LENT.npy --captions TEXTS.jsonl --work WORK --fonts FONTS --out OUT.npz [--withhold-test]
"""

import argparse
import collections
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import teaching_scenes
from attribute_images import COLOURS
from known_word_memory import (
    centred_words,
    combined,
    embed_words,
    fit_memory,
    projected,
    read_word_embeddings,
    read_words,
)
from known_word_phrases import (
    COLOUR_PHRASES,
    KEPT_SCENES,
    NOUNS,
    SAID_OF_NOUN,
    SCENES_OF_NOUN,
    SIZED,
    SMALL_WORDS,
    WRITTEN,
    scene_phrases,
)
from known_word_truths import OF_SCENES, PLAIN
from teaching_images import NUMBERS, STYLE_TEXTS
from teaching_writing import LEARN, read_or_embed

from weakspot.core.arrays import unit_rows
from weakspot.models.embedded.encoder import PROJECTION_PATH
from weakspot.models.text_side import TextMemory, TextProjection, bare_phrase
from weakspot_lab.align.aligning import EncodeSentences, sentence_encoder

MIN_CAPTIONS = 15
BLEND = 0.5


def caption_words(path: Path) -> set[str]:
    """Return the words of at least 15 training photographs' captions."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counts = collections.Counter(
        word
        for row in rows
        if row["split"] == "train" and "captions" in row
        for word in {
            word for text in row["captions"] for word in re.findall("[a-z]+", text.lower())
        }
    )
    return {
        word
        for word, count in counts.items()
        if count >= MIN_CAPTIONS and len(word) > 2 and word not in SMALL_WORDS
    }


def taught_by_images(work: Path, fonts: Path) -> dict[str, dict[str, np.ndarray]]:
    """Return what each thing drawn adds to an image's embedding, by kind: `text` and `size`."""
    names, rows = read_or_embed(work, fonts)
    place_of = {name: place for place, name in enumerate(names)}
    found: dict[str, dict[str, np.ndarray]] = {}
    for kind, plain, drawn in (("text", "clean", WRITTEN), ("size", "medium", SIZED)):
        found[kind] = {}
        for what in drawn:
            pairs = [
                (place_of[part, scene, what], place_of[part, scene, plain])
                for part, scene, own in names
                if part == f"{LEARN}-{kind}" and own == what
            ]
            with_it, without = np.array(pairs).T
            found[kind][what] = unit_rows((rows[with_it] - rows[without]).mean(axis=0)[None])[0]
    return found


def taught_by_scenes(work: Path) -> dict[str, np.ndarray]:
    """Return what each word of made scenes adds to an image's embedding, set against the other ways to show the same scene."""
    names, rows = teaching_scenes.read_or_embed(work)
    parts, scenes, shown = (np.array([one[place] for one in names]) for place in range(3))
    found: dict[str, np.ndarray] = {}
    for family, words in OF_SCENES.items():
        own = parts == f"{LEARN}-{family}"
        for word, ways in words.items():
            is_true = own & np.isin(shown, ways)
            moved = [
                rows[is_true & (scenes == scene)].mean(axis=0)
                - rows[own & ~is_true & (scenes == scene)].mean(axis=0)
                for scene in np.unique(scenes[is_true])
            ]
            found[word] = unit_rows(np.mean(moved, axis=0)[None])[0]
    plain = (parts == f"{LEARN}-ground") & np.isin(shown, PLAIN)
    drawn = rows[parts == f"{LEARN}-cartoon"].mean(axis=0) - rows[plain].mean(axis=0)
    return {**found, "cartoon": unit_rows(drawn[None])[0]}


def taught_phrases(
    words: dict[str, np.ndarray],
    frequent: set[str],
    added: dict[str, dict[str, np.ndarray]],
    scenes: dict[str, np.ndarray],
    encode: EncodeSentences,
    projection: TextProjection,
) -> dict[str, np.ndarray]:
    """Return every phrase that is taught, with its embedding."""

    def kept(names: list[str]) -> dict[str, np.ndarray]:
        return dict(zip(names, projected(names, encode, projection), strict=True))

    taught = {bare_phrase(word): row for word, row in words.items()}
    both = sorted(frequent & taught.keys())
    for word, row in kept(both).items():
        taught[word] = unit_rows((taught[word] + BLEND * row)[None])[0]
    taught |= kept(sorted(frequent - taught.keys()))
    styles = [text for own in STYLE_TEXTS.values() for text in own]
    colours = [text.format(colour) for colour in (*COLOURS, "gray") for text in COLOUR_PHRASES]
    counts = [f"{number} {what}" for number in NUMBERS for what in ("things", "objects")]
    taught |= kept(list(dict.fromkeys(bare_phrase(one) for one in (*colours, *counts))))
    # A look is said of the image, never of a thing: no other phrasing is mixed in.
    taught |= dict(zip(map(bare_phrase, styles), projection.apply(encode(styles)), strict=True))
    own = {noun: taught.get(noun, row) for noun, row in kept(NOUNS).items()}
    bare_nouns, coloured = kept(NOUNS), kept([f"{c} {n}" for n in NOUNS for c in COLOURS])
    for noun in NOUNS:
        for colour in COLOURS:
            phrase = f"{colour} {noun}"
            moved = own[noun] + coloured[phrase] - bare_nouns[noun]
            taught[phrase] = unit_rows(moved[None])[0]
    for what, phrases in WRITTEN.items():
        taught |= {bare_phrase(phrase): added["text"][what] for phrase in phrases}
        for template in SAID_OF_NOUN[what]:
            taught |= combined(own, {what: added["text"][what]}, template)
    for what, phrases in SIZED.items():
        taught |= {bare_phrase(phrase): added["size"][what] for phrase in phrases}
    return taught | _of_scenes(scenes, own, taught, kept)


def _of_scenes(
    scenes: dict[str, np.ndarray],
    nouns: dict[str, np.ndarray],
    taught: dict[str, np.ndarray],
    kept: Callable[[list[str]], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    spoken = scene_phrases()
    for word in sorted(spoken.keys() & scenes.keys()):
        row = scenes[word]
        if word in KEPT_SCENES:
            # Photographs say the same otherwise: what was known before is kept beside it.
            before = taught.get(word, kept([word])[word])
            row = unit_rows((row + before)[None])[0]
        found |= {bare_phrase(phrase): row for phrase in spoken[word]}
        if word in SCENES_OF_NOUN:
            found |= combined(nouns, {word: row}, SCENES_OF_NOUN[word])
    return found


def build(options: argparse.Namespace, *, withhold: bool) -> TextMemory:
    """Fit the memory; with `withhold`, without the words of the split for unseen words."""
    listed = read_words(options.words)
    names = [word["text"] for word in listed]
    rows = (
        embed_words(names, options.text_tower)
        if options.text_tower
        else read_word_embeddings(options.word_embeddings, len(names))
    )
    centred = centred_words(rows)
    unseen = {
        bare_phrase(word["text"]) for word in listed if withhold and word.get("split") != "train"
    }
    words = {
        name: row
        for name, row in zip(names, centred, strict=True)
        if bare_phrase(name) not in unseen
    }
    lent: dict[str, np.ndarray] = {}
    if options.lent is not None:
        lent_names = json.loads(options.lent.read_text(encoding="utf-8"))
        lent_rows = unit_rows(read_word_embeddings(options.lent_embeddings, len(lent_names)))
        lent = {
            name: row
            for name, row in zip(lent_names, lent_rows, strict=True)
            if bare_phrase(name) not in unseen
        }
    encode, projection = sentence_encoder(), TextProjection.load(PROJECTION_PATH)
    added = taught_by_images(options.work, options.fonts)
    frequent = caption_words(options.captions)
    scenes = taught_by_scenes(options.work)
    taught = taught_phrases(words, frequent, added, scenes, encode, projection)
    return fit_memory(taught, encode=encode, projection=projection, lent=lent)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("words", "captions", "work", "fonts", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("word-embeddings", "lent", "lent-embeddings"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--text-tower", default="", help="instead of --word-embeddings")
    parser.add_argument(
        "--withhold-test", action="store_true", help="leave the words of the test split out"
    )
    options = parser.parse_args()
    if bool(options.text_tower) == (options.word_embeddings is not None):
        parser.error("give either --word-embeddings or --text-tower")
    memory = build(options, withhold=options.withhold_test)
    memory.save(options.out)
    print(f"{len(memory.phrases)} phrases, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
