r"""Make the card of the words that the describer may say: `src/weakspot/backends/weights/word_card.json` and its page.

A word is measured where its truth is known on images that took no part: Flickr8k test photographs whose captions say it (at least
ten), recoloured and filtered photographs (`benchmarks/embedded_default.py --json`), and drawn images that were held back.

    python tools/measure_known_words.py --pairs PAIRS --work WORK --fonts FONTS --attributes RESULT.json --page PAGE.md
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np
from build_known_words import SIZED, WRITTEN, caption_words
from teaching_writing import MEASURE, read_or_embed

from weakspot.backends.embedded_default import MEMORY_PATH, PROJECTION_PATH
from weakspot.backends.word_card import CARD_PATH, LEAST_AREA
from weakspot.core.assistants import LEAST_TRUST
from weakspot.core.projection import TextProjection
from weakspot.core.text_memory import TextMemory, bare_phrase
from weakspot.lab.align.aligning import sentence_encoder
from weakspot.lab.align.evaluation import area_under_curve
from weakspot.lexicon.captions import content_words
from weakspot.lexicon.vocabulary import built_in_vocabulary

LEAST_PHOTOGRAPHS = 10


def describer_words() -> list[str]:
    """Return every built-in word of the describer, once."""
    vocabulary = built_in_vocabulary()
    of_kinds = [
        word for one in vocabulary.by_ancestor.values() for word in (*one.adjectives, *one.places)
    ]
    listed = (*vocabulary.adjectives, *vocabulary.looks, *vocabulary.places, *of_kinds)
    return list(dict.fromkeys(listed))


def from_captions(words: list[str], pairs: Path, embed) -> dict[str, dict]:
    rows = [json.loads(line) for line in (pairs / "texts.jsonl").read_text().splitlines()]
    chosen = [index for index, row in enumerate(rows) if row["split"] == "test"]
    images = TextProjection.load(PROJECTION_PATH).centre(np.load(pairs / "embeddings.npy")[chosen])
    said = [
        set(re.findall("[a-z]+", " ".join(rows[index]["captions"]).lower())) for index in chosen
    ]
    found = {}
    for word in words:
        needed = set(content_words(word, with_carriers=True))
        seen = np.array([bool(needed) and needed <= own for own in said])
        if seen.sum() >= LEAST_PHOTOGRAPHS:
            area = area_under_curve(images @ embed([word])[0], seen)
            found[word] = {"auc": area, "n": int(seen.sum()), "on": "Flickr8k test captions"}
    return found


def from_drawn(words: list[str], work: Path, fonts: Path, embed) -> dict[str, dict]:
    names, rows = read_or_embed(work, fonts)
    found = {}
    for kind, drawn, plain in (("text", WRITTEN, "clean"), ("size", SIZED, None)):
        for what, phrases in drawn.items():
            own = [
                place
                for place, (part, _, shown) in enumerate(names)
                if part == f"{MEASURE}-{kind}" and (plain is None or shown in (what, plain))
            ]
            is_drawn = np.array([names[place][2] == what for place in own])
            for word in {*words, *phrases} & {*phrases, *map(bare_phrase, phrases)}:
                area = area_under_curve(rows[own] @ embed([word])[0], is_drawn)
                found[word] = {"auc": area, "n": int(is_drawn.sum()), "on": "drawn images"}
    return found


def from_attributes(path: Path) -> dict[str, dict]:
    result = json.loads(path.read_text())
    result = result.get("attributes", result)
    return {
        word: {"auc": area, "n": one["n"] // len(one["auc"]), "on": f"{name} made from photographs"}
        for name, one in result.items()
        for word, area in one["auc"].items()
    }


def page(rows: list[dict]) -> str:
    lines = [
        "# Words of the describer, with the embedded default",
        "",
        f"Made by `tools/measure_known_words.py`. A word measured below {LEAST_AREA}, or not measured and known less than "
        f"{LEAST_TRUST}, is never a candidate.",
        "",
        "| word | area under the curve | positive images | measured on | taught by | trust | may be said |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        area = "" if row["auc"] is None else f"{row['auc']:.3f}"
        may = "yes" if row["may_be_said"] else "no"
        lines.append(
            f"| {row['word']} | {area} | {row['n'] or ''} | {row['on']} | {row['taught']} | {row['trust']:.2f} | {may} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("pairs", "work", "fonts", "attributes", "page", "words"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    memory, projection = TextMemory.load(MEMORY_PATH), TextProjection.load(PROJECTION_PATH)
    encode = sentence_encoder()

    def embed(texts: list[str]) -> np.ndarray:
        return memory.recall(texts, encode, projection)[0]

    drawn = {bare_phrase(one) for own in (WRITTEN, SIZED) for said in own.values() for one in said}
    true_words = {
        bare_phrase(json.loads(line)["text"]) for line in options.words.read_text().splitlines()
    }
    frequent = caption_words(options.pairs / "texts.jsonl")
    words = [*dict.fromkeys([*describer_words(), *sorted(drawn)])]
    measured = {
        **from_captions(words, options.pairs, embed),
        **from_attributes(options.attributes),
        **from_drawn(words, options.work, options.fonts, embed),
    }
    trust = memory.recall(words, encode, projection)[1]
    known = memory.places(words) >= 0
    rows = []
    for word, own_trust, is_known in zip(words, trust, known, strict=True):
        bare = bare_phrase(word)
        taught = "projection only"
        if bare in drawn:
            taught = "made images"
        elif bare in true_words:
            taught = "true text embedding" + (" and captions" if bare in frequent else "")
        elif is_known:
            taught = "projection, kept (captions, colours, styles)"
        one = measured.get(word, measured.get(bare, {"auc": None, "n": 0, "on": ""}))
        may = own_trust >= LEAST_TRUST if one["auc"] is None else one["auc"] >= LEAST_AREA
        area = None if one["auc"] is None else round(float(one["auc"]), 4)
        rows.append(
            {
                "word": word,
                **one,
                "auc": area,
                "taught": taught,
                "trust": round(float(own_trust), 3),
                "may_be_said": bool(may),
            }
        )
    CARD_PATH.write_text(json.dumps({"words": rows}, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(page(rows), encoding="utf-8")
    n_may = sum(row["may_be_said"] for row in rows)
    print(
        f"{len(rows)} words, {sum(row['auc'] is not None for row in rows)} measured, {n_may} may be said"
    )


if __name__ == "__main__":
    main()
