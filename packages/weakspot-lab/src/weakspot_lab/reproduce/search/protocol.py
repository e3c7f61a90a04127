"""The protocol of the Search paper, on the stand-in and on the paper's own data with the user's model and generator."""

from functools import partial

from weakspot.core.errors import ConfigError
from weakspot.generate.search.finding import ClassSearch
from weakspot.generate.search.series import CaptionTrial
from weakspot.generate.search_run import SearchRequest
from weakspot_lab.reproduce.expected_files import DataSet
from weakspot_lab.reproduce.given_models import given_generator, model_projects
from weakspot_lab.reproduce.labelled_files import CIFAR_10, IMAGENET
from weakspot_lab.reproduce.protocol import Context, Paper, Step, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.search.measuring import (
    measure_clusters,
    measure_pairs,
    measure_transfer,
)
from weakspot_lab.reproduce.search.outcome import OUTCOME

SETS = (IMAGENET, CIFAR_10)
PAIRS = (
    ("Persian cat", "snow leopard"),
    ("fly", "bee"),
    ("crayfish", "chainlink fence"),
    ("cat", "frog"),
    ("bird", "airplane"),
    ("horse", "deer"),
)
"""The paper's pairs of true and target label, and three for CIFAR-10."""
UNTIL = 20
SECONDS_A_PAIR = 3600.0


def given_steps(request: ReproduceRequest, found: DataSet) -> tuple[Step, ...]:
    """Return the steps: every pair of labels with the first model."""
    del request
    return (
        Step(name="pairs", seconds=3 * SECONDS_A_PAIR, work=partial(measure_given, found=found)),
    )


def measure_given(context: Context, found: DataSet) -> StepResult:
    """Search the paper's pairs that the model knows.

    Raises:
        ConfigError: if it knows none of them.
    """
    project = model_projects(context.request, found)[0]
    names = project.store.dataset().class_names
    pairs = [pair for pair in PAIRS if set(pair) <= set(names)]
    if not pairs:
        raise ConfigError(
            "The data has none of the pairs of labels that the paper searches.",
            given=list(names)[:5],
            fix=f"It needs one of {PAIRS}.",
        )
    generator = given_generator(context.request)
    calls = [
        SearchRequest(class_name=name, target=target, until_target_failures=UNTIL)
        for name, target in pairs
    ]
    made = [project.search(call, generator=generator).record.result for call in calls]
    return {"rows": [_row(one) for one in made]}


def _row(result: ClassSearch) -> StepResult:
    row: StepResult = {
        "class": result.class_name,
        "target": str(result.target),
        "n_images": result.n_images,
        "captions": [one.trial.caption for one in result.findings],
        "is_planted": [],
    }
    if result.findings:
        best = result.findings[0].trial
        row |= {
            "caption": best.caption,
            "first reference": _counts(result.baseline),
            "first found": _counts(best),
            "labels": {
                "reference": dict(result.baseline.wrong_labels),
                "found": dict(best.wrong_labels),
            },
        }
    return row


def _counts(trial: CaptionTrial) -> StepResult:
    return {
        "n_images": trial.n_images,
        "failures": trial.all_failures,
        "target": trial.target_failures,
    }


STAND_IN = (
    "For ImageNet: rendered scenes of eight classes, which in training mostly come on backgrounds of their own; for ResNet-50 and "
    "ViT: small networks trained on their pixels; for the text-to-image model: the renderer, which draws as training scenes "
    "show it whatever a caption leaves open; for the second one: a softer renderer with other tones; for the captioner: one "
    "that tells the factors of a scene."
)
STEPS: tuple[Step, ...] = (
    Step(name="pairs", seconds=60, work=measure_pairs),
    Step(name="clusters", seconds=80, work=measure_clusters),
    Step(name="transfer", seconds=60, work=measure_transfer),
)
PROTOCOL = Paper(
    key="search",
    name="Search",
    sets=SETS,
    stand_in_words=STAND_IN,
    stand_in_steps=lambda _request: STEPS,
    given_words=lambda _request, _found: (
        "the first of the models and the generator that is configured"
    ),
    given_steps=given_steps,
    outcome=OUTCOME,
)
