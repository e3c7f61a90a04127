"""Captions alone: tables with labels, predictions and captions, no image and no embedding, in which the words that fail are known.

    python benchmarks/tables/captions.py                              # 50 planted and 200 null tables from seed 1000 on
    python benchmarks/tables/captions.py --planted 10 --null 20 --first-seed 0 --scheme halves

Every set is a project made through the public interface. The table that is printed is the one in docs/results/tables.md;
seeds below 1000 chose settings.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weakspot

CLASSES = ("car", "dog", "boat")
REST_RATE = 0.1
N_TRAINING = 100
_ADJECTIVES_TEXT = """
    red blue green white black old new small large shiny dusty wooden striped spotted broken clean yellow bright dark
    muddy plain narrow wide heavy light rusty elegant modern grey brown
"""
ADJECTIVES = tuple(_ADJECTIVES_TEXT.split())
_THINGS_TEXT = """
    umbrella fence bicycle tree person child ball box bench flower stone basket bottle lamp table chair window door flag
    rope wheel ladder bucket sign horse bird cat sheep bag hat
"""
THINGS = tuple(_THINGS_TEXT.split())
_PLACES_TEXT = """
    street beach garden park forest harbour field kitchen market bridge hill river lake yard square corner station
    meadow canyon valley
"""
PLACES = tuple(_PLACES_TEXT.split())
WEATHER = ("at night", "in the rain", "in bright sunshine", "in fog", "at dawn", "", "", "", "", "")
PHRASE = ("wet", "road")


@dataclass(frozen=True, kw_only=True)
class CaptionPlan:
    """What a world is like.

    Args:
        n_evaluation: validation samples of each class.
        n_word: of them in the first class, those whose caption says the planted word.
        n_phrase: of them in the second class, those that say the planted phrase; as many say each of its words apart.
        gap: how much more often these fail.
    """

    n_evaluation: int = 500
    n_word: int = 50
    n_phrase: int = 50
    gap: float = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionWorld:
    """A table and what is true of it, row by row.

    Args:
        word: the planted word.
        labels: [n].
        predictions: [n].
        is_training: [n].
        captions: [n].
        chance: [n] true chance of failure.
    """

    word: str
    labels: np.ndarray
    predictions: np.ndarray
    is_training: np.ndarray
    captions: list[str]
    chance: np.ndarray

    def write(self, path: Path) -> None:
        """Write the table."""
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["key", "label", "prediction", "split", "caption"])
            for row, caption in enumerate(self.captions):
                split = "train" if self.is_training[row] else "validation"
                names = CLASSES[self.labels[row]], CLASSES[self.predictions[row]]
                writer.writerow([f"s{row:06d}", *names, split, caption])


def make_world(plan: CaptionPlan, seed: int) -> CaptionWorld:
    """Return a world; the same plan and seed give the same one."""
    random = np.random.default_rng([seed, 17])
    things = list(random.permutation(THINGS))
    word = things.pop(int(random.integers(3, len(things))))
    n_class = plan.n_evaluation + N_TRAINING
    labels = np.repeat(np.arange(len(CLASSES)), n_class)
    place = np.tile(np.arange(n_class), len(CLASSES))
    is_training = place >= plan.n_evaluation
    says_word = (labels == 0) & (place < plan.n_word)
    part = np.where(labels == 1, place // max(plan.n_phrase, 1), len(CLASSES))
    says_phrase = (part == 0) & (plan.n_phrase > 0)
    chance = REST_RATE + plan.gap * (says_word | says_phrase)
    captions = []
    for row, label in enumerate(labels.tolist()):
        spoken = _plural(word, random) if says_word[row] else ""
        places = _draw(PLACES, random)
        if label == 1 and plan.n_phrase and part[row] < len(CLASSES):
            before = "wet" if part[row] != 1 else _draw(ADJECTIVES, random)
            places = f"{before} {'road' if part[row] != 2 else _draw(PLACES, random)}"
        captions.append(_caption(CLASSES[label], spoken, places, things, random))
    failed = random.random(len(labels)) < chance
    wrong = (labels + random.integers(1, len(CLASSES), len(labels))) % len(CLASSES)
    return CaptionWorld(
        word=word,
        labels=labels,
        predictions=np.where(failed, wrong, labels),
        is_training=is_training,
        captions=captions,
        chance=chance,
    )


def _caption(
    name: str, spoken: str, place: str, things: list[str], random: np.random.Generator
) -> str:
    extra = _plural(_draw(things, random), random)
    listed = [extra, spoken] if random.random() < 0.5 else [spoken, extra]
    beside = " and ".join(one for one in listed if one)
    start = f"a {_draw(ADJECTIVES, random)} {name} with {beside}"
    return f"{start} on a {place} {_draw(WEATHER, random, even=True)}".strip()


def _draw(words, random: np.random.Generator, *, even: bool = False) -> str:
    """Return one of some words; earlier ones are more frequent, as in any language."""
    weights = np.ones(len(words)) if even else 1.0 / (np.arange(len(words)) + 3.0)
    return str(words[int(random.choice(len(words), p=weights / weights.sum()))])


def _plural(word: str, random: np.random.Generator) -> str:
    irregular = {"child": "children", "person": "people", "sheep": "sheep"}
    ending = "es" if word.endswith(("x", "ch")) else "s"
    many = irregular.get(word, word + ending)
    return f"two {many}" if random.random() < 0.4 else f"a {word}"


def confirmed_words(
    world: CaptionWorld, scheme: str
) -> tuple[list[tuple[str, str, bool, bool]], float]:
    """Return of every confirmed slice (class, words, whether it is false, whether its words are true of all members), and seconds."""
    given = {
        "data": {"columns": {"key": "key"}},
        "discover": {"methods": ["words"]},
        "verify": {"scheme": scheme},
    }
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "table.csv"
        world.write(table)
        begun = time.perf_counter()
        project = weakspot.Project.create(
            Path(name) / "project",
            data=str(table),
            settings=weakspot.Settings.model_validate(given),
        )
        project.ingest()
        record = project.verify(project.discover().run_id)
        seconds = time.perf_counter() - begun
        samples = project.samples(record)
        keys = samples.dataset.table.column("key").to_pylist()
        order = np.array([int(key[1:]) for key in keys])
        found = []
        for slice_, _ in record.published():
            inside = np.isin(samples.rows, slice_.members(samples))
            own = world.labels[order] == CLASSES.index(slice_.class_name)
            own &= ~world.is_training[order]
            chance = world.chance[order]
            is_false = chance[own & inside].mean() <= chance[own & ~inside].mean() + 1e-9
            words = slice_.names[0].contrast
            is_true = all(_says(world.captions[row], words) for row in order[inside])
            found.append((slice_.class_name, words, bool(is_false), is_true))
    return found, seconds


def _says(caption: str, words: str) -> bool:
    """Return whether a caption says words next to each other in singular or plural, found without any lexicon."""
    forms = {"person": ("person", "people"), "child": ("child", "children")}
    told = caption.replace("-", " ").split()
    wanted = [forms.get(word, (word, f"{word}s", f"{word}es")) for word in words.split(" ")]
    return any(
        all(told[start + step] in options for step, options in enumerate(wanted))
        for start in range(len(told) - len(wanted) + 1)
    )


def run_sets(plan: CaptionPlan, seeds: range, scheme: str) -> Counter[str]:
    """Return how often what was found in the sets of a plan."""
    counts: Counter[str] = Counter()
    for number, seed in enumerate(seeds, start=1):
        world = make_world(plan, seed)
        found, seconds = confirmed_words(world, scheme)
        said = {(one[0], one[1]) for one in found}
        counts["sets"] += 1
        counts["word"] += (CLASSES[0], world.word) in said
        counts["phrase"] += (CLASSES[1], " ".join(PHRASE)) in said
        counts["any false"] += any(one[2] for one in found)
        counts["slices"] += len(found)
        counts["true names"] += sum(one[3] for one in found)
        counts["milliseconds"] += round(1000 * seconds)
        sys.stderr.write(f"\r{number} of {len(seeds)} sets: {dict(counts)}")
    sys.stderr.write("\n")
    return counts


def main() -> None:
    """Run the sets and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--planted", type=int, default=50, help="planted tables of every size")
    parser.add_argument("--null", type=int, default=200, help="tables without anything to find")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--scheme", choices=("cross-fit", "halves"), default="cross-fit")
    given = parser.parse_args()
    plans = {
        f"{size} of 500, gap {round(100 * gap)}": (
            CaptionPlan(n_word=size, n_phrase=size, gap=gap),
            given.planted,
        )
        for size, gap in ((50, 0.3), (50, 0.2), (25, 0.3), (100, 0.2))
    }
    plans["null"] = (CaptionPlan(gap=0.0), given.null)
    lines = [
        "| world | sets | word | phrase | any false | slices | true names | seconds |",
        "|---|" + "---|" * 7,
    ]
    for title, (plan, n_sets) in plans.items():
        if n_sets:
            counts = run_sets(
                plan, range(given.first_seed, given.first_seed + n_sets), given.scheme
            )
            shares = [f"{counts[key] / n_sets:.2f}" for key in ("word", "phrase", "any false")]
            mean = f"{counts['milliseconds'] / 1000 / n_sets:.1f}"
            lines.append(
                f"| {title} | {n_sets} | {' | '.join(shares)} | {counts['slices']} | {counts['true names']} | {mean} |"
            )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
