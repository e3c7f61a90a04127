"""One repair set for a family of classifiers: opened, retrained and measured together, and shown as a page.

The classifiers are those of several projects on (mostly) the same images.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError, StoreError
from weakspot.core.evidence import Share
from weakspot.core.failures import class_problems, describe_criterion
from weakspot.core.heads import Head, TrainingSelection
from weakspot.core.repairs import RepairArm
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.data.charts import heat_map, interval_chart
from weakspot.models.files import head_bytes
from weakspot.project.comparison import failure_iou
from weakspot.project.project import Project
from weakspot.repair.bench import FittedHead, RepairBench
from weakspot.repair.collective import (
    CollectiveRepair,
    FamilyFigures,
    FamilyModel,
    FamilyType,
    RepairSet,
    applied,
    family_figures,
    over_models,
    pooled,
)
from weakspot.repair.controls import random_control
from weakspot.repair.measure import measure_arm
from weakspot.repair.spread import compare, is_measurable
from weakspot.report.document import paragraph, share_cell, small_page, table, text_cell
from weakspot.report.repairs import data_words, p_words
from weakspot.report.wording import CERTAIN, count, interval, p_value, percent
from weakspot.run.preparation import FEATURES
from weakspot.run.reporting import written
from weakspot.store.csv_tables import csv_text

PLAIN = "plain"


OwnRepair = tuple[TrainingSelection, str]
"""What a model's own repair trains on, and why it is retraining alone, with nothing to add to a set; empty if it is a repair."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FamilyMember:
    """One project of a family.

    Args:
        name: of its folder.
        bench: its material, trainer and measurement.
    """

    name: str
    bench: RepairBench

    @classmethod
    def of(cls, project: Project) -> "FamilyMember":
        """Return a project at its newest verified run.

        Raises:
            StoreError: if there is no verified run.
            ModelError: if the last layer of the classifier is not known.
            NotEnoughDataError: if there are no training or test samples.
        """
        name = project_name(project)
        record, prepared = project.repairable(_verified_run(project, name))
        refuse_unrepairable(name, prepared.samples)
        slices = [found for found in record.findings() if not found.rule.reads_predictions]
        return cls(
            name=name,
            bench=RepairBench.of(prepared, project.settings, slices, record.evidence),
        )

    @property
    def samples(self) -> SampleSet:
        return self.bench.samples

    @property
    def dataset(self) -> Dataset:
        return self.bench.samples.dataset

    @cached_property
    def allowed(self) -> IntArray:
        """Return the rows that may be trained on: labelled, with features."""
        material = self.bench.material
        parts = [
            part.rows
            for part in (material.training, material.pool, material.synthetic)
            if part is not None
        ]
        rows = np.unique(np.concatenate(parts))
        return rows[self.dataset.is_labelled[rows]]

    @cached_property
    def used(self) -> set[str]:
        """Return the images that were trained on or may be, or that slices were found or confirmed on."""
        rows = [self.dataset.rows_of(Split.TRAIN, Split.POOL, Split.SYNTHETIC)]
        rows += [half.rows for pair in self.bench.pairs for half in pair]
        return set(self.dataset.content_hashes(np.unique(np.concatenate(rows))))

    def half(self, number: int) -> SampleSet:
        """Return the discovery half (0) or the confirmation half (1), of samples whose features and predictions are known."""
        half = self.bench.pairs[0][number]
        is_known = np.isfinite(np.asarray(self.samples.space(FEATURES).embeddings[half.rows])).all(
            axis=1
        ) & is_measurable(half)
        return half.only(half.rows[is_known])

    def own_repair(self, method: str) -> OwnRepair:
        """Return what the model's own repair trains on; retraining alone, and why, where there is nothing else to do."""
        if not self.bench.slices:
            return self._retrain("No slice of this model was confirmed")
        try:
            selection = self.bench.selection(method)
        except NotEnoughDataError as error:
            return self._retrain(error.what.rstrip("."))
        n_waiting = len(self.bench.unlabelled(selection))
        if n_waiting:
            return self._retrain(
                f"{n_waiting} pool samples that {method} chooses have no label (see `weakspot repair`)"
            )
        return selection, ""

    def _retrain(self, why: str) -> OwnRepair:
        plain = self.bench.selection(PLAIN, {})
        return plain, f"{why}; the model's own repair is retraining alone."


def project_name(project: Project) -> str:
    return project.folder.resolve().name


def _verified_run(project: Project, name: str) -> str:
    runs = project.store.runs
    for run_id in reversed(runs.run_ids()):
        record = runs.load(run_id)
        if record.evidence or any(stage.stage == "verify" for stage in record.stages):
            return run_id
    raise StoreError(
        f"The project {name} has no verified run.",
        where=str(project.folder),
        fix="Run `weakspot run` there first.",
    )


def refuse_unrepairable(name: str, samples: SampleSet) -> None:
    """Refuse a project whose last layer cannot be retrained, or not measured afterwards.

    Raises:
        ModelError: if the last layer of the classifier is not known.
        NotEnoughDataError: if there are no training or test samples.
    """
    if FEATURES not in samples.spaces:
        raise ModelError(
            "The features under the classifier's last layer are not known, so it cannot be retrained here.",
            where=name,
            fix="Give a classifier whose last layer can be read (ONNX, torch, timm, scikit-learn), or embeddings of its features.",
        )
    for split in (Split.TRAIN, Split.TEST):
        if not len(samples.dataset.rows_of(split)):
            raise NotEnoughDataError(
                f"The project {name} has no {split.value} samples.",
                fix="Set [data] fractions or splits.",
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """Projects on (mostly) the same images.

    Args:
        members: two or more, of the same classes.
    """

    members: tuple[FamilyMember, ...]

    @classmethod
    def of(cls, members: Sequence[FamilyMember]) -> "Family":
        """Return the family of several projects.

        Raises:
            DataError: if they have other classes or tasks.
        """
        first = members[0].dataset
        for member in members[1:]:
            if (
                set(member.dataset.class_names) != set(first.class_names)
                or member.dataset.task is not first.task
            ):
                raise DataError(
                    f"The projects {members[0].name} and {member.name} have different classes or tasks.",
                    given=(sorted(first.class_names)[:5], sorted(member.dataset.class_names)[:5]),
                    fix="Set [data] class_names and task alike.",
                )
        return cls(members=tuple(members))

    @cached_property
    def shared_ids(self) -> frozenset[str]:
        """Return the test samples of all models that none of them was trained, chosen or looked at on."""
        used = set[str]().union(*[member.used for member in self.members])
        kept = []
        for member in self.members:
            rows = member.bench.measured.rows
            pairs = zip(
                member.dataset.sample_ids(rows), member.dataset.content_hashes(rows), strict=True
            )
            kept.append({sample_id for sample_id, content in pairs if content not in used})
        shared = frozenset(set.intersection(*kept))
        if not shared:
            raise DataError(
                "The projects share no labelled test sample that none of them was trained, chosen or looked at on.",
                given=[member.name for member in self.members],
                fix="Repair projects together that have the same images in the same splits.",
            )
        return shared

    def measured(self, member: FamilyMember) -> SampleSet:
        return _only(member.bench.measured, lambda sample_id, _: sample_id in self.shared_ids)

    def held_out(self, member: FamilyMember, sources: Sequence[FamilyMember]) -> SampleSet:
        """Return the confirmation samples of a model, without images that slices behind the repair set were found on."""
        looked_at = set[str]()
        for other in sources:
            looked_at.update(other.dataset.content_hashes(other.bench.pairs[0][0].rows))
        return _only(member.half(1), lambda _, content: content not in looked_at)

    def overlaps(self) -> tuple[tuple[float, ...], ...]:
        """Return the share of common failures of every two models before any repair."""
        return tuple(tuple(float(value) for value in line) for line in failure_iou(self._failed))

    def common(self) -> Share:
        """Return, of the samples that any model fails on before any repair, those that all fail on."""
        failed = np.stack(self._failed)
        return Share.of(int(failed.all(axis=0).sum()), int(failed.any(axis=0).sum()))

    @cached_property
    def _failed(self) -> list[BoolArray]:
        """Return of every model which of the shared samples it fails on."""
        failed = []
        for member in self.members:
            has_failed = dict.fromkeys(sorted(self.shared_ids), False)
            for problem in class_problems(
                member.dataset, self.measured(member).rows, member.bench.criterion
            ):
                has_failed.update(
                    dict.fromkeys(member.dataset.sample_ids(problem.rows[problem.failed]), True)
                )
            failed.append(np.array(list(has_failed.values()), dtype=np.bool_))
        return failed

    def notes(self) -> list[str]:
        criteria = {describe_criterion(member.bench.criterion) for member in self.members}
        return (
            [f"The projects count different things as failures: {'; '.join(sorted(criteria))}."]
            if len(criteria) > 1
            else []
        )


def _only(samples: SampleSet, is_kept: Callable[[str, str], bool]) -> SampleSet:
    rows, dataset = samples.rows, samples.dataset
    pairs = zip(dataset.sample_ids(rows), dataset.content_hashes(rows), strict=True)
    return samples.only(rows[np.array([is_kept(*pair) for pair in pairs], dtype=np.bool_)])


MIN_MODELS = 2
INDIVIDUAL, COLLECTIVE, RANDOM = "individual", "collective", "random"


@dataclass(frozen=True, kw_only=True)
class FamilyRequest:
    """What a family is repaired with.

    Args:
        kind: 1: one set from the failures of all models; 2: from those of one.
        source: for type 2, the project folder (or its name) of that one; the first by default.
        method: registered name of the strategy.
    """

    kind: FamilyType = 1
    source: str = ""
    method: str = "slice-balanced"


@dataclass(frozen=True, kw_only=True, eq=False)
class FamilyResult:
    """A family after its repair.

    Args:
        repair: all figures.
        repair_set: who was trained on, by sample id.
        heads: the last layer of every model after the collective repair, by name.
        class_names: the classes in the order of each of these layers, by name.
    """

    repair: CollectiveRepair
    repair_set: RepairSet
    heads: dict[str, Head]
    class_names: dict[str, tuple[str, ...]]


def repair_family(
    projects: Sequence[Path | Project],
    request: FamilyRequest | None = None,
    *,
    progress: StageProgress = no_stage_progress,
) -> FamilyResult:
    """Repair the classifiers of two or more projects with one set, beside each one's own repair; each is named after its folder.

    Args:
        projects: folders, or open projects.
        request: what they are repaired with.
        progress: told how far it is.

    Raises:
        ConfigError: if fewer than two projects are given, two of the same name, or options that do not go together.
        DataError: if the projects have other classes, or share no sample to measure on.
        StoreError: if a project has no verified run.
        ModelError: if the last layer of a classifier is not known.
        NotEnoughDataError: if there is nothing to repair, or to train on.
    """
    asked = request or FamilyRequest()
    opened = [
        one if isinstance(one, Project) else Project.open(one, progress=progress)
        for one in projects
    ]
    names = _names(opened)
    source = _source(asked, names)
    family = Family.of([FamilyMember.of(project) for project in opened])
    overlaps = family.overlaps()
    own = {member.name: member.own_repair(asked.method) for member in family.members}
    sources = _sources(family, own, source)
    sets = [RepairSet.of(own[member.name][0], member.dataset) for member in sources]
    repair_set = sets[0] if source is not None else pooled(sets)
    repaired = [
        _repair(member, family, sources, own[member.name], repair_set)
        for member in _told(family.members, progress)
    ]
    repair = CollectiveRepair(
        kind=asked.kind,
        method=asked.method,
        source=source,
        n_in_set=len(repair_set.sample_ids),
        note=repair_set.note,
        n_samples=len(family.shared_ids),
        overlaps=overlaps,
        models=tuple(model for model, _ in repaired),
        notes=tuple(family.notes()),
        **_shares(repaired, sources),
    )
    heads = {model.name: head for model, head in repaired}
    classes = {member.name: member.dataset.class_names for member in family.members}
    return FamilyResult(repair=repair, repair_set=repair_set, heads=heads, class_names=classes)


def _told(members: Sequence[FamilyMember], progress: StageProgress) -> Iterator[FamilyMember]:
    for number, member in enumerate(members):
        progress("models", number, len(members))
        yield member
    progress("models", len(members), len(members))


def _shares(
    repaired: Sequence[tuple[FamilyModel, Head]], sources: Sequence[FamilyMember]
) -> dict[str, Share]:
    """Return how much of what individual repairs resolve is resolved together; a single source shares everything with itself."""
    alone = {member.name for member in sources} if len(sources) == 1 else set()
    figures = [model.figures[0] for model, _ in repaired if model.name not in alone]
    return {
        "shared": over_models([one.shared for one in figures]),
        "shared_random": over_models([one.shared_random for one in figures]),
    }


def _names(projects: Sequence[Project]) -> list[str]:
    names = [project_name(project) for project in projects]
    if len(names) < MIN_MODELS or len(set(names)) != len(names):
        raise ConfigError(
            "A collective repair needs two or more project folders with different names.",
            given=[str(one.folder) for one in projects],
        )
    return names


def _source(asked: FamilyRequest, names: Sequence[str]) -> str | None:
    if asked.kind == 1:
        if asked.source:
            raise ConfigError(
                "--from says whose failures to use, which is for --type 2.",
                given=asked.source,
                fix="Add --type 2.",
            )
        return None
    name = Path(asked.source).resolve().name if asked.source else names[0]
    if name not in names:
        raise ConfigError(
            "--from names none of the projects.",
            given=asked.source,
            fix=f"Choose one of {list(names)}.",
        )
    return name


def _sources(
    family: Family, own: dict[str, OwnRepair], source: str | None
) -> tuple[FamilyMember, ...]:
    """Return the models that the set is made from; those that only could be retrained have nothing to add to it."""
    asked = [member.name for member in family.members if source in (None, member.name)]
    chosen = tuple(
        member for member in family.members if member.name in asked and not own[member.name][1]
    )
    if not chosen:
        raise NotEnoughDataError(
            f"There is nothing to make a repair set from in {', '.join(asked)}.",
            given=[own[name][1] for name in asked],
        )
    return chosen


def _repair(
    member: FamilyMember,
    family: Family,
    sources: Sequence[FamilyMember],
    own: OwnRepair,
    repair_set: RepairSet,
) -> tuple[FamilyModel, Head]:
    bench, (selection, obstacle) = member.bench, own
    together = applied(repair_set, member.dataset, member.allowed)
    selections = {
        INDIVIDUAL: selection,
        COLLECTIVE: together,
        RANDOM: random_control(together, bench.material),
    }
    fitted = {name: bench.fitted(chosen) for name, chosen in selections.items()}
    measured = family.measured(member)
    arms = [
        measure_arm(
            RepairArm(
                arm=name,
                is_baseline=name == RANDOM,
                note=chosen.note,
                n_trained=len(chosen.rows),
                changes=(),
                temperature=fitted[name].temperature,
            ),
            fitted[name].head.probabilities(measured.embeddings(FEATURES)),
            bench.slices,
            measured,
            bench.criterion,
            thresholds=fitted[name].thresholds,
            column=bench.settings.repair.groups,
        )
        for name, chosen in selections.items()
    ]
    sets = [one for one in (measured, member.half(0), family.held_out(member, sources)) if len(one)]
    notes = [obstacle] if obstacle else []
    if len(sources) == 1 and member is sources[0]:
        notes.append("The set is this model's own, so that its two repairs are the same.")
    model = FamilyModel(
        name=member.name,
        n_slices=len(bench.slices),
        n_individual=len(selection.rows),
        n_collective=len(together.rows),
        figures=tuple(_figures(member, samples, fitted) for samples in sets),
        arms=tuple(arms),
        notes=tuple(notes),
    )
    return model, fitted[COLLECTIVE].head


def _figures(
    member: FamilyMember, samples: SampleSet, fitted: dict[str, FittedHead]
) -> FamilyFigures:
    features = samples.embeddings(FEATURES)
    right: dict[str, BoolArray] = {}
    groups: IntArray | None = None
    for name, one in fitted.items():
        both = compare(
            samples, one.head.probabilities(features), (), member.bench.criterion, one.thresholds
        )
        right[name] = np.concatenate([result.right_after for result in both.predictions])
        right["before"] = np.concatenate([result.right_before for result in both.predictions])
        groups = both.decision_groups
    return family_figures(DataUse.of(samples), **right, groups=groups)


PAGE, DATA, SAMPLES = "collective.html", "collective.json", "collective_set.csv"
COLUMNS = (
    ("before", "before"),
    ("own repair", "individual"),
    ("collective", "collective"),
    ("random control", "random"),
)
RESOLVED = (
    ("own repair", "resolved_individual"),
    ("collective", "resolved_collective"),
    ("random control", "resolved_random"),
    ("of what the own repair resolves, collective too", "shared"),
    ("random control too", "shared_random"),
)


def write_family(result: FamilyResult, folder: Path) -> tuple[Path, ...]:
    """Write the page, the record, the repair set and every model's repaired last layer into a folder; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents: dict[str, bytes | Image.Image] = {
        PAGE: family_page(result.repair).encode(),
        DATA: (result.repair.model_dump_json(indent=2) + "\n").encode(),
        SAMPLES: _set_table(result).encode(),
    }
    contents |= {
        f"{name}_head.safetensors": head_bytes(head, result.class_names[name])
        for name, head in result.heads.items()
    }
    return written(folder, contents)


def _set_table(result: FamilyResult) -> str:
    weights = result.repair_set.weights.tolist()
    rows = [
        [sample_id, f"{weight:.9g}"]
        for sample_id, weight in zip(result.repair_set.sample_ids, weights, strict=True)
    ]
    return csv_text(["sample_id", "weight"], rows)


def headline(repair: CollectiveRepair) -> str:
    shared, random = repair.shared, repair.shared_random
    if not shared.total:
        return "The models' own repairs resolve no failure of the test samples, so there is nothing that one set could share."
    return (
        f"One repair set resolves {shared.count} of the {shared.total} failures that the models' own repairs resolve "
        f"({percent(shared.value)}, {interval(shared.interval)}); its random control resolves {random.count} of them "
        f"({percent(random.value)})."
    )


def set_sentence(repair: CollectiveRepair) -> str:
    whose = (
        "the failures of all models (type 1)"
        if repair.source is None
        else f"the failures of {repair.source} alone (type 2)"
    )
    return f"Made from {whose} by {repair.method}. {repair.note}"


def family_page(repair: CollectiveRepair) -> str:
    """Return the family as one HTML page without outside references."""
    names = [model.name for model in repair.models]
    rows = [
        (
            model.name,
            model.figures[0].shared.interval.low,
            model.figures[0].shared.value,
            model.figures[0].shared.interval.high,
        )
        for model in repair.models
        if model.figures[0].shared.total
    ]
    parts = [
        paragraph(headline(repair)),
        paragraph(set_sentence(repair)),
        f"<h2>Accuracy on {repair.n_samples:,} test samples that all share</h2>",
        _test_table(repair),
        "<h2>Failures resolved</h2>",
        _resolved_table(repair),
        f"<figure>{interval_chart(rows, title='Own repair resolves it: does the collective one too?')}</figure>"
        if rows
        else "",
        f"<h2>Shared failures before</h2><figure>{heat_map(names, repair.overlaps, title='Intersection over union')}</figure>",
        *[paragraph(f"{model.name}: {note}") for model in repair.models for note in model.notes],
        *[paragraph(note) for note in repair.notes],
    ]
    return small_page(f"{len(names)} classifiers, one repair set", parts)


def _test_table(repair: CollectiveRepair) -> str:
    titles = [title for title, _ in COLUMNS]
    titles += ["p, against before", "p, against the matched control", "relative accuracy"]
    rows = [
        (
            model.name,
            text_cell(
                count(model.n_slices, "slice"),
                f"{model.n_collective:,} of {repair.n_in_set:,} samples",
            ),
            *_test_cells(model.figures[0]),
        )
        for model in repair.models
    ]
    caption = "Relative accuracy: collective as a part of own repair. Still right: of the formerly right, with the collective one."
    return table(["model", "trained for", *titles, "still right"], rows, caption=caption)


def _test_cells(figures: FamilyFigures) -> Iterator[str]:
    for _, name in COLUMNS:
        yield share_cell(getattr(figures, name))
    for value in (figures.p_value, figures.p_against_random):
        yield text_cell(p_value(value), "" if value <= CERTAIN else "may be chance")
    relative = figures.relative_accuracy
    yield text_cell("–" if relative is None else f"{relative:.3f}")
    yield share_cell(figures.clean_collective)


def _resolved_table(repair: CollectiveRepair) -> str:
    rows = [
        (
            model.name,
            text_cell(data_words(figures.measured_on)),
            *(share_cell(getattr(figures, name)) for _, name in RESOLVED),
        )
        for model in repair.models
        for figures in model.figures
    ]
    return table(["model", "samples", *[title for title, _ in RESOLVED]], rows)


WIDTH = 100
NAME, COLUMN = 30, 14
ARMS = ("before", "own repair", "collective", "random control")


def collective_lines(repair: CollectiveRepair) -> Iterator[str]:
    yield from _wrap(headline(repair))
    yield from _wrap(set_sentence(repair))
    yield f"Measured on {repair.n_samples:,} test samples that all {len(repair.models)} models share."
    yield "  " + " " * NAME + "".join(arm.rjust(COLUMN) for arm in ARMS)
    for model in repair.models:
        yield from _model(model)
    yield "Shared failures before (intersection over union):"
    width = max(len(model.name) for model in repair.models)
    for model, line in zip(repair.models, repair.overlaps, strict=True):
        yield f"  {model.name:<{width}}  " + "  ".join(f"{value:.2f}" for value in line)
    for note in repair.notes:
        yield from _wrap(note)


def _model(model: FamilyModel) -> Iterator[str]:
    sizes = f"own set {model.n_individual:,} samples, collective {model.n_collective:,}"
    yield f"{model.name} ({count(model.n_slices, 'slice')}, {sizes})"
    test = model.figures[0]
    yield _row("accuracy", test.before, test.individual, test.collective, test.random)
    for figures in model.figures:
        resolved = (
            figures.resolved_individual,
            figures.resolved_collective,
            figures.resolved_random,
        )
        yield _row(f"resolved, {_short(figures)}", None, *resolved)
    yield _row("still right", None, test.clean_individual, test.clean_collective, None)
    yield from _wrap(_sentence(test), "    ")
    for note in model.notes:
        yield from _wrap(note, "    ")


def _sentence(test: FamilyFigures) -> str:
    if test.p_value > CERTAIN:
        said = f"The change of accuracy with the collective set may be chance ({p_words(test.p_value)})"
    else:
        verb = "rose" if test.collective.count > test.before.count else "fell"
        said = f"Accuracy with the collective set {verb} ({p_words(test.p_value)})"
    against = "not to be told from"
    if test.p_against_random <= CERTAIN:
        against = "better than" if test.collective.count > test.random.count else "worse than"
    shared = "the own repair resolves nothing"
    if test.shared.total:
        share = f"{percent(test.shared.value)}, {interval(test.shared.interval)}"
        shared = f"of {test.shared.total} failures that the own repair resolves it resolves {test.shared.count} ({share})"
    relative = (
        ""
        if test.relative_accuracy is None
        else f"; relative accuracy {test.relative_accuracy:.3f}"
    )
    return f"{said}, {against} its random control ({p_words(test.p_against_random)}); {shared}{relative}."


def _short(figures: FamilyFigures) -> str:
    return data_words(figures.measured_on).split(" (", maxsplit=1)[0]


def _row(title: str, *shares: Share | None) -> str:
    return f"  {title[:NAME]:<{NAME}}{''.join(_figure(share).rjust(COLUMN) for share in shares)}".rstrip()


def _figure(share: Share | None) -> str:
    if share is None or not share.total:
        return "–" if share is not None else ""
    return f"{percent(share.value)} of {share.total:,}"


def _wrap(text: str, indent: str = "") -> list[str]:
    joined = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0%", " %") for line in lines]
