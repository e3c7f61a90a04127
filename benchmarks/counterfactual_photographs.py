"""Counterfactual series on real photographs with Compose and the embedded default: does a background alone change the answer?

    python benchmarks/counterfactual_photographs.py --to FOLDER

The first run fetches and embeds 1,393 photographs of groceries and 2,480 CIFAR-10 images (20 minutes on two cores). The
classifier is a linear layer on the embedder's own embeddings, trained on one half; images are composed from the other half, and
for CIFAR-10 from more airplanes and ships that nothing is trained on.
"""

import argparse
import csv
import shutil
import zlib
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from weakspot.core.dataset import Split
from weakspot.data.settings import DataSettings
from weakspot.generate.counterfactuals import CounterfactualRequest, sentence, write_counterfactuals
from weakspot.models.sklearn.classifier import SklearnClassifier
from weakspot.project.project import Project
from weakspot.run.settings import (
    GeneratorSettings,
    Settings,
)
from weakspot_lab.bench.photographs import (
    PER_KIND,
    bench_folder,
    cifar_photographs,
    photograph_problems,
)

CONTROL = "on its own background"
PLACES = (CONTROL, "in the sky", "on the water", "on the grass", "in the snow")
SHOP = (
    CONTROL,
    "on a plate",
    "in a garden",
    "on a white background",
    "red",
    "dark",
    "blurred",
    "small",
    "partly hidden",
)
N_FURTHER = 440
SERIES = {"groceries": {"melon": SHOP}, "cifar10": {"airplane": PLACES, "ship": PLACES}}


def further_cifar(folder: Path) -> list[tuple[str, str, str]]:
    """Write airplanes and ships that the benchmark's own set lacks, and return their rows."""
    rows = []
    numbers = dict.fromkeys(SERIES["cifar10"], 0)
    (folder / "further").mkdir(parents=True, exist_ok=True)
    for _, kind, data in cifar_photographs(per_kind=PER_KIND + N_FURTHER):
        if kind in numbers:
            numbers[kind] += 1
            if numbers[kind] > PER_KIND:
                path = f"further/{kind}-{numbers[kind]:05d}.png"
                (folder / path).write_bytes(data)
                rows.append((path, kind, "validation"))
    return rows


def manifest_of(name: str, folder: Path) -> Path:
    """Write the samples of a photograph set as train and validation halves; CIFAR-10 images have their ten classes here."""
    source = bench_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    with (source / "manifest.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("path", "label", "split"))
        for row in rows:
            split = "train" if zlib.crc32(row["path"].encode()) % 2 else "validation"
            writer.writerow(
                (f"../{name}/{row['path']}", row["kind" if name == "cifar10" else "label"], split)
            )
        writer.writerows(further_cifar(folder) if name == "cifar10" else [])
    if not (folder / ".weakspot" / "embeddings").exists():
        shutil.copytree(source / ".weakspot" / "embeddings", folder / ".weakspot" / "embeddings")
    return folder / "manifest.csv"


def trained(folder: Path, settings: Settings) -> SklearnClassifier:
    """Return a linear classifier on the embeddings of the training half."""
    blind = Project(folder, settings, classifier=SklearnClassifier(model=constant(folder)))
    blind.ingest()
    samples = blind.samples()
    rows = samples.dataset.rows_of(Split.TRAIN)
    names = np.array(samples.dataset.class_names)
    model = LogisticRegression(C=10.0, max_iter=2000).fit(
        samples.embeddings("clip", rows), names[samples.dataset.labels[rows]]
    )
    return SklearnClassifier(model=model)


def constant(folder: Path) -> LogisticRegression:
    """Return a classifier that knows only the classes, to have samples prepared with."""
    with (folder / "manifest.csv").open(newline="") as stream:
        names = sorted({row["label"] for row in csv.DictReader(stream)})
    return LogisticRegression(max_iter=1).fit(np.eye(len(names), 512), names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--only", choices=sorted(SERIES), default=None)
    asked = parser.parse_args()
    for name, classes in SERIES.items():
        if asked.only not in (None, name):
            continue
        next(iter(photograph_problems(name)))
        folder = bench_folder() / f"{name}-what-if"
        settings = Settings(
            data=DataSettings(source=manifest_of(name, folder).name),
            generator=GeneratorSettings(off_class_margin=0.0),
        )
        Project.create(folder, settings=settings, overwrite=True)
        project = Project(folder, settings, classifier=trained(folder, settings))
        for class_name, captions in classes.items():
            result = project.counterfactual(
                CounterfactualRequest(class_name=class_name, captions=captions, n_each=asked.number)
            )
            write_counterfactuals(result, asked.to / f"{name}-{class_name}")
            share = result.series.baseline.share
            print(f"{name} {class_name}: unchanged {share.count} of {share.total} fail")
            for rate in result.series.rates:
                print(f"  {sentence(rate)}")


if __name__ == "__main__":
    main()
