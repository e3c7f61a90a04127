"""The same question to the exact embedder of `weakspot.testing`, whose words are what they say: how often is the title right?

python -m names.exact            # from benchmarks/; seeds 500 on took no part in choosing anything
python -m names.exact --seed 800 # others
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from names.judging import Answer, is_right
from names.table import summary_of, table_of
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import METADATA_PREFIX, Split
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.run import loop
from weakspot.run.naming import describe_slices
from weakspot.run.settings import DiscoverSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import PlantedProblem, PlantedWorld, plant
from weakspot.testing.scenes import FACTORS

N_SAMPLES, FIRST_SEED = 1200, 500
MIN_AGREEMENT = 0.5
ASKED = {
    "colour": FACTORS["colour"],
    "background": tuple(value for value in FACTORS["background"] if value != "plain"),
    "lighting": ("bright", "dark"),
    "size": ("small", "large"),
}
ALSO_RIGHT = {
    "dotted": ("spotted",),
    "grassy": ("grass",),
    "dark": ("night",),
    "bright": ("sunlight",),
}
SETTINGS = Settings(
    discover=DiscoverSettings(methods=("directions",)),
    verify=VerifySettings(splits=("validation", "test")),
)


def problems() -> Iterator[PlantedProblem]:
    """Yield every value that can be rare in training."""
    for factor, values in ASKED.items():
        for value in values:
            usual = next(one for one in FACTORS[factor] if one != value)
            yield PlantedProblem(
                kind="rare", strength=0.02, factor=factor, value=value, usual_value=usual
            )


def answer_of(problem: PlantedProblem, seed: int) -> Answer:
    """Run the loop on a planted world without its columns, which would tell the words."""
    embedder, criterion = PlantedEmbedder(), FailureCriterion()
    world = plant(problem, N_SAMPLES, seed=seed)
    samples = _without_columns(world)
    assistants = Assistants(embed_texts=embedder.embed_texts, measured=embedder.measured)
    record = new_record(SETTINGS, inputs={}, criterion="wrong")
    record = loop.discover_slices(record, samples, SETTINGS, criterion, assistants)
    record = describe_slices(record, samples, SETTINGS, criterion, assistants)
    record = loop.verify_slices(record, samples, SETTINGS, criterion)
    truth = world.true_slice(problem.class_name).inside
    confirmed = [
        found
        for found, entry in zip(record.slices, record.evidence, strict=True)
        if entry.verdict is Verdict.CONFIRMED and found.class_name == problem.class_name
    ]
    best, agreement = None, 0.0
    for found in confirmed:
        rows = found.class_rows(samples)
        inside, wanted = found.rule.members(samples, rows), truth[rows]
        value = 2 * int((inside & wanted).sum()) / max(1, int(inside.sum() + wanted.sum()))
        best, agreement = (found, value) if value > agreement else (best, agreement)
    key, kind = f"{problem.class_name} {problem.value}", problem.factor
    if best is None or agreement < MIN_AGREEMENT:
        return Answer(
            key=key, kind_of_word=kind, verdict="not found", agreement=round(agreement, 2)
        )
    right = (problem.value, *ALSO_RIGHT.get(problem.value, ()))
    words = tuple(name.contrast for name in best.names)
    said = best.name or (best.names[0] if best.names else None)
    is_good = said is not None and is_right(said.contrast.replace(" background", ""), right)
    verdict = (
        ("right" if is_good else "wrong")
        if best.name
        else f"unsure ({'right' if is_good else 'wrong'})"
    )
    return Answer(
        key=key,
        kind_of_word=kind,
        verdict=verdict,
        title=best.title,
        words=words,
        agreement=round(agreement, 2),
    )


def _without_columns(world: PlantedWorld) -> SampleSet:
    samples, dataset = world.samples(Split.TRAIN, Split.VALIDATION, Split.TEST), world.dataset
    table = dataset.table.drop_columns([METADATA_PREFIX + name for name in dataset.metadata_names])
    return replace(samples, dataset=replace(dataset, table=table))


def main() -> None:
    """Read arguments, ask, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first world")
    first = parser.parse_args().seed
    answers = [answer_of(problem, first + number) for number, problem in enumerate(problems())]
    print(table_of(answers) + "\n" + summary_of(answers))


if __name__ == "__main__":
    main()
