"""Running every method on every problem of the benchmark, and writing table, plots and scores."""

import json
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Verdict
from weakspot.core.roles import Discoverer, Discovery
from weakspot.core.run import Progress, no_progress
from weakspot.core.slices import FailureSlice
from weakspot.run.settings import DiscoverSettings, Settings
from weakspot.run.stage_clock import library_versions
from weakspot.run.wiring import build_describer, build_discoverers, build_verifier, buildable
from weakspot.verify.screening import screened
from weakspot.words.wordnet import are_synonyms
from weakspot_lab.bench.pages import BenchJournal, plots, table
from weakspot_lab.bench.problem import BenchProblem, with_attributes
from weakspot_lab.bench.scores import (
    MethodScore,
    TableRow,
    TruthScore,
    count_false,
    table_rows,
    truth_scores,
)

CHANCE = "chance"
MEGABYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """What is run.

    Args:
        methods: registered names of discoverers; empty for all that need no words of a person.
        measure_memory: run discovery of the first world of every kind once more and watch its memory.
        settings: how slices are named, screened and verified.
    """

    methods: tuple[str, ...] = ()
    measure_memory: bool = True
    settings: Settings = field(default_factory=Settings)

    def discoverers(self) -> dict[str, Discoverer]:
        names = self.methods or buildable("discoverers", self.settings.discover.parameters)
        parameters = {
            name: given
            for name, given in self.settings.discover.parameters.items()
            if name in names
        }
        discover = DiscoverSettings(methods=names, parameters=parameters)
        return build_discoverers(self.settings.model_copy(update={"discover": discover}))


def run_bench(
    problems: Iterable[BenchProblem],
    plan: BenchPlan,
    *,
    journal: BenchJournal | None = None,
    progress: Progress = no_progress,
) -> tuple[MethodScore, ...]:
    """Run every method on every problem; one that cannot work on a problem gets a note instead of scores.

    What a journal knows already is not run again.
    """
    scores: list[MethodScore] = []
    seen: set[tuple[str, str]] = set()
    for number, given in enumerate(problems):
        problem = with_attributes(given, plan.settings)
        is_first = (problem.source, problem.kind) not in seen
        seen.add((problem.source, problem.kind))
        for name, part in plan.discoverers().items():
            known = (
                journal.known(name, problem.source, problem.kind, problem.number)
                if journal is not None
                else None
            )
            score = known or _score(
                name, part, problem, plan, watch_memory=is_first and plan.measure_memory
            )
            scores.append(score)
            if journal is not None and known is None:
                journal.add(score)
        scores.append(_chance(problem))
        progress(number + 1, None)
    return tuple(scores)


def _score(
    name: str, part: Discoverer, problem: BenchProblem, plan: BenchPlan, *, watch_memory: bool
) -> MethodScore:
    begun = time.perf_counter()
    blank = MethodScore(
        method=name, source=problem.source, kind=problem.kind, number=problem.number
    )
    try:
        found = _discover(part, problem, plan)
        tested, confirmed = _prove(part, found, problem, plan)
    except (DataError, ModelError, NotEnoughDataError) as error:
        return blank.model_copy(update={"note": str(error), "seconds": time.perf_counter() - begun})
    seconds = time.perf_counter() - begun
    return blank.model_copy(
        update={
            "truths": truth_scores(problem, found.slices, confirmed, are_synonyms),
            "n_considered": max(found.n_considered, len(found.slices)),
            "n_tested": len(tested),
            "n_confirmed": len(confirmed),
            "n_false": count_false(problem, confirmed),
            "seconds": seconds,
            "megabytes": _megabytes(part, problem, plan) if watch_memory else None,
        }
    )


def _discover(part: Discoverer, problem: BenchProblem, plan: BenchPlan) -> Discovery:
    return part.discover(
        problem.discovery, problem.criterion, seed=plan.settings.seed, assistants=problem.assistants
    )


def _prove(
    part: Discoverer, found: Discovery, problem: BenchProblem, plan: BenchPlan
) -> tuple[tuple[FailureSlice, ...], tuple[FailureSlice, ...]]:
    """Return the candidates that were tested and those that were confirmed, best first; baselines are never tested."""
    if part.is_baseline:
        return (), ()
    limits = plan.settings.discover
    kept = screened(
        found.slices,
        problem.discovery,
        problem.criterion,
        largest_p=limits.screen_p,
        most=limits.max_tested,
    ).kept
    named = build_describer(plan.settings).describe(
        kept, problem.discovery, problem.criterion, problem.assistants
    )
    evidence = build_verifier(plan.settings).verify(
        named,
        discovery=problem.discovery,
        confirmation=problem.confirmation,
        criterion=problem.criterion,
    )
    return tuple(named), tuple(
        one
        for one, entry in zip(named, evidence, strict=True)
        if entry.verdict is Verdict.CONFIRMED
    )


def _megabytes(part: Discoverer, problem: BenchProblem, plan: BenchPlan) -> float:
    """Return the largest memory that Python and numpy asked for during one more discovery."""
    tracemalloc.start()
    try:
        _discover(part, problem, plan)
        return tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


def _chance(problem: BenchProblem) -> MethodScore:
    """Return what a random order of the class's samples reaches on average."""
    truths = []
    for truth in problem.truths:
        dataset, rows = problem.samples.dataset, problem.confirmation.rows
        own = rows[dataset.label_matrix[rows, dataset.class_code(truth.class_name)]]
        share = float(np.mean(truth.inside[own])) if len(own) else 0.0
        truths.append(
            TruthScore(
                precision_at_10=share, precision_at_25=share, is_found=False, is_confirmed=False
            )
        )
    return MethodScore(
        method=CHANCE,
        source=problem.source,
        kind=problem.kind,
        number=problem.number,
        truths=tuple(truths),
    )


def write_bench(scores: Sequence[MethodScore], folder: Path, *, command: str) -> tuple[Path, ...]:
    """Write table, plots and scores into a folder; the table comes first."""
    rows = table_rows(scores)
    contents = dict(_contents(scores, rows, command))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The benchmark's results cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in contents)


def _contents(
    scores: Sequence[MethodScore], rows: Sequence[TableRow], command: str
) -> Iterator[tuple[str, str]]:
    charts = plots(rows)
    images = "\n".join(f"![{name.removesuffix('.svg')}]({name})" for name in charts)
    yield "bench.md", f"# Methods compared\n\nMade by `{command}`.\n\n{table(rows)}\n{images}\n"
    record = {
        "command": command,
        "versions": library_versions(),
        "rows": [row.model_dump(mode="json") for row in rows],
        "scores": [score.model_dump(mode="json") for score in scores],
    }
    yield "bench.json", json.dumps(record, indent=1)
    yield from charts.items()
