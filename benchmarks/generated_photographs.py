"""Counterfactual, search, generate and refine with default settings on registry photographs: how many images can be used, and are they right?

    PYTHONPATH=benchmarks python benchmarks/generated_photographs.py --work DIR --set melons
    PYTHONPATH=benchmarks python benchmarks/generated_photographs.py --work DIR --set cars
    PYTHONPATH=benchmarks python benchmarks/generated_photographs.py --work DIR --set demo    # after `weakspot demo --folder DIR/demo`

Every set has a class one kind of which is rare in training, and the small colour classifier of the demo. `answers.json` beside the project
holds the figures, `sheets` the contact sheets.
"""

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from names.photographs import small_photographs
from names.worlds import colour_share
from PIL import Image

from weakspot.core.dataset import Split, Task
from weakspot.core.errors import WeakspotError
from weakspot.data.image_grid import labelled_grid
from weakspot.data.settings import DataSettings
from weakspot.generate.counterfactuals import CounterfactualRequest, write_counterfactuals
from weakspot.generate.generated_folder import GenerateRequest, read_generated
from weakspot.generate.search_run import SearchRequest, write_search
from weakspot.project.demo import groceries, network, untrained_head
from weakspot.project.project import Project
from weakspot.project.refine.projects import headline, refine_project, write_refinement
from weakspot.project.refine.training import PLAIN, RANDOM, RefineRequest
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.settings import (
    PartSettings,
    Settings,
)
from weakspot.run.wiring import build_classifier

N_EACH, N_COUNTERFACTUAL = 30, 40
USUAL = {Split.TRAIN: 60, Split.VALIDATION: 40, Split.TEST: 20}
RARE = {Split.TRAIN: 4, Split.VALIDATION: 44, Split.TEST: 24}
MIN_RED = 0.12

Photographs = Callable[[Path], Iterator[tuple[str, bool, bytes]]]


@dataclass(frozen=True, kw_only=True)
class PhotographSet:
    """Photographs with their class and whether they are of the rare kind; the class that is looked at; what is changed in it.

    Args:
        photographs: from a working folder.
        class_name: has a rare kind.
        captions: of the counterfactual; the first is what the rare kind looks like.
    """

    photographs: Photographs
    class_name: str
    captions: tuple[str, ...]


def melons(_work: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Yield melons, of which watermelons are rare in training, and pears, from grocery shops."""
    labels = {
        "Cantaloupe": "melon",
        "Honeydew-Melon": "melon",
        "Watermelon": "melon",
        "Conference": "pear",
        "Anjou": "pear",
    }
    for photo in groceries():
        if photo.fine in labels:
            yield labels[photo.fine], photo.fine == "Watermelon", photo.data


def cars(work: Path) -> Iterator[tuple[str, bool, bytes]]:
    """Yield automobiles of CIFAR-10, of which red ones are rare in training, and trucks, enlarged."""
    for kind in ("automobile", "truck"):
        for photo in small_photographs(work, "data_batch_1", kind, 900):
            stream = io.BytesIO()
            photo.image.save(stream, format="PNG")
            is_red = colour_share(photo.image, "red") >= MIN_RED
            yield kind, is_red and kind == "automobile", stream.getvalue()


SETS = MappingProxyType(
    {
        "demo": PhotographSet(
            photographs=lambda _work: iter(()),
            class_name="apple",
            captions=("green", "red", "on a white background"),
        ),
        "melons": PhotographSet(
            photographs=melons,
            class_name="melon",
            captions=("green", "orange", "on a white background"),
        ),
        "cars": PhotographSet(
            photographs=cars,
            class_name="automobile",
            captions=("red", "white", "on a white background"),
        ),
    }
)


def make_project(name: str, folder: Path, work: Path) -> Project:
    """Write photographs and a classifier that hardly saw the rare kind, run the loop, and return the project."""
    if (folder / "runs").exists() or name == "demo":
        return Project.open(folder)
    left = {is_rare: dict(RARE if is_rare else USUAL) for is_rare in (True, False)}
    counts: dict[tuple[str, bool], dict[Split, int]] = {}
    rows, training = [], []
    for number, (label, is_rare, data) in enumerate(SETS[name].photographs(work)):
        room = counts.setdefault((label, is_rare), dict(left[is_rare]))
        split = next((one for one, n in room.items() if n), None)
        if split is None:
            continue
        room[split] -= 1
        ending = "png" if data.startswith(b"\x89PNG") else "jpg"
        path = f"photos/{label}/{number:05d}.{ending}"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        rows.append((path, label, split.value))
        training += [(label, folder / path)] if split is Split.TRAIN else []
    with (folder / "manifest.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "split"), *rows])
    settings = trained_settings(folder, training)
    Project.create(folder, settings=settings, overwrite=True)
    project = Project.open(folder)
    project.run()
    return Project.open(folder)


def trained_settings(folder: Path, training: list[tuple[str, Path]]) -> Settings:
    """Train the colour classifier of the demo and return settings that use it."""
    names = sorted({label for label, _ in training})
    model = folder / "classifier.onnx"
    model.write_bytes(network(untrained_head(len(names))))
    options = {"path": model.name, "class_names": names, "mean": [0.0] * 3, "std": [1.0] * 3}
    part = PartSettings(name="onnx", options=options)
    classifier = build_classifier(part, folder)
    images = [classifier.prepare(Image.open(path).convert("RGB")) for _, path in training]
    targets = np.array([[label == name for name in names] for label, _ in training])
    head = (
        HeadTrainer(penalty=0.3)
        .train(
            classifier.classify(images).features,
            targets,
            np.ones(len(training)),
            task=Task.SINGLE_LABEL,
        )
        .head
    )
    model.write_bytes(network(head))
    return Settings(data=DataSettings(source="manifest.csv"), classifier=part)


def asked_counterfactual(project: Project, chosen: PhotographSet, to: Path) -> dict[str, object]:
    """Return rates by caption; every object is shown once."""
    result = project.counterfactual(
        CounterfactualRequest(
            class_name=chosen.class_name, captions=chosen.captions, n_each=N_COUNTERFACTUAL
        )
    )
    write_counterfactuals(result, to / "counterfactual")
    series = result.series
    return {
        "unchanged": [series.baseline.share.count, series.baseline.share.total],
        "notes": series.notes,
        "captions": {
            one.caption: {
                "fail": [one.share.count, one.share.total],
                "pairs": one.pairs,
                "objects": one.parents,
                "change": round(one.change, 3),
                "p": round(one.p_after_looks, 4),
                "note": one.note,
            }
            for one in series.rates
        },
    }


def asked_search(project: Project, chosen: PhotographSet, to: Path) -> dict[str, object]:
    """Return how many images of the baseline could be used, of how many objects, and what was found."""
    found = project.search(SearchRequest(class_name=chosen.class_name))
    write_search(found, to / "search")
    result = found.record.result
    base = result.baseline
    return {
        "asked": base.n_asked,
        "usable": base.n_images + base.n_views,
        "objects": base.n_images,
        "rejected": base.rejected,
        "failures": base.failures,
        "trials": [
            (one.caption, one.failures, one.n_images, one.n_views, one.is_proven)
            for one in result.trials
        ],
        "notes": result.notes,
    }


def asked_generate(project: Project, chosen: PhotographSet, to: Path) -> dict[str, object]:
    """Return how many images of the rare look passed, of how many objects."""
    folder = to / "generated"
    facts = project.generate(
        folder,
        GenerateRequest(class_name=chosen.class_name, captions=chosen.captions[:1], n_each=N_EACH),
    )
    kept = [one for one in read_generated(folder) if one.is_kept][: 3 * 8]
    images = [Image.open(folder / one.file) for one in kept]
    rows = [images[start : start + 8] for start in range(0, len(images), 8)]
    labelled_grid(rows, row_names=[""] * len(rows), column_names=[""] * 8, cell_side=110).save(
        to / "generate.png"
    )
    return {"usable": facts.kept, "objects": facts.parents, "rejected": facts.rejected}


def asked_refine(project: Project, chosen: PhotographSet, to: Path) -> dict[str, object]:
    """Return the figures of every arm."""
    del chosen
    refined = refine_project(project, RefineRequest(arms=(RANDOM, PLAIN)))
    write_refinement(refined, to / "refine")
    return {
        "headline": headline(refined.refinement),
        "notes": refined.refinement.notes,
        "arms": {
            arm.arm: {
                "images": arm.n_images,
                "weight": arm.debug_weight,
                "share": arm.share,
                "prompts": [(one.prompt, one.n_kept, one.n_asked) for one in arm.prompts],
                **{
                    field: [getattr(arm, field).count, getattr(arm, field).total]
                    for field in ("clean", "failure", "seed", "held_out")
                },
            }
            for arm in refined.refinement.arms
        },
    }


COMMANDS = MappingProxyType(
    {
        "generate": asked_generate,
        "counterfactual": asked_counterfactual,
        "search": asked_search,
        "refine": asked_refine,
    }
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(SETS), required=True)
    parser.add_argument("--only", choices=sorted(COMMANDS), nargs="*", default=list(COMMANDS))
    asked = parser.parse_args()
    folder = asked.work / asked.set
    folder.mkdir(parents=True, exist_ok=True)
    project = make_project(asked.set, folder, asked.work)
    slices = [
        (found.title, evidence.rate_inside, evidence.n_inside)
        for found, evidence in project.run_record().published()
    ]
    print(json.dumps({"set": asked.set, "confirmed": slices}), flush=True)
    to = folder / "sheets"
    to.mkdir(exist_ok=True)
    for name in asked.only:
        try:
            said = COMMANDS[name](project, SETS[asked.set], to)
        except WeakspotError as error:
            said = {"refused": f"{error.what} {error.fix or ''}"}
        (to / f"{name}.json").write_text(json.dumps(said, indent=1, default=str))
        print(json.dumps({name: said}, default=str), flush=True)


if __name__ == "__main__":
    main()
