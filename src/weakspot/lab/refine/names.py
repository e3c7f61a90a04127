"""Which values of an attribute the seed failures of every class show, counted."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import JsonValue

from weakspot.core.failures import Side, class_problems
from weakspot.core.roles import Discoverer
from weakspot.core.slices import FailureSlice
from weakspot.lab.refine.records import NamedFailures
from weakspot.lab.refine.request import ChecksValues, Images, Prompt, RefineRequest
from weakspot.lab.refine.subjects import Subject
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.uncommon_vocabulary import uncommon_axes
from weakspot.pipeline.wiring import build_part

EVERY = 10_000
LOOKED_AT, SHOWN = ("n_seed", "n_right"), ("n_failures", "n_right_shown")


@dataclass(frozen=True, kw_only=True)
class SeedNames:
    """What the seed failures of one model show.

    Args:
        names: every value that at least one of them shows, within class and kind those first that set failures apart.
        notes: why nothing is said of a class.
    """

    names: tuple[NamedFailures, ...]
    notes: tuple[str, ...]


def seed_names(subject: Subject, request: RefineRequest, images: Images | None = None) -> SeedNames:
    """Propose values for every class, and put each failure of the discovery half to the nearest caption.

    Values come from the language model of the project, or from the built-in list; of the latter only those that the generator says
    it can draw, so that a failure is never put to a value that nothing can be trained on. A failure that is nearer to the plain
    caption of its class shows none of them. Nothing but the discovery half is looked at.
    """
    options: dict[str, JsonValue] = {
        "axes": [*request.kinds],
        "n_values": request.n_values,
        "top_k": EVERY,
        "held_out_share": 0.0,
        "min_seeds": 1,
        "min_failures": 1,
    }
    assistants = subject.bench.prepared.assistants
    if images is not None and assistants.propose is None:
        options["values"] = [
            [kind, [*values]]
            for kind in request.kinds
            if (values := _drawable(kind, subject, images))
        ]
    discoverer: Discoverer = build_part(
        "discoverers", "uncommon-attributes", options, where="refine"
    )
    bench = subject.bench
    found = discoverer.discover(
        subject.seed, bench.criterion, seed=bench.settings.seed, assistants=assistants
    )
    n_right = {
        problem.class_name: problem.n_right
        for problem in class_problems(subject.dataset, subject.seed.rows, bench.criterion)
        if problem.side is not Side.ABSENT
    }
    names = [
        _named(one, n_right[one.class_name]) for one in found.slices if one.side is not Side.ABSENT
    ]
    notes = [f"{note.class_name}: {note.note}" for note in found.notes]
    return SeedNames(names=tuple(pooled_names([names])), notes=tuple(dict.fromkeys(notes)))


def _drawable(kind: str, subject: Subject, images: Images) -> tuple[str, ...]:
    """Return the built-in values of a kind that the generator can draw of some class; none if it cannot say without drawing."""
    if not isinstance(images, ChecksValues):
        return ()
    axis = uncommon_axes()[kind]
    found: dict[str, None] = {}
    for name in subject.dataset.class_names:
        prompts = {
            value: Prompt(name, axis.caption(noun_of(name), value).phrase)
            for value in axis.values_for(name, most=EVERY)
        }
        refused = images.cannot_draw(list(prompts.values()))
        found |= dict.fromkeys(value for value, one in prompts.items() if one not in refused)
    return tuple(found)


def pooled_names(models: Iterable[Sequence[NamedFailures]]) -> list[NamedFailures]:
    """Return the values of several models with their failures added up.

    Within class and kind those come first that most failures show beyond what right samples of the class would lead one to
    expect: a value that all samples of the class show explains nothing. What was looked at is added up over all models, also over
    those none of whose failures shows the value.
    """
    given = list(models)
    looked_at: Counter[tuple[str, str, str]] = Counter()
    for names in given:
        for own in by_class_and_kind(names):
            for count in LOOKED_AT:
                looked_at[(own[0].class_name, own[0].kind, count)] += getattr(own[0], count)
    total: dict[tuple[str, str, str], NamedFailures] = {}
    for one in chain.from_iterable(given):
        key = (one.class_name, one.kind, one.value)
        shown = (
            {count: getattr(total[key], count) + getattr(one, count) for count in SHOWN}
            if key in total
            else {}
        )
        every = {count: looked_at[(one.class_name, one.kind, count)] for count in LOOKED_AT}
        total[key] = one.model_copy(update=shown | every)
    return sorted(
        total.values(), key=lambda one: (one.class_name, one.kind, -one.excess, one.value)
    )


def by_class_and_kind(names: Sequence[NamedFailures]) -> list[tuple[NamedFailures, ...]]:
    """Return the values of every class and kind; best first if names are in the order of `pooled_names`."""
    found: dict[tuple[str, str], list[NamedFailures]] = {}
    for one in names:
        found.setdefault((one.class_name, one.kind), []).append(one)
    return [tuple(own) for own in found.values()]


def _named(found: FailureSlice, n_right: int) -> NamedFailures:
    parameters, n_failures = found.parameters, int(str(found.parameters["n_seed_shown"]))
    return NamedFailures(
        class_name=found.class_name,
        kind=str(parameters["axis"]),
        value=str(parameters["value"]),
        phrase=found.names[0].phrase,
        n_failures=n_failures,
        n_seed=int(str(parameters["n_seed"])),
        n_right=n_right,
        n_right_shown=found.n_found - n_failures,
    )
