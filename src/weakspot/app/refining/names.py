"""Which values of an attribute the seed failures of every class show, counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from weakspot.app.refining.records import NamedFailures
from weakspot.app.refining.request import RefineRequest
from weakspot.app.repair_bench import RepairBench
from weakspot.core.failures import Side
from weakspot.core.slices import FailureSlice
from weakspot.discover.uncommon_attributes import UncommonAttributesDiscoverer

EVERY = 10_000


@dataclass(frozen=True, kw_only=True)
class SeedNames:
    """What the seed failures of one model show.

    Args:
        names: every value that at least one of them shows, commonest first within class and kind.
        notes: why nothing is said of a class.
    """

    names: tuple[NamedFailures, ...]
    notes: tuple[str, ...]


def seed_names(bench: RepairBench, request: RefineRequest) -> SeedNames:
    """Propose values for every class, and put each failure of the discovery half to the nearest caption.

    Values come from the language model of the project, or from the built-in list. A failure that is nearer to the plain caption
    of its class shows none of them. Nothing but the discovery half is looked at.
    """
    discoverer = UncommonAttributesDiscoverer(
        axes=request.kinds, n_values=request.n_values, top_k=EVERY, held_out_share=0.0, min_seeds=1, min_failures=1
    )
    seeds = bench.pairs[0][0]
    found = discoverer.discover(seeds, bench.criterion, seed=bench.settings.seed, assistants=bench.prepared.assistants)
    names = [_named(one) for one in found.slices if one.side is not Side.ABSENT]
    notes = [f"{note.class_name}: {note.note}" for note in found.notes]
    return SeedNames(names=tuple(pooled_names([names])), notes=tuple(dict.fromkeys(notes)))


def pooled_names(models: Iterable[Sequence[NamedFailures]]) -> list[NamedFailures]:
    """Return the values of several models with their failures added up, commonest first within class and kind."""
    total: dict[tuple[str, str, str], NamedFailures] = {}
    for names in models:
        for one in names:
            key = (one.class_name, one.kind, one.value)
            known = total.get(key)
            n_failures, n_seed = (known.n_failures, known.n_seed) if known else (0, 0)
            total[key] = one.model_copy(update={"n_failures": n_failures + one.n_failures, "n_seed": n_seed + one.n_seed})
    return sorted(total.values(), key=lambda one: (one.class_name, one.kind, -one.n_failures, one.value))


def by_class_and_kind(names: Sequence[NamedFailures]) -> list[tuple[NamedFailures, ...]]:
    """Return the values of every class and kind, commonest first; names must be in the order of `pooled_names`."""
    return [tuple(own) for _, own in groupby(names, key=lambda one: (one.class_name, one.kind))]


def _named(found: FailureSlice) -> NamedFailures:
    parameters = found.parameters
    return NamedFailures(
        class_name=found.class_name,
        kind=str(parameters["axis"]),
        value=str(parameters["value"]),
        phrase=found.names[0].phrase,
        n_failures=int(str(parameters["n_seed_shown"])),
        n_seed=int(str(parameters["n_seed"])),
    )
