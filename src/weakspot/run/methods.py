"""Which methods look for slices, said in one line before anything long is read; and one method at work."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weakspot.core.assistants import Assistants
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import Discoverer, Discovery
from weakspot.core.run import MethodRecord
from weakspot.core.samples import CAPTION_COLUMN, CLIP, Material, Need, SampleSet, needs_of
from weakspot.core.slices import FailureSlice
from weakspot.data.source import SampleSource
from weakspot.data.table_source import PredictionsSource
from weakspot.run.halves import withhold
from weakspot.run.settings import DiscoverSettings, Settings, with_methods
from weakspot.run.wiring import AUTO, automatic_parameters, build_discoverers

CHOICE_STAGE = "methods"
"""Stage of a run whose summary says what is used and what would add more."""
CHOSEN_BY_US = frozenset({AUTO, "all"})
MORE = "add columns to the table, or give captions, images or embeddings"


def choose_methods(settings: Settings, material: Material) -> tuple[Settings, str]:
    """Return the settings with those configured methods only that can work with what is there, what they use and what would add more.

    With labels and predictions alone there is nothing to look for slices by; whole classes are compared all the same.

    Raises:
        ConfigError: if methods were named and none can work, with what would.
    """
    methods = build_discoverers(settings)
    missing = {name: material.missing(part) for name, part in methods.items()}
    fitting = {name: part for name, part in methods.items() if not missing[name]}
    if not fitting and _wait_for_columns(settings, material, missing):
        return settings, "No column has values to compare; other samples may have."
    if not fitting and CHOSEN_BY_US & set(settings.discover.methods):
        return _only_classes(settings, material)
    if not fitting:
        raise _nothing_fits(settings, material, missing)
    chosen = settings if len(fitting) == len(methods) else _with_only(settings, tuple(fitting))
    return chosen, _sentence(fitting, missing, material)


def _with_only(settings: Settings, methods: Sequence[str]) -> Settings:
    parameters = automatic_parameters(settings.discover)
    discover = settings.discover.model_copy(update={"parameters": parameters})
    return with_methods(settings.model_copy(update={"discover": discover}), methods)


def _only_classes(settings: Settings, material: Material) -> tuple[Settings, str]:
    nothing = settings.discover.model_copy(update={"methods": (), "parameters": {}})
    return (
        settings.model_copy(update={"discover": nothing}),
        f"There is nothing to look for slices by: {_what_is_there(material)}. Only whole classes are compared; "
        f"to look for slices, {MORE}.",
    )


def _wait_for_columns(
    settings: Settings, material: Material, missing: Mapping[str, tuple[Need, ...]]
) -> bool:
    """Return whether somebody named methods whose columns are there, without anything to compare so far."""
    is_named = not CHOSEN_BY_US & set(settings.discover.methods)
    lacks_only_columns = all(needs == (Need.COLUMNS,) for needs in missing.values())
    return is_named and material.has_idle_columns and lacks_only_columns


def fitting_settings(settings: Settings, samples: SampleSet) -> Settings:
    """Return the settings with the methods that can work on these samples; unchanged where none of the configured ones can."""
    try:
        seen = withhold(samples, settings.repair.groups)
        return choose_methods(settings, Material.of(seen))[0]
    except ConfigError:
        return settings


def check_methods(settings: Settings, source: SampleSource, *, has_own_embedder: bool) -> None:
    """Refuse methods that cannot work with a table without images; only its header is read.

    Raises:
        ConfigError: if none of the configured methods can work.
    """
    if not isinstance(source, PredictionsSource):
        return
    columns = source.roles.metadata
    material = Material(
        n_columns=len(columns),
        has_captions=CAPTION_COLUMN in columns,
        spaces=frozenset({CLIP}) if has_own_embedder else frozenset(),
    )
    choose_methods(settings, material)


def _sentence(
    fitting: Mapping[str, Discoverer],
    missing: Mapping[str, tuple[Need, ...]],
    material: Material,
) -> str:
    used = [need for need in Need if any(need in needs_of(part) for part in fitting.values())]
    uses = f"Uses {_listed(material.words(used)) or 'labels and predictions'}"
    lacking = _by_need(missing)
    if not lacking:
        return f"{uses}."
    said = [
        f"no {_absent(needs, material)}: {_listed(names)} {'needs' if len(names) == 1 else 'need'} them"
        for needs, names in lacking.items()
    ]
    return f"{uses}; {'; '.join(said)}."


def _by_need(missing: Mapping[str, tuple[Need, ...]]) -> dict[tuple[Need, ...], list[str]]:
    found: dict[tuple[Need, ...], list[str]] = {}
    for name, needs in missing.items():
        if needs:
            found.setdefault(needs, []).append(name)
    return found


def _absent(needs: Sequence[Need], material: Material) -> str:
    """Return what is missing; embeddings are made from images, so these are named too where there are none."""
    by_images = Need.EMBEDDINGS in needs and not material.has_images
    return " or ".join([*(["images"] if by_images else []), *(need.value for need in needs)])


def _nothing_fits(
    settings: Settings, material: Material, missing: Mapping[str, tuple[Need, ...]]
) -> ConfigError:
    lacking = "; ".join(
        f"{_listed(names)} {'needs' if len(names) == 1 else 'need'} {_listed([need.value for need in needs])}"
        for needs, names in _by_need(missing).items()
    )
    others = _would_work(settings, material)
    fix = (
        f'Use what works with them: --method {others[0]}, or methods = ["{AUTO}"] in weakspot.toml.'
        if others
        else f"To look for slices, {MORE}."
    )
    return ConfigError(
        f"No configured method can work with what is there ({_what_is_there(material)}): {lacking}.",
        where="[discover] methods",
        given=list(settings.discover.methods),
        fix=fix,
    )


def _would_work(settings: Settings, material: Material) -> list[str]:
    """Return the methods of `auto` that could work here."""
    automatic = settings.model_copy(update={"discover": DiscoverSettings(methods=(AUTO,))})
    return [
        name for name, part in build_discoverers(automatic).items() if not material.missing(part)
    ]


def _what_is_there(material: Material) -> str:
    present = material.words([need for need in Need if material.has(need)])
    absent = [need.value for need in Need if not material.has(need)]
    if not present:
        return f"no {_listed(absent, last='or')} beside labels and predictions"
    return (
        f"{_listed(present)}, but no {_listed(absent, last='or')}" if absent else _listed(present)
    )


def _listed(words: Sequence[str], *, last: str = "and") -> str:
    return f" {last} ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


MethodRun = tuple[MethodRecord, Discovery]
"""What the run remembers of a method, as long as nothing was tested, and what it found."""


def run_method(
    name: str,
    part: Discoverer,
    samples: SampleSet,
    criterion: FailureCriterion,
    settings: Settings,
    assistants: Assistants,
    *,
    alone: bool,
) -> MethodRun:
    """Run one method; where several are asked for, one that cannot work here becomes a note."""
    begun, note = time.perf_counter(), ""
    try:
        found = part.discover(samples, criterion, seed=settings.seed, assistants=assistants)
    except (DataError, ModelError, NotEnoughDataError) as error:
        if alone:
            raise
        found, note = Discovery(slices=()), str(error)
    found = replace(found, slices=()) if part.is_baseline else found
    n_found = len({one.slice_id for one in found.slices})
    record = MethodRecord(
        method=name,
        seconds=round(time.perf_counter() - begun, 3),
        n_considered=max(found.n_considered, n_found),
        n_found=n_found,
        note=note,
    )
    return record, found


def with_tested(run: MethodRun, tested: Sequence[FailureSlice]) -> MethodRecord:
    """Return what the run remembers of a method once the screen has chosen what is tested."""
    record, discovery = run
    own = {one.slice_id for one in discovery.slices}
    return record.model_copy(update={"n_tested": sum(one.slice_id in own for one in tested)})


def word_methods(methods: Iterable[tuple[str, Discoverer]]) -> frozenset[str]:
    """Return the methods whose slices are words for what others find; a method that works alone has nothing to explain."""
    every = dict(methods)
    words = {name for name, part in every.items() if getattr(part, "is_explaining", False)}
    return frozenset(words if len(every) > 1 else ())
