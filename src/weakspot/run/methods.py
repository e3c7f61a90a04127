"""The methods that look for slices: which, one at work, and the rules that are made without predictions.

Those rules are listed class by class and tested on all evaluation samples at once.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, unjudged_classes
from weakspot.core.roles import Discoverer, Discovery, Verifier
from weakspot.core.run import MethodRecord
from weakspot.core.samples import CAPTION_COLUMN, CLIP, Material, Need, SampleSet, needs_of
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import adjusted_p_values
from weakspot.data.source import SampleSource
from weakspot.data.table_source import PredictionsSource
from weakspot.discover.family_tests import BlindCandidate, BlindDiscoverer
from weakspot.run.halves import withhold
from weakspot.run.settings import DiscoverSettings, Settings, with_methods
from weakspot.run.verdicts import with_predictions
from weakspot.run.wiring import AUTO, automatic_parameters, build_discoverers
from weakspot.verify.blind import BlindTest, judge_blind

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


BLIND_PART = 0.8
"""Part of the error rate for rules made without predictions; the two folds share the rest. Measured in docs/decisions/020-auto.md."""
MAX_TOLD = 200
READS_PREDICTIONS = "features"
DATA_SEED = 0
"""A new seed must not buy a new chance: which rules there are follows from the data."""


Counts = tuple[Counter[str], Counter[str], dict[str, str]]
_FOUND: WeakKeyDictionary[SampleSet, tuple[str, tuple[BlindTest, ...], Counts]] = (
    WeakKeyDictionary()
)
"""What was asked of samples, what was found, and what every method did: a run that finds and verifies has the same samples in hand
both times. Forgotten with them."""


def blind_discoverers(settings: Settings) -> dict[str, BlindDiscoverer]:
    """Return the configured methods that list rules without predictions; none without cross-fitting, which tests on all samples."""
    if settings.verify.scheme != "cross-fit":
        return {}
    return {
        name: part
        for name, part in build_discoverers(settings).items()
        if isinstance(part, BlindDiscoverer)
    }


def parts_of_error_rate(settings: Settings, n_pairs: int) -> tuple[float, ...]:
    """Return the part of the error rate that each pair of halves may use: both folds, and rules made without predictions."""
    if n_pairs == 1:
        return (1.0,)
    if not blind_discoverers(settings):
        return 0.5, 0.5, 1.0
    return (1.0 - BLIND_PART) / 2, (1.0 - BLIND_PART) / 2, BLIND_PART


class BlindSearch:
    """Lists and tests rules; what every method did is told afterwards.

    Args:
        samples: all evaluation samples.
        settings: which methods, and how many rules are told.
        criterion: what counts as a failure.
    """

    def __init__(self, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> None:
        self._samples, self._settings, self._criterion = samples, settings, criterion
        self._parts: Mapping[str, BlindDiscoverer] = blind_discoverers(settings)
        self._considered: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._notes: dict[str, str] = {}

    def run(self) -> tuple[BlindTest, ...]:
        """Return the rules that stand out most; asked again for the same samples, what was found before."""
        if not self._parts or not len(self._samples):
            return ()
        asked = f"{self._settings.model_dump_json()} {self._criterion!r}"
        known = _FOUND.get(self._samples)
        if known is None or known[0] != asked:
            tests, counts = self._run(), (self._considered, self._seconds, self._notes)
            known = _FOUND[self._samples] = asked, tests, counts
        _, tests, (self._considered, self._seconds, self._notes) = known
        return tests

    def _run(self) -> tuple[BlindTest, ...]:
        return judge_blind(
            self._classes(),
            self._samples,
            largest_p=self._settings.discover.screen_p,
            most=min(MAX_TOLD, self._settings.discover.max_tested),
            training=self._training(),
        )

    def _training(self) -> tuple[ClassProblem, ...]:
        """Return the classes among training samples that share no group, and so no image, with any sample that is tested."""
        dataset = self._samples.dataset
        rows = with_predictions(dataset, dataset.rows_of(Split.TRAIN))
        rows = rows[~np.isin(dataset.groups[rows], dataset.groups[self._samples.rows])]
        return class_problems(dataset, rows, self._criterion) if len(rows) else ()

    def recorded(self, told: Sequence[FailureSlice]) -> list[MethodRecord]:
        """Return what the run remembers of the methods that only work so."""
        return [
            MethodRecord(
                method=name,
                seconds=round(self._seconds[name] / 1000, 3),
                n_considered=self._considered[name],
                n_found=sum(found.method == name for found in told),
                n_tested=sum(found.method == name for found in told),
                note=self._notes.get(name, ""),
            )
            for name, part in self._parts.items()
            if part.is_always_blind
        ]

    def _classes(self) -> Iterator[tuple[ClassProblem, list[BlindCandidate]]]:
        blind = _without_predictions(self._samples)
        judged = {
            (problem.class_name, problem.side): problem
            for problem in class_problems(
                self._samples.dataset, self._samples.rows, self._criterion
            )
        }
        for unjudged in unjudged_classes(blind.dataset, blind.rows):
            problem = judged.get((unjudged.class_name, unjudged.side))
            if problem is not None and problem.n_failed and problem.n_right:
                yield problem, self._candidates(blind, unjudged)

    def _candidates(self, blind: SampleSet, problem: ClassProblem) -> list[BlindCandidate]:
        found: list[BlindCandidate] = []
        for name, part in self._parts.items():
            if name in self._notes:
                continue
            begun = time.perf_counter()
            try:
                listed = part.blind_candidates(blind, problem, seed=DATA_SEED)
            except (DataError, ModelError, NotEnoughDataError) as error:
                self._notes[name] = str(error)
                continue
            self._seconds[name] += round(1000 * (time.perf_counter() - begun))
            self._considered[name] += len(listed)
            found += listed
        return found


def _without_predictions(samples: SampleSet) -> SampleSet:
    """Return samples that nothing can be learnt from of what the classifier said; its last layer would tell, too."""
    dataset = replace(
        samples.dataset,
        predictions=None,
        predicted_matrix=None,
        probabilities=None,
        thresholds=None,
    )
    spaces = {name: one for name, one in samples.spaces.items() if name != READS_PREDICTIONS}
    return replace(samples, dataset=dataset, spaces=spaces)


def judge_blind_slices(
    slices: Sequence[FailureSlice],
    measured: Sequence[Evidence],
    tests: Sequence[BlindTest],
    verifier: Verifier,
) -> tuple[Evidence, ...]:
    """Return evidence whose p-values and verdicts allow for every rule that was listed.

    Args:
        slices: made without predictions.
        measured: what the verifier says of each by itself.
        tests: of all rules that are told now.
        verifier: whose error rate and correction hold.
    """
    known = {test.found.slice_id: test for test in tests}
    weights = [test.weight for test in tests]
    adjusted = adjusted_p_values(
        [test.p_value for test in tests],
        correction=getattr(verifier, "correction", "fdr"),
        weights=weights,
    )
    q_values = dict(zip(known, adjusted.tolist(), strict=True))
    mean = sum(weights) / max(len(weights), 1)
    return tuple(
        _judge(
            entry,
            known.get(found.model_copy(update={"fold": 0}).slice_id),
            q_values,
            mean,
            verifier,
        )
        for found, entry in zip(slices, measured, strict=True)
    )


def _judge(
    entry: Evidence,
    test: BlindTest | None,
    q_values: Mapping[str, float],
    mean_weight: float,
    verifier: Verifier,
) -> Evidence:
    if entry.verdict not in (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED):
        return entry
    p_value = 1.0 if test is None else test.p_value
    q_value = 1.0 if test is None else q_values[test.found.slice_id]
    is_wide = entry.gap > 0 and entry.gap >= getattr(verifier, "min_gap", 0.0)
    is_found = q_value <= getattr(verifier, "alpha", 0.0) and is_wide
    return entry.model_copy(
        update={
            "p_value": p_value,
            "q_value": q_value,
            "weight": 1.0 if test is None else test.weight / mean_weight,
            # Both may be too small for a number.
            "n_compared": 1.0 if test is None else max(1.0, test.p_value / max(test.own_p, 1e-300)),
            "n_tested": max(len(q_values), 1),
            "verdict": Verdict.CONFIRMED if is_found else Verdict.NOT_CONFIRMED,
        }
    )
