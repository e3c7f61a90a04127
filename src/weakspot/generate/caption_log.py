"""Which captions were ever tried on a class: what each of them may spend of the error rate is fixed when it is first asked about."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from weakspot.core.questions import spending_share
from weakspot.store.project import ProjectStore

LOG_FILE = "counterfactuals.jsonl"


def note_captions(
    store: ProjectStore,
    captions: Sequence[str],
    *,
    generator_id: str,
    class_name: str,
    classifier_id: str,
    seed: int,
) -> tuple[dict[str, float], int]:
    """Write down the captions that are new, and return by caption what its p-value is multiplied by, and how many there were so far.

    The captions of one request are one batch, and share what a batch may spend. A caption that was asked about before keeps its
    place, however many more images it gets. Another seed or another classifier makes another question.
    """
    known = list(_entries(store, generator_id, class_name))
    places = {
        str(entry.get("caption")): (int(entry["batch"]), int(entry["of"]))
        for entry in known
        if (entry.get("classifier"), entry.get("seed")) == (classifier_id, seed)
    }
    fresh = [caption for caption in captions if caption not in places]
    batch = 1 + max((int(entry["batch"]) for entry in known), default=0)
    places |= dict.fromkeys(fresh, (batch, len(fresh)))
    with (store.root / LOG_FILE).open("a", encoding="utf-8") as stream:
        for caption in fresh:
            entry = {
                "generator": generator_id,
                "class": class_name,
                "caption": caption,
                "classifier": classifier_id,
                "seed": seed,
                "batch": batch,
                "of": len(fresh),
            }
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
    prices = {
        caption: places[caption][1] / spending_share(places[caption][0]) for caption in captions
    }
    return prices, len(known) + len(fresh)


def captions_sentence(store: ProjectStore) -> str:
    """Return in plain words how many captions were ever tried; empty if none was."""
    names = ("generator", "class", "caption", "classifier", "seed")
    tried = {tuple(entry.get(name) for name in names) for entry in _lines(store)}
    if not tried:
        return ""
    captions = "1 caption was" if len(tried) == 1 else f"{len(tried):,} captions were"
    return (
        f"{captions} tried on generated images ({LOG_FILE}); that asks no held-out sample, so every class and generator has an error "
        "rate of its own."
    )


def _entries(store: ProjectStore, generator_id: str, class_name: str) -> Iterator[dict[str, Any]]:
    """Yield every question about a class once; one whose batch cannot be read is a batch of its own."""
    seen, last = set(), 0
    for entry in _lines(store):
        if (entry.get("generator"), entry.get("class")) != (generator_id, class_name):
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
