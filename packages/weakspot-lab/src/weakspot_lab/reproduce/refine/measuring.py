"""The steps of the Refine protocol on networks: individual and collective refinement, overlaps, shared values, lambda and k."""

from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from weakspot.core.dataset import Split
from weakspot.core.evidence import Share
from weakspot.project.collective import Family, FamilyMember
from weakspot.project.refine.refinement import (
    HELD_OUT,
    SEED,
    TEST,
    FamilyRefinement,
    refine_family,
    refine_model,
)
from weakspot.project.refine.training import (
    BESIDE,
    PLAIN,
    RANDOM,
    Images,
    Refinement,
    RefineRequest,
    Subject,
)
from weakspot_lab.reproduce.protocol import Context, StepResult
from weakspot_lab.reproduce.refine.families import (
    Factor,
    family_of,
    mixed_family,
    refine_request,
)
from weakspot_lab.small_networks import NetworkShape

COLUMNS = ("clean", "failure", "seed", "held_out", "test_before", "test_after")
LAMBDAS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
KS = (1, 2, 3, 5)
SWEPT: tuple[NetworkShape, ...] = ("plain", "wide")
MAX_VALUES = 3


def measure_family(context: Context, shape: NetworkShape) -> StepResult:
    """Refine every network of a family by itself, and all with one set of images of either type."""
    family = family_of(context, shape)
    arms = context.request.pick(BESIDE, (RANDOM, PLAIN))
    together = Family.of(family.members)
    found: StepResult = {
        "models": [
            refined(one, family.images, refine_request(arms=arms)) for one in family.members
        ],
        "failures": {one.name: failed_rows(one) for one in family.members},
        "overlaps": [list(line) for line in together.overlaps()],
    }
    for kind, source in ((1, None), (2, family.members[-1].name)):
        made, _ = refine_family(together, family.images, refine_request(), source=source)
        found[f"collective {kind}"] = collective(made)
    return found


def measure_colour(context: Context) -> StepResult:
    """Refine networks that learnt classes together with colours."""
    factor: Factor = "colour"
    family = family_of(context, context.request.pick("plain", "coarse"), factor)
    request = refine_request(factor, arms=(RANDOM, PLAIN))
    return {"models": [refined(one, family.images, request) for one in family.members]}


def measure_sweep(context: Context) -> StepResult:
    """Refine the largest networks of two families with many weights and numbers of values."""
    rows: list[JsonValue] = []
    for shape in context.request.pick(SWEPT, ("coarse",)):
        family = family_of(context, shape)
        member = family.members[-1]
        for k in context.request.pick(KS, (1, 3)):
            for weight in context.request.pick(LAMBDAS, (0.1, 0.5)):
                request = refine_request(debug_weight=weight, n_names=k)
                entry = refined(member, family.images, request)
                rows.append({"lambda": weight, "k": k, **entry})
    return {"rows": rows}


def measure_many(context: Context) -> StepResult:
    """Refine 2 to 40 models with one set of images made from the failures of all of them."""
    rows: list[JsonValue] = []
    for number in context.request.pick((2, 5, 10, 20, 40), (2, 4)):
        family, images = mixed_family(context, number)
        made, _ = refine_family(family, images, refine_request())
        rows.append({"n_models": len(family.members), **collective(made)})
    return {"rows": rows}


def refined(member: FamilyMember, images: Images, request: RefineRequest) -> dict[str, JsonValue]:
    """Return what refinement and the arms beside it do to one network."""
    found, _ = refine_model(Subject.of(member), images, request)
    return {"name": member.name, "arms": arm_figures(found), "names": first_names(found)}


def arm_figures(found: Refinement) -> dict[str, JsonValue]:
    return {
        arm.arm: {
            "n_images": arm.n_images,
            **{column: _value(getattr(arm, column)) for column in COLUMNS},
        }
        for arm in found.arms
    }


def first_names(found: Refinement) -> list[JsonValue]:
    """Return the first value of every class, most failures beyond expectation first."""
    first: dict[str, tuple[float, str]] = {}
    for one in found.names:
        first.setdefault(one.class_name, (one.excess, one.value))
    return [[name, value] for name, (_, value) in first.items()]


def collective(made: FamilyRefinement) -> dict[str, JsonValue]:
    """Return what one set of images does to several networks."""
    models: list[JsonValue] = []
    for one in made.models:
        test, seed, held_out = (one.figures[place] for place in (TEST, SEED, HELD_OUT))
        models.append(
            {
                "name": one.name,
                "is_source": one.name == made.source,
                "clean": _value(test.clean_collective),
                "seed": _value(seed.resolved_collective),
                "held_out": _value(held_out.resolved_collective),
                "own_held_out": _value(held_out.resolved_individual),
                "random_held_out": _value(held_out.resolved_random),
                "n_images": one.n_collective,
                "n_own": one.n_own,
            }
        )
    common = made.common
    values: Sequence[JsonValue] = []
    if common is not None:
        values = [[one.value, 100 * one.share.value] for one in common.values[:MAX_VALUES]]
    return {
        "models": models,
        "relative": None if made.relative is None else 100 * made.relative,
        "shared": _value(made.shared),
        "common": None if common is None else _value(common.test),
        "values": list(values),
    }


def failed_rows(member: FamilyMember) -> list[JsonValue]:
    """Return the test scenes that a network gets wrong."""
    dataset = member.dataset
    rows = dataset.rows_of(Split.TEST)
    assert dataset.predictions is not None
    return [int(row) for row in rows[dataset.predictions[rows] != dataset.labels[rows]]]


def _value(share: Share) -> float | None:
    return 100 * share.value if share.total and np.isfinite(share.value) else None
