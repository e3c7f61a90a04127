"""Names out of a grammar of a million captions: time a caption, and memory that does not grow with their number.

    python benchmarks/captions.py --captions 1000000

The text side is a fast stand-in, so what is measured is the describer. Grammars of growing size are tried one after another in one
process; the largest may not need notably more memory than the second. The right caption, a long one, must win each time.
"""

import argparse
import json
import resource
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.words.caption_grammar import CaptionGrammarDescriber
from weakspot.words.captions import (
    ClassWords,
    all_combinations,
    built_in_vocabulary,
    plain_caption,
    single_additions,
)

DIMENSION = 512
N_SAMPLES = 2_000
N_NOISE = 8_192
LOUDNESS = 0.6
MAX_GROWTH_MB = 64
RIGHT_WORDS = ("adjective0", "place0")


@dataclass
class FastTexts:
    """Gives every phrase noise of its own, and the right words a direction; counts phrases and seconds."""

    noise: FloatArray
    directions: FloatArray
    n_phrases: int = 0
    seconds: float = 0.0
    asked: list[int] = field(default_factory=list)

    def __call__(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d]."""
        started = time.perf_counter()
        embeddings = self.noise[
            [zlib.crc32(phrase.encode()) % len(self.noise) for phrase in phrases]
        ]
        for word, direction in zip(RIGHT_WORDS, self.directions, strict=True):
            embeddings[[word in phrase.split() for phrase in phrases]] += LOUDNESS * direction
        found = unit_rows(embeddings)
        self.n_phrases += len(phrases)
        self.asked.append(len(phrases))
        self.seconds += time.perf_counter() - started
        return found


def world(directions: FloatArray) -> tuple[SampleSet, FailureSlice]:
    """Return samples of which a quarter lies along the right words, and the slice of these."""
    draws = np.random.default_rng(0)
    is_inside = np.arange(N_SAMPLES) % 4 == 0
    embeddings = draws.normal(size=(N_SAMPLES, DIMENSION)) / np.sqrt(DIMENSION)
    embeddings[is_inside] += directions.sum(axis=0)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * N_SAMPLES,
        predictions=is_inside.astype(np.int64),
    )
    spaces = {
        "clip": EmbeddingSpace(encoder_id="fast", embeddings=unit_rows(embeddings), has_text=True)
    }
    samples = SampleSet(dataset=dataset, rows=np.arange(N_SAMPLES), spaces=spaces)
    rule = LinearRule(
        encoder_id="fast", direction=tuple(directions.sum(axis=0).tolist()), threshold=0.5
    )
    return samples, FailureSlice(
        class_name="apple", rule=rule, method="by-hand", found_on=DataUse.of(samples)
    )


def words_for(n_captions: int) -> ClassWords:
    """Return as many words of each kind as give about so many captions, with the built-in looks."""
    n_looks = len(built_in_vocabulary().looks) + 1
    n_words = max(1, round((n_captions / n_looks) ** (1 / 3)) - 1)
    return ClassWords(
        adjectives=tuple(f"adjective{number}" for number in range(n_words)),
        nouns=tuple(f"kind{number}" for number in range(n_words)),
        places=tuple(f"in place{number}" for number in range(n_words)),
    )


def measure(n_captions: int) -> dict[str, object]:
    """Name one slice out of a grammar of about so many captions."""
    draws = np.random.default_rng(1)
    directions = unit_rows(draws.normal(size=(len(RIGHT_WORDS), DIMENSION)))
    texts = FastTexts(
        noise=unit_rows(draws.normal(size=(N_NOISE, DIMENSION))), directions=directions
    )
    samples, found = world(directions)
    words = words_for(n_captions)
    describer = CaptionGrammarDescriber(
        adjectives=words.adjectives,
        places=words.places,
        class_words={"apple": ClassWords(nouns=words.nouns)},
        n_kinds=0,
        combinations="all",
    )
    started = time.perf_counter()
    (named,) = describer.describe(
        [found], samples, FailureCriterion(), Assistants(embed_texts=texts)
    )
    seconds = time.perf_counter() - started
    return {
        "captions": texts.n_phrases,
        "seconds": round(seconds, 2),
        "text_side_seconds": round(texts.seconds, 2),
        "microseconds_a_caption": round(1e6 * (seconds - texts.seconds) / texts.n_phrases, 2),
        "largest_chunk": max(texts.asked),
        "peak_resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "best_name": named.names[0].contrast,
    }


def n_listed(n_captions: int) -> int:
    """Return how many captions the grammar has, counted one by one."""
    plain, words, built_in = plain_caption("apple"), words_for(n_captions), built_in_vocabulary()
    return (
        1
        + sum(1 for _ in single_additions(plain, words, built_in))
        + sum(1 for _ in all_combinations(plain, words, built_in))
    )


def main() -> None:
    """Measure, check and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captions", type=int, default=1_000_000)
    arguments = parser.parse_args()
    sizes = [max(1_000, arguments.captions // share) for share in (100, 10, 1)]
    rows = [measure(size) for size in sizes]
    growth = int(str(rows[-1]["peak_resident_mb"])) - int(str(rows[-2]["peak_resident_mb"]))
    is_complete = rows[0]["captions"] == n_listed(sizes[0])
    is_right = all(
        set(str(row["best_name"]).split(", ")) == {RIGHT_WORDS[0], f"in {RIGHT_WORDS[1]}"}
        for row in rows
    )
    print(
        json.dumps(
            {"rows": rows, "growth_mb": growth, "is_right": is_right, "is_complete": is_complete}
        )
    )
    print(
        f"{rows[-1]['captions']:,} captions: {rows[-1]['microseconds_a_caption']} us a caption beside the text side"
    )
    print(
        f"memory, {rows[-2]['captions']:,} to {rows[-1]['captions']:,} captions: +{growth} MB (wanted <= {MAX_GROWTH_MB})"
    )
    print(f"the right name won: {is_right}; every caption was tried: {is_complete}")
    if not (is_right and is_complete and growth <= MAX_GROWTH_MB):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
