r"""Make the card of the words that the describer may say: `src/weakspot/models/embedded/weights/word_card.json` and its page.

A word is measured where its truth is known on images that took no part in teaching: Flickr8k test photographs whose captions say it (at
least ten), photographs of ImageNet classes it is nearly always true of, recoloured and filtered photographs
(`benchmarks/embedded_default.py --json`), and drawn images that were held back. Kinds are names of ImageNet classes and of what
WordNet says they are kinds of, told from the photographs of their nearest relatives.

    python tools/measure_known_words.py --pairs PAIRS --classes MORE_PAIRS --words WORDS.jsonl --work WORK --fonts FONTS \
        --attributes RESULT.json --page PAGE.md

Another embedder is measured on the drawn images, which it embeds itself (`--options` as JSON, `--card` for the result):

    python tools/measure_known_words.py --embedder transformers --options '{"model": "openai/clip-vit-base-patch16"}' \
        --work WORK --fonts FONTS --card CARD.json --page PAGE.md
"""

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import teaching_scenes
import teaching_writing
from build_known_words import caption_words
from known_word_measures import (
    ToldImages,
    WordFigure,
    card_page,
    card_rows,
    embed_images,
    measure_words,
)
from known_word_phrases import SIZED, WRITTEN, scene_phrases
from known_word_truths import OF_CLASSES, OF_SCENES, SAID
from teaching_writing import MEASURE

from weakspot.core.registry import part_class
from weakspot.models.embedded.encoder import CARD_PATH, MEMORY_PATH, PROJECTION_PATH
from weakspot.models.text_side import TextMemory, TextProjection, bare_phrase
from weakspot.words.captions import built_in_vocabulary, content_words
from weakspot.words.wordnet import ancestors
from weakspot_lab.align.aligning import sentence_encoder

MIN_OF_CLASSES, MIN_OF_KIND = 8, 4
DOMAINS = ("animal", "person", "food", "foodstuff", "produce", "plant", "artifact", "object")
MIN_RELATIVES, MAX_OF_KIND = 10, 300
WEAK = (
    "It hardly knows where a thing stands in the image, from where it is seen, relations and exact numbers; kinds that nobody taught "
    "it are not told. Words for surfaces, backgrounds, rain, fog and what is hidden were measured on made images: on photographs they "
    "may be told less well. Words measured on photographs of classes are told among many classes, which is easier than within one.",
)


def describer_words() -> list[str]:
    """Return every built-in word of the describer, once."""
    vocabulary = built_in_vocabulary()
    of_kinds = [
        word for one in vocabulary.by_ancestor.values() for word in (*one.adjectives, *one.places)
    ]
    listed = (*vocabulary.adjectives, *vocabulary.looks, *vocabulary.places, *of_kinds)
    return list(dict.fromkeys(listed))


def from_captions(words: list[str], pairs: Path, centre: Callable) -> ToldImages:
    rows = [json.loads(line) for line in (pairs / "texts.jsonl").read_text().splitlines()]
    chosen = [index for index, row in enumerate(rows) if row["split"] == "test"]
    said = [
        set(re.findall("[a-z]+", " ".join(rows[index]["captions"]).lower())) for index in chosen
    ]
    truths = {}
    for word in words:
        any_of = set(SAID.get(word, "").split())
        needed = set(content_words(word, with_carriers=True))
        truths[word] = np.array(
            [bool(any_of & own) if any_of else bool(needed) and needed <= own for own in said]
        )
    images = centre(np.load(pairs / "embeddings.npy")[chosen])
    return ToldImages(on="Flickr8k test captions", embeddings=images, truths=truths)


def from_classes(folder: Path, centre: Callable) -> tuple[ToldImages, ToldImages]:
    """Return photographs by class for words, and for the names of kinds among their relatives."""
    labels = np.array(
        [json.loads(line)["label"] for line in (folder / "texts.jsonl").read_text().splitlines()]
    )
    images = centre(np.load(folder / "vectors.npy").astype(np.float32))
    truths = {word: np.isin(labels, classes.split(",")) for word, classes in OF_CLASSES.items()}
    names = list(dict.fromkeys(labels.tolist()))
    above = {name: ancestors(name) for name in names}
    below: dict[str, list[str]] = {}
    for name, own in above.items():
        for one in own:
            below.setdefault(one, []).append(name)
    broad = {one for one, own in below.items() if 1 < len(own) <= MAX_OF_KIND}
    truths_of_kinds, compared = {}, {}
    for name in dict.fromkeys([*names, *sorted(broad)]):
        own = {*below.get(name, ()), *({name} & above.keys())}
        near = next(
            (one for one in ancestors(name) if len(below.get(one, ())) >= len(own) + MIN_RELATIVES),
            None,
        )
        if near is not None:
            compared[name] = np.isin(labels, below[near])
            truths_of_kinds[name] = np.isin(labels, sorted(own))
    kinds = ToldImages(
        on="ImageNet photographs of its relatives",
        embeddings=images,
        truths=truths_of_kinds,
        compared=compared,
        fewest=MIN_OF_KIND,
    )
    domains = {
        name: next((one for one in DOMAINS if one in own), "") for name, own in above.items()
    }
    domain = np.array([domains[label] for label in labels.tolist()])
    words = ToldImages(
        on="ImageNet photographs of its classes, among animals, food or things alike",
        embeddings=images,
        truths=truths,
        compared={word: np.isin(domain, domain[own]) for word, own in truths.items()},
        fewest=MIN_OF_CLASSES,
    )
    return words, kinds


def from_writing(names: list[tuple[str, int, str]], rows: np.ndarray) -> ToldImages:
    truths, compared = {}, {}
    for kind, drawn, plain in (("text", WRITTEN, "clean"), ("size", SIZED, None)):
        for what, phrases in drawn.items():
            own = np.array(
                [
                    part == f"{MEASURE}-{kind}" and (plain is None or shown in (what, plain))
                    for part, _, shown in names
                ]
            )
            is_drawn = np.array([shown == what for _, _, shown in names])
            for phrase in phrases:
                truths[phrase], compared[phrase] = is_drawn & own, own
    return ToldImages(on="drawn images", embeddings=rows, truths=truths, compared=compared)


def from_scenes(names: list[tuple[str, int, str]], rows: np.ndarray) -> ToldImages:
    truths, compared = {}, {}
    parts, shown = (np.array([one[place] for one in names]) for place in (0, 2))
    for family, words in OF_SCENES.items():
        own = parts == f"{MEASURE}-{family}"
        for word, ways in words.items():
            truths[word], compared[word] = own & np.isin(shown, ways), own
    plain = (parts == f"{MEASURE}-ground") & np.isin(shown, ("white", "gradient", "blue"))
    for word in ("cartoon", "drawing"):
        truths[word] = parts == f"{MEASURE}-cartoon"
        compared[word] = truths[word] | plain
    return ToldImages(on="made scenes", embeddings=rows, truths=truths, compared=compared)


def from_attributes(path: Path) -> dict[str, WordFigure]:
    result = json.loads(path.read_text())
    result = result.get("attributes", result)
    return {
        word: WordFigure(
            word=word, area=area, n_true=one["n"] // len(one["auc"]), on=f"{name} from photographs"
        )
        for name, one in result.items()
        for word, area in one["auc"].items()
    }


def measure_default(options: argparse.Namespace) -> tuple[list[dict], list[dict]]:
    """Return the rows of words and of kinds for the text side that ships."""
    memory, projection = TextMemory.load(MEMORY_PATH), TextProjection.load(PROJECTION_PATH)
    encode = sentence_encoder()

    def embed(texts: list[str]) -> np.ndarray:
        return memory.recall(texts, encode, projection)[0]

    drawn = {bare_phrase(one) for own in (WRITTEN, SIZED) for said in own.values() for one in said}
    made = {bare_phrase(one) for said in scene_phrases().values() for one in said}
    words = list(dict.fromkeys([*describer_words(), *sorted(drawn)]))
    of_classes, of_kinds = from_classes(options.classes, projection.centre)
    sources = [
        from_captions(words, options.pairs, projection.centre),
        of_classes,
        from_scenes(*teaching_scenes.read_or_embed(options.work)),
        from_writing(*teaching_writing.read_or_embed(options.work, options.fonts)),
    ]
    figures = measure_words(sources, embed, words)
    for word, figure in from_attributes(options.attributes).items():
        figures.setdefault(word, []).append(figure)
    true_words = {
        bare_phrase(json.loads(line)["text"]) for line in options.words.read_text().splitlines()
    }
    frequent = caption_words(options.pairs / "texts.jsonl")

    def taught(word: str) -> str:
        bare = bare_phrase(word)
        if bare in drawn or bare in made:
            return "made images"
        if bare in true_words:
            return "true text embedding" + (" and captions" if bare in frequent else "")
        is_known = memory.places([word])[0] >= 0
        return "projection, kept (captions, colours, styles)" if is_known else "projection only"

    def trust(names: list[str]) -> dict[str, float]:
        return dict(zip(names, memory.recall(names, encode, projection)[1].tolist(), strict=True))

    kinds = measure_words([of_kinds], embed)
    named = list(kinds)
    return (
        card_rows(words, figures, taught=taught, trust=trust(words)),
        card_rows(named, kinds, taught=taught, trust=trust(named)),
    )


def measure_other(options: argparse.Namespace) -> list[dict]:
    """Return the rows of another embedder, on the drawn images."""
    embedder = part_class("embedders", options.embedder)(**json.loads(options.options))
    sources = []
    for drawn, told in (
        (teaching_scenes.draw(options.work), from_scenes),
        (teaching_writing.draw(options.work, options.fonts), from_writing),
    ):
        held_back = [one for one in drawn if one.part.startswith(MEASURE)]
        names = [(one.part, one.scene, one.what) for one in held_back]
        sources.append(told(names, embed_images([one.image for one in held_back], embedder)))
    figures = measure_words(sources, embedder.embed_texts)
    return card_rows(list(figures), figures)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("work", "fonts", "page"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("pairs", "classes", "attributes", "words"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--card", type=Path, default=CARD_PATH)
    parser.add_argument("--embedder", default="", help="measure this part instead of the default")
    parser.add_argument("--options", default="{}", help="its options as JSON")
    options = parser.parse_args()
    missing = [
        name for name in ("pairs", "classes", "attributes", "words") if not getattr(options, name)
    ]
    if missing and not options.embedder:
        parser.error(f"the embedded default is measured on --{', --'.join(missing)} too")
    if options.embedder and options.card == CARD_PATH:
        parser.error("give --card: the package holds the card of the embedded default only")
    if options.embedder:
        rows, kinds, title, weak = measure_other(options), [], f"Words of {options.embedder}", ()
    else:
        rows, kinds = measure_default(options)
        title, weak = "Words of the describer, with the embedded default", WEAK
    known = [
        {key: row[key] for key in ("word", "auc", "n", "on", "taught", "trust", "may_be_said")}
        for row in kinds
    ]
    content = {"words": rows, "kinds": known}
    options.card.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    page = card_page(title, rows, weak)
    if kinds:
        n_said = sum(bool(row["may_be_said"]) for row in kinds)
        page += (
            f"\nKinds: {n_said} of {len(kinds)} names of ImageNet classes, and of what they are kinds of, tell their photographs (at "
            f"least four) from those of relatives at 0.80 or more and may be said of a class; {len(kinds) - n_said} may not. "
            f"Other kinds are never said. `{options.card.name}`, beside the weights, has every figure.\n"
        )
    options.page.write_text(page, encoding="utf-8")
    n_may = sum(bool(row["may_be_said"]) for row in rows)
    print(
        f"{len(rows)} words, {sum(row['auc'] is not None for row in rows)} measured, {n_may} may be said"
    )


if __name__ == "__main__":
    main()
