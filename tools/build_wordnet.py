"""Make the compact WordNet of the lexicon again: `src/weakspot/words/data/wordnet.txt.gz`.

Needs WordNet's `dict` folder, for example of the Debian package `wordnet-base` (`/usr/share/wordnet`). Nouns and adjectives are
kept, with their senses, the synsets above or similar, how often a sense was counted, and irregular forms; explanations are not.

    python tools/build_wordnet.py --dict DICT --out src/weakspot/words/data/wordnet.txt.gz
"""

import argparse
import collections
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HEADER = "weakspot wordnet 1"
POINTERS = {"noun": ("@", "@i"), "adj": ("&",)}
LETTERS = {"noun": "n", "adj": "as"}


@dataclass(frozen=True)
class Synset:
    """One line of a data file.

    Args:
        offset: where the line starts, which is its name in other files.
        words: as written, spaces instead of underscores.
        keys: (lower-case word, file number, number in file) of each word, under which counts are listed.
        pointed: offsets of the synsets above, or similar.
        is_instance: whether it is one thing (a person, a town) and no kind of thing; its pointers are then written negative.
    """

    offset: str
    words: tuple[str, ...]
    keys: tuple[str, ...]
    pointed: tuple[str, ...]
    is_instance: bool


def main() -> None:
    """Read the dict folder and write the compact file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dict", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    folder: Path = arguments.dict
    counts = read_counts(folder / "cntlist.rev")
    lines = [HEADER]
    for part in ("noun", "adj"):
        synsets = list(read_synsets(folder / f"data.{part}", part))
        lines += [f"[{part} synsets]", *synset_lines(synsets, counts)]
        lines += [f"[{part} senses]", *sense_lines(folder / f"index.{part}", synsets)]
        lines += [f"[{part} exceptions]", *exception_lines(folder / f"{part}.exc")]
    # No time stamp, so that the same dictionary gives the same bytes.
    arguments.out.write_bytes(gzip.compress("\n".join(lines).encode(), compresslevel=9, mtime=0))


def read_synsets(path: Path, part: str) -> Iterator[Synset]:
    """Yield the synsets of a data file in its order."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ", 1)[0].split(" ")
        n_words = int(fields[3], 16)
        written = [word.split("(")[0] for word in fields[4 : 4 + 2 * n_words : 2]]
        numbers = fields[5 : 5 + 2 * n_words : 2]
        start = 5 + 2 * n_words
        pointers = [
            fields[start + 4 * one : start + 4 * one + 4] for one in range(int(fields[start - 1]))
        ]
        yield Synset(
            offset=fields[0],
            words=tuple(word.replace("_", " ") for word in written),
            keys=tuple(
                f"{word.lower()}/{fields[1]}/{int(number, 16):02d}"
                for word, number in zip(written, numbers, strict=True)
            ),
            pointed=tuple(
                one[1] for one in pointers if one[0] in POINTERS[part] and one[2] in LETTERS[part]
            ),
            is_instance=any(one[0] == "@i" for one in pointers),
        )


def read_counts(path: Path) -> collections.Counter[str]:
    """Return how often every sense was counted in tagged text, by (word, file number, number in file)."""
    counts: collections.Counter[str] = collections.Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split(" ")
        word, sense = key.split("%", 1)
        kind, file_number, number = sense.split(":")[:3]
        if kind in ("1", "3", "5"):
            counts[f"{word}/{file_number}/{number}"] += int(count)
    return counts


def synset_lines(synsets: Sequence[Synset], counts: collections.Counter[str]) -> Iterator[str]:
    """Yield `words|..., pointed positions, count` of every synset; a synset's position is its line."""
    positions = {synset.offset: position for position, synset in enumerate(synsets)}
    for synset in synsets:
        sign = "-" if synset.is_instance else ""
        pointed = " ".join(f"{sign}{positions[offset]}" for offset in synset.pointed)
        count = sum(counts[key] for key in synset.keys)
        yield "\t".join(("|".join(synset.words), pointed, str(count) if count else "")).rstrip("\t")


def sense_lines(path: Path, synsets: Sequence[Synset]) -> Iterator[str]:
    """Yield `word, positions of its synsets`, commonest first; things with a name of their own come after kinds of things."""
    positions = {synset.offset: position for position, synset in enumerate(synsets)}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split()
        word = fields[0].replace("_", " ")
        found = [positions[offset] for offset in fields[-int(fields[2]) :]]
        ordered = sorted(
            found, key=lambda one: synsets[one].is_instance or word not in synsets[one].words
        )
        yield f"{word}\t{' '.join(map(str, ordered))}"


def exception_lines(path: Path) -> Iterator[str]:
    """Yield `irregular form, lemma`."""
    for line in path.read_text(encoding="utf-8").splitlines():
        form, *lemmas = line.split(" ")
        yield f"{form.replace('_', ' ')}\t{lemmas[0].replace('_', ' ')}"


if __name__ == "__main__":
    main()
