"""Runs the same projects with the image tower in float32 and in 8-bit integers, and compares what is found and how it is called.

    PYTHONPATH=benchmarks python benchmarks/tower_findings.py --work WORK

The demo, and five projects of registry photographs (melons and cars of `generated_photographs.py`) in each of which one kind is rare in training. None of
them had a part in the tower's shifts and factors but for 16 training photographs of the groceries. Witnesses are not asked, as in the demo.
"""

import argparse
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from generated_photographs import SETS, trained_settings

from weakspot.core.dataset import Split
from weakspot.core.run import RunRecord
from weakspot.project.demo import choose_samples, groceries
from weakspot.project.project import Project
from weakspot.run.settings import EmbedderSettings, Settings, WitnessSettings

PRECISIONS = ("float32", "int8")
USUAL = {Split.TRAIN: 30, Split.VALIDATION: 40}
RARE = {Split.TRAIN: 4, Split.VALIDATION: 44}


KINDS = {
    "satsumas": ("Satsumas", {"Orange": "orange", "Royal-Gala": "apple", "Pink-Lady": "apple"}),
    "golden": ("Golden-Delicious", {"Royal-Gala": "apple", "Anjou": "pear", "Conference": "pear"}),
    "kaiser": ("Kaiser", {"Anjou": "pear", "Golden-Delicious": "apple", "Royal-Gala": "apple"}),
}
"""By project: the kind that is rare in training, and the others with their class; the rare kind is of the first class."""


def kinds(name: str) -> Callable[[Path], Iterator[tuple[str, bool, bytes]]]:
    """Return what yields the photographs of a project of groceries: class, whether its kind is rare, image."""
    rare, labels = KINDS[name]
    classes = {**labels, rare: next(iter(labels.values()))}

    def photographs(_work: Path) -> Iterator[tuple[str, bool, bytes]]:
        for photo in groceries():
            if photo.fine in classes:
                yield classes[photo.fine], photo.fine == rare, photo.data

    return photographs


PHOTOGRAPHS = {
    "melons": SETS["melons"].photographs,
    **{name: kinds(name) for name in KINDS},
    "cars": SETS["cars"].photographs,
}


def samples_of(name: str, work: Path) -> Iterator[tuple[str, Split, bytes]]:
    """Yield (class, split, image)."""
    if name == "demo":
        for _, photo, split in choose_samples(groceries(), 0):
            yield photo.coarse.lower(), split, photo.data
        return
    room: dict[tuple[str, bool], dict[Split, int]] = {}
    for label, is_rare, data in PHOTOGRAPHS[name](work):
        left = room.setdefault((label, is_rare), dict(RARE if is_rare else USUAL))
        split = next((one for one, n in left.items() if n), None)
        if split is not None:
            left[split] -= 1
            yield label, split, data


def write_photographs(name: str, folder: Path, work: Path) -> Settings:
    rows, training = [], []
    for number, (label, split, data) in enumerate(samples_of(name, work)):
        ending = "png" if data.startswith(b"\x89PNG") else "jpg"
        path = folder / f"photos/{label}/{number:05d}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        rows.append((str(path), label, split.value))
        training += [(label, path)] if split is Split.TRAIN else []
    with (folder / "manifest.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "split"), *rows])
    return trained_settings(folder, training)


def run(folder: Path, settings: Settings, photographs: Path, precision: str) -> RunRecord:
    part = settings.classifier
    options = {**part.options, "path": str(photographs / "classifier.onnx")}
    chosen = settings.model_copy(
        update={
            "data": settings.data.model_copy(update={"source": str(photographs / "manifest.csv")}),
            "classifier": part.model_copy(update={"options": options}),
            "embedder": EmbedderSettings(name="embedded", options={"precision": precision}),
            "witnesses": WitnessSettings(on="none"),
        }
    )
    Project.create(folder, settings=chosen, overwrite=True)
    return Project.open(folder).run()


def told(record: RunRecord) -> dict[str, object]:
    """Return what a person reads: findings with their words, verdicts of all that was tested, whole classes."""
    verdicts = {}
    for evidence in record.evidence:
        title = record.slice_by_id(evidence.slice_id).title
        verdicts[title] = evidence.verdict.value
    return {
        "findings": [
            (
                slice_.class_name,
                slice_.title,
                evidence.n_inside,
                round(evidence.rate_inside, 3),
                round(evidence.rate_outside, 3),
            )
            for slice_, evidence in record.published()
            if evidence.explained is None
        ],
        "classes": [
            (one.class_name, one.kind.value, one.is_confirmed) for one in record.class_findings
        ],
        "tested": verdicts,
        "advice": [one.sentence for one in record.advice if hasattr(one, "sentence")],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=["demo", *PHOTOGRAPHS])
    given = parser.parse_args()
    for name in given.sets:
        photographs = (given.work / f"photographs-{name}").resolve()
        photographs.mkdir(parents=True)
        settings = write_photographs(name, photographs, given.work)
        both = {
            one: told(run(given.work / f"{name}-{one}", settings, photographs, one))
            for one in PRECISIONS
        }
        (given.work / f"{name}.json").write_text(json.dumps(both, indent=1))
        exact, integer = (both[one] for one in PRECISIONS)
        names = [[row[:2] for row in one["findings"]] for one in (exact, integer)]
        print(f"{name}: findings {'the same' if names[0] == names[1] else 'DIFFER'}", flush=True)
        print(f"  float32 {exact['findings']} {exact['classes']}")
        print(f"  int8    {integer['findings']} {integer['classes']}", flush=True)


if __name__ == "__main__":
    main()
