"""Which captions were ever tried on a class: what each of them may spend of the error rate is fixed when it is first asked about."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weakspot.core.questions import spending_share
from weakspot.store.project import ProjectStore

LOG_FILE = "counterfactuals.jsonl"


@dataclass(frozen=True, kw_only=True)
class AskedOf:
    """What captions were put to; another seed or another classifier makes another question.

    Args:
        generator_id: who generates.
        class_name: what the images show.
        classifier_id: who is asked about them.
        seed: of the series.
    """

    generator_id: str
    class_name: str
    classifier_id: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class TriedCaptions:
    """Captions with what they cost.

    Args:
        prices: by caption, what its p-value is multiplied by.
        n_looks: different questions so far.
    """

    prices: Mapping[str, float]
    n_looks: int


def note_captions(store: ProjectStore, of: AskedOf, captions: Sequence[str]) -> TriedCaptions:
    """Write down the captions that are new and return what every one costs.

    The captions of one request are one batch, and share what a batch may spend. A caption that was asked about before keeps its
    place, however many more images it gets.
    """
    known = list(_entries(store, of))
    places = {
        str(entry.get("caption")): (int(entry["batch"]), int(entry["of"]))
        for entry in known
        if (entry.get("classifier"), entry.get("seed")) == (of.classifier_id, of.seed)
    }
    fresh = [caption for caption in captions if caption not in places]
    batch = 1 + max((int(entry["batch"]) for entry in known), default=0)
    places |= dict.fromkeys(fresh, (batch, len(fresh)))
    with (store.root / LOG_FILE).open("a", encoding="utf-8") as stream:
        for caption in fresh:
            entry = {
                "generator": of.generator_id,
                "class": of.class_name,
                "caption": caption,
                "classifier": of.classifier_id,
                "seed": of.seed,
                "batch": batch,
                "of": len(fresh),
            }
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
    prices = {
        caption: places[caption][1] / spending_share(places[caption][0]) for caption in captions
    }
    return TriedCaptions(prices=prices, n_looks=len(known) + len(fresh))


def captions_sentence(store: ProjectStore) -> str:
    """Return in plain words how many captions were ever tried; empty if none was."""
    tried = {
        (
            entry.get("generator"),
            entry.get("class"),
            entry.get("caption"),
            entry.get("classifier"),
            entry.get("seed"),
        )
        for entry in _lines(store)
    }
    if not tried:
        return ""
    captions = "1 caption was" if len(tried) == 1 else f"{len(tried):,} captions were"
    return (
        f"{captions} tried on generated images ({LOG_FILE}); that asks no held-out sample, so every class and generator has an error "
        "rate of its own."
    )


def _entries(store: ProjectStore, of: AskedOf) -> Iterator[dict[str, Any]]:
    """Yield every question about a class once; one whose batch cannot be read is a batch of its own."""
    seen, last = set(), 0
    for entry in _lines(store):
        if (entry.get("generator"), entry.get("class")) != (of.generator_id, of.class_name):
            continue
        question = (entry.get("caption"), entry.get("classifier"), entry.get("seed"))
        if question in seen:
            continue
        seen.add(question)
        batch, size = entry.get("batch"), entry.get("of")
        is_placed = isinstance(batch, int) and isinstance(size, int) and min(batch, size) > 0
        placed = entry if is_placed else entry | {"batch": last + 1, "of": 1}
        last = max(last, placed["batch"])
        yield placed


def _lines(store: ProjectStore) -> Iterator[dict[str, Any]]:
    """Yield what can be read of the file."""
    path = store.root / LOG_FILE
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
