"""The truth of planted slices, and of the demo, typed in many ways: what is each answered, and how often do words fit where nothing is planted?

    python -m names.phrasing --work DIR            # from benchmarks/

Every phrase is put to samples that were asked nothing before. For the nulls predictions are shuffled within the class, ten times each.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from names.parts import PARTS
from names.worlds import make_world
from weakspot.core.samples import SampleSet
from weakspot.project.demo import is_finished_demo, run_demo
from weakspot.project.project import Project
from weakspot.run.phrase_questions import Fit, PhraseAnswer, ask
from weakspot.run.preparation import Prepared
from weakspot.store.project import ProjectStore

N_NULLS = 10
PART = "tuning"
PARAPHRASES: dict[str, tuple[str, ...]] = {
    "demo": ("green apples", "green", "a green apple", "apples that are green", "Granny Smith apples", "Granny Smith", "unripe green apples"),
    "apple green": ("green apples", "green", "a green apple", "apples that are green", "Granny Smith apples", "the apple is green",
                    "a photo of green apples"),
    "truck red": ("red trucks", "red", "a red truck", "trucks that are red", "the truck is red", "a truck painted red", "a photo of a red lorry"),
    "apple writing": ("apples with text on them", "with text on it", "apples with writing", "a photo with words on it", "text in the image",
                      "with a watermark", "letters on the picture"),
    "dog dark": ("dark photos of dogs", "dark", "a dog in the dark", "dogs at night", "an underexposed photo", "the picture is very dark",
                 "dogs in poor light"),
    "animal on grass": ("animals on the grass", "on the grass", "grass", "an animal on a lawn", "animals in a meadow", "on a green meadow",
                        "a grassy background"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Samples of a world and the class that phrases are put to."""

    project: Project
    prepared: Prepared
    class_name: str

    @classmethod
    def of(cls, project: Project, class_name: str) -> "Asked":
        return cls(project=project, prepared=project.prepared(), class_name=class_name)

    def answer(self, phrase: str, samples: SampleSet | None = None) -> PhraseAnswer:
        """Put one phrase to samples that were asked nothing before."""
        prepared = self.prepared if samples is None else replace(self.prepared, samples=samples)
        with TemporaryDirectory() as folder:
            report = ask(
                prepared,
                self.project.settings,
                self.project.criterion,
                ProjectStore.create(Path(folder) / "asked"),
                class_name=self.class_name,
                phrases=[phrase],
            )
        return report.answers[0]

    def shuffled(self, seed: int) -> SampleSet:
        """Return the samples with the predictions of the class in another order."""
        samples, dataset = self.prepared.samples, self.prepared.samples.dataset
        halves = self.prepared.halves(self.project.settings, self.project.criterion)[0]
        asked = np.concatenate([one.rows for one in halves])
        rows = asked[dataset.labels[asked] == dataset.class_code(self.class_name)]
        predictions = np.array(dataset.predictions)
        predictions[rows] = predictions[np.random.default_rng(seed).permutation(rows)]
        return replace(samples, dataset=dataset.with_predictions(predictions=predictions))


def worlds(work: Path) -> Iterator[tuple[str, Asked]]:
    """Yield the demo and the planted worlds."""
    folder = work / "phrasing-demo"
    if not is_finished_demo(folder):
        run_demo(folder)
    yield "demo", Asked.of(Project.open(folder), "apple")
    part = PARTS[PART]
    for planted in part.slices:
        if planted.key in PARAPHRASES:
            own = work / "worlds" / f"{planted.key.replace(' ', '-')}-{part.seed}"
            table = make_world(planted, part, own, work, seed=part.seed)
            project = Project.create(own / "phrasing", data=str(table), overwrite=True)
            project.ingest()
            yield planted.key, Asked.of(project, planted.class_name)


def main(given: Sequence[str] | None = None) -> None:
    """Read arguments, ask, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for photographs and projects"
    )
    parser.add_argument("--nulls", type=int, default=N_NULLS, help="shuffles of every world")
    options = parser.parse_args(given)
    told: Counter[str] = Counter()
    nulls: Counter[str] = Counter()
    print("| slice | phrase | answer | p |\n|---|---|---|---|")
    for key, world in worlds(options.work):
        for phrase in PARAPHRASES[key]:
            answer = world.answer(phrase)
            told[answer.fit] += 1
            print(f"| {key} | {phrase} | {answer.fit.value} | {answer.p_value:.2g} |", flush=True)
        for seed in range(options.nulls):
            samples = world.shuffled(seed)
            for phrase in PARAPHRASES[key]:
                nulls[world.answer(phrase, samples).fit] += 1
    n_fit = nulls[Fit.GOOD] + nulls[Fit.SEPARATES_ONLY]
    print(f"\nTruths: {dict(told)}. Nulls: {dict(nulls)}, {n_fit} of {nulls.total()} fit.")


if __name__ == "__main__":
    main()
