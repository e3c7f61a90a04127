"""Repair: what can be repaired and how, what it did, what changed for samples, and the files that can be downloaded.

What got worse comes first. Figures are of test samples, which nobody looks at; images are of the discovery half. Downloads go by a
fixed list of names, never by a path.
"""

import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path, PurePath
from typing import IO, Annotated, Self

import numpy as np
from pydantic import StringConstraints

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, StoreError, WeakspotError
from weakspot.core.registry import part_class, registered
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairResult
from weakspot.core.run import RunRecord
from weakspot.models.files import read_head
from weakspot.repair.bench import GROUP_METHODS
from weakspot.repair.collecting import WEIGHTS_FOLDER
from weakspot.repair.controls import MATCHED_CONTROLS
from weakspot.repair.export import HEAD, MODEL_FOLDER, current_id, go_back, head_name
from weakspot.repair.stage import (
    PLAIN,
    POOL_PREFIX,
    REPAIR_NOTE,
    failing_classes,
    obstacle_to_repair,
)
from weakspot.report.repairs import (
    RepairSection,
    StrategyRow,
    compare_strategies,
    repair_section,
    slice_warning,
    worse_sentences,
)
from weakspot.report.wording import arm_name
from weakspot.run.preparation import FEATURES
from weakspot.run.wiring import buildable
from weakspot.store.project import ProjectStore
from weakspot.web.services.images import ListedImage, list_images
from weakspot.web.services.overview import (
    ConfirmedSlice,
    MethodChoice,
    confirmed_slices,
    first_sentence,
)
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

SYNTHETIC = "synthetic"
BASELINES = (PLAIN, *MATCHED_CONTROLS)


class Strategy(MethodChoice):
    """A way of repairing.

    Args:
        title: as people read it.
        is_baseline: whether it stands there for comparison.
    """

    title: str
    is_baseline: bool


class RepairOptions(View):
    """What can be repaired, and how.

    Args:
        run_id: the run; empty if there is none yet.
        slices: confirmed ones, largest gap first.
        strategies: all registered ones.
        baselines: what every repair is compared with.
        budget: samples that may be taken from the pool, as in weakspot.toml.
        n_pool: samples in the pool.
        why_not: why nothing can be repaired here; empty if something can.
        only_collects: why the last layer cannot be retrained here, so that a repair lists rows to collect and training weights instead;
            empty if it can.
    """

    run_id: str
    slices: list[ConfirmedSlice]
    strategies: list[Strategy]
    baselines: list[str]
    budget: int
    n_pool: int
    why_not: str
    only_collects: str = ""


def repair_options(workspace: Workspace, run_id: str | None = None) -> RepairOptions:
    """Return what can be repaired of a run, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    settings = workspace.project.settings.repair
    known = workspace.project.store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        why_not = "There is no run yet. Look for failures on the overview first."
        return RepairOptions(
            run_id="", slices=[], strategies=[], baselines=[], budget=0, n_pool=0, why_not=why_not
        )
    slices, obstacle = workspace.make_of_run(
        chosen, "repairable", lambda record: _repairable(workspace, record)
    )
    n_pool = len(workspace.samples.dataset.rows_of(Split.POOL))
    return RepairOptions(
        run_id=chosen,
        slices=slices,
        strategies=_strategies(workspace, n_pool=n_pool),
        baselines=[arm_name(name) for name in BASELINES],
        budget=settings.budget,
        n_pool=n_pool,
        why_not="" if slices else obstacle,
        only_collects=obstacle if slices else "",
    )


def _repairable(workspace: Workspace, record: RunRecord) -> tuple[list[ConfirmedSlice], str]:
    samples = workspace.samples
    subjects = [slice_ for slice_, _ in record.published()]
    subjects = subjects or [*failing_classes(record, samples.dataset.task)]
    return confirmed_slices(record), obstacle_to_repair(subjects, samples)


def _strategies(workspace: Workspace, *, n_pool: int) -> list[Strategy]:
    settings = workspace.project.settings
    options = {
        name: {"column": settings.repair.groups} for name in GROUP_METHODS if settings.repair.groups
    }
    able = set(buildable("repairers", options))
    found = []
    for name in registered("repairers"):
        try:
            part = part_class("repairers", name)
        except ConfigError:
            continue
        found.append(
            Strategy(
                name=name,
                title=arm_name(name),
                sentence=first_sentence(part),
                is_configured=name == settings.repair.method,
                is_baseline=bool(getattr(part, "is_baseline", False)),
                why_not=_why_not(workspace, name, able=able, n_pool=n_pool),
            )
        )
    return sorted(
        found, key=lambda one: (not one.is_configured, bool(one.why_not), one.is_baseline, one.name)
    )


def _why_not(workspace: Workspace, name: str, *, able: set[str], n_pool: int) -> str:
    """Return why a strategy cannot be used on these samples; empty if it can."""
    repair = workspace.project.settings.repair
    if name.startswith(POOL_PREFIX) and not n_pool:
        return "There are no samples in the split “pool” to choose from."
    if name in GROUP_METHODS and not repair.groups:
        return "[repair] groups in weakspot.toml names no column with group labels."
    if name == SYNTHETIC and not repair.synthetic:
        return "[repair] synthetic in weakspot.toml names no folder of generated images."
    if name not in able:
        return "It needs options that weakspot.toml does not give."
    return ""


class RepairView(View):
    """One repair beside its baselines.

    Args:
        slice_ids: the slices that were repaired.
        worse: what got worse, in words; that a repair made its own slices worse comes first.
        section: what else it did, in the words and figures of the report.
    """

    slice_ids: tuple[str, ...]
    worse: tuple[str, ...]
    section: RepairSection


class RightCounts(View):
    """How often a classifier was right before and after a repair.

    Args:
        title: of a slice, or of the repair as a whole: its strategy, as people read it.
        n_samples: samples that were measured.
        right_before: of them, right before.
        right_after: of them, right after.
    """

    title: str
    n_samples: int
    right_before: int
    right_after: int

    @classmethod
    def of(cls, change: GroupChange | None, **more: object) -> Self:
        """Return the counts of what was measured; zeros if nothing was."""
        names = ("n_samples", "right_before", "right_after")
        counts = {name: 0 if change is None else getattr(change, name) for name in names}
        return cls.model_validate(counts | more)


class KeptSlice(RightCounts):
    """What a repair did to a slice, by its present name."""

    slice_id: str


class KeptRepairView(RightCounts):
    """One of all repairs of a run, in short, to compare them.

    Args:
        repair_id: which one.
        made: ISO 8601, UTC; empty if it is not known.
        is_current: whether it is the one that is shown and downloaded.
        n_strategies: how many strategies were compared in it.
        slices: the slices it was made for.
        worse: what got worse, in words; empty if nothing was retrained.
    """

    repair_id: str
    made: str
    is_current: bool
    n_strategies: int
    slices: tuple[KeptSlice, ...]
    worse: str


class RepairResults(View):
    """What repairs of a run did.

    Args:
        run_id: the run; empty if there is none.
        note: why nothing was repaired; empty if something was.
        repairs: the chosen strategy first.
        comparison: strategies side by side, none if there are not several.
        names: of strategies and baselines, as people read them.
        kept: all repairs of the run, newest first.
    """

    run_id: str
    note: str
    repairs: tuple[RepairView, ...]
    comparison: tuple[StrategyRow, ...]
    names: dict[str, str]
    kept: tuple[KeptRepairView, ...] = ()


def repair_results(workspace: Workspace, run_id: str | None = None) -> RepairResults:
    """Return what repairs of a run did, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    known = workspace.project.store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        return RepairResults(run_id="", note="", repairs=(), comparison=(), names={})
    return workspace.make_of_run(chosen, "repairs", results_of)


def results_of(record: RunRecord) -> RepairResults:
    compared = compare_strategies(record.repairs)
    rows = () if compared is None else compared.rows
    used = [arm.arm for result in record.repairs for arm in result.arms]
    return RepairResults(
        run_id=record.run_id,
        note=" ".join(note.note for note in record.notes if note.class_name == REPAIR_NOTE),
        repairs=tuple(_repair(result) for result in record.repairs),
        comparison=tuple(replace(row, arm=row.arm and _in_short(row.arm)) for row in rows),
        names={name: arm_name(name) for name in [*used, *(row.strategy for row in rows)]},
        kept=_kept(record),
    )


def _kept(record: RunRecord) -> tuple[KeptRepairView, ...]:
    titles = {slice_id: found.title for slice_id, found in record.slices_by_id().items()}
    every = [(one.repair_id, one.made, one.repairs) for one in record.earlier_repairs]
    shown = [_in_brief(*one, titles, is_current=False) for one in every]
    if any(result.arms or result.needs for result in record.repairs):
        current = current_id(record), record.repaired, record.repairs
        shown.append(_in_brief(*current, titles, is_current=True))
    return tuple(sorted(shown, key=lambda one: one.made, reverse=True))


def _in_brief(
    repair_id: str,
    made: str,
    repairs: tuple[RepairResult, ...],
    titles: Mapping[str, str],
    *,
    is_current: bool,
) -> KeptRepairView:
    first = repairs[0]
    overall = first.arms[0].change_of(GroupKind.OVERALL) if first.arms else None
    return KeptRepairView.of(
        overall,
        repair_id=repair_id,
        made=made,
        is_current=is_current,
        title=arm_name(first.plan.repairer) if first.arms else "Rows to collect",
        n_strategies=len(repairs),
        slices=tuple(
            KeptSlice.of(
                first.change_of_slice(slice_id),
                slice_id=slice_id,
                title=titles.get(slice_id, slice_id),
            )
            for slice_id in first.plan.slice_ids
        ),
        worse=next(iter(worse_sentences(first.arms[0])), "") if first.arms else "",
    )


class GoBack(View):
    """Which repair is to be the current one."""

    repair_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]


def go_back_to(workspace: Workspace, repair_id: str, run_id: str | None = None) -> RepairResults:
    """Make an earlier repair of a run the current one again.

    Raises:
        DataError: if there is no such repair.
    """
    record = workspace.record(run_id)
    if record is None:
        raise DataError("There is no run yet, so nothing was repaired.")
    with workspace.editing() as project:
        go_back(project.store, record.run_id, repair_id)
    return repair_results(workspace, record.run_id)


def current_repair(workspace: Workspace, run_id: str | None) -> str:
    """Return which repair of a run is in use; empty if there is none."""
    record = workspace.record(run_id)
    return "" if record is None else current_id(record)


def title_of_repair(workspace: Workspace, run_id: str | None, repair_id: str) -> str:
    """Return what a repair of a run is called."""
    record = workspace.record(run_id)
    kept = () if record is None else _kept(record)
    found = next((one for one in kept if one.repair_id == repair_id), None)
    return repair_id if found is None else f"{found.title} of {found.made[:19].replace('T', ' ')}"


def _repair(result: RepairResult) -> RepairView:
    """Return a repair without what is told elsewhere on the page, and without places of files on the server."""
    section = repair_section(result)
    said = (slice_warning(arm) for arm in section.arms[:1])
    worse = (
        *(warning for warning in said if warning),
        *(sentence for arm in section.arms[:1] for sentence in worse_sentences(arm)),
    )
    shown = replace(
        section,
        sentences=tuple(one for one in section.sentences if one not in worse),
        arms=tuple(_in_short(arm) for arm in section.arms),
        spread=tuple(replace(row, arm=_in_short(row.arm)) for row in section.spread),
        given=tuple(replace(row, arm=_in_short(row.arm)) for row in section.given),
        looked_again=None,
        request=None,
        files=(),
    )
    return RepairView(slice_ids=result.plan.slice_ids, worse=worse, section=shown)


def _in_short(arm: RepairArm) -> RepairArm:
    return arm.model_copy(update={"changes": (), "elsewhere": ()})


EXPORTED = "handed-back"
PATIENCE_SECONDS = 30.0


def new_folder(store: ProjectStore, run_id: str) -> Path:
    """Return a folder for the files of a repair, not there yet; that of an earlier repair stays until this one is done."""
    return store.runs.run_folder(run_id) / EXPORTED / secrets.token_hex(8)


def adopt_files(store: ProjectStore, record: RunRecord) -> RunRecord:
    """Write down the files of a repair relative to the run's folder, and delete those that belong to no repair of the run."""
    folder = store.runs.run_folder(record.run_id).absolute()
    with store.writing(patience=PATIENCE_SECONDS):
        current = store.runs.load(record.run_id)
        repairs = tuple(
            result.model_copy(
                update={"files": tuple(_relative(file, folder) for file in result.files)}
            )
            for result in current.repairs
        )
        changed = current.model_copy(update={"repairs": repairs})
        store.runs.save(changed)
    kept = {_folder_name(result) for result in changed.repairs}
    kept |= {_folder_name(result) for one in changed.earlier_repairs for result in one.repairs}
    for other in (folder / EXPORTED).glob("*"):
        if other.name not in kept:
            shutil.rmtree(other, ignore_errors=True)
    return changed


def current_folder(store: ProjectStore, record: RunRecord) -> Path | None:
    """Return where the files of a run's newest repair are, None if there are none."""
    name = _folder_name(record.repairs[0]) if record.repairs else None
    if name is None:
        return None
    folder = store.runs.run_folder(record.run_id).absolute() / EXPORTED / name
    return folder if folder.is_dir() and not folder.is_symlink() else None


def _folder_name(result: RepairResult) -> str | None:
    """Return the name of the folder that the files of a repair are in, None if it wrote none."""
    for file in result.files:
        parts = PurePath(file).parts
        if EXPORTED in parts[:-2]:
            return parts[parts.index(EXPORTED) + 1]
    return None


def _relative(file: str, folder: Path) -> str:
    path = PurePath(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file


CHUNK_BYTES = 1 << 20


class DownloadName(StrEnum):
    """Everything that can be downloaded."""

    HEAD = "repaired_head.safetensors"
    MODEL = "repaired_model.zip"
    PLAN = "plan.json"
    WEIGHTS = "training_weights.csv"
    ROWS = "training_rows.txt"
    GROUP_OBJECTIVES = "group_objectives.json"
    README = "README.txt"
    LABELS = "to_label.csv"
    COLLECT = "to_collect.csv"
    NEEDS = "how_many.csv"
    MORE_WEIGHTS = "weights.zip"


SENTENCES = {
    DownloadName.HEAD: "The repaired last layer alone: weight [classes, features] and bias [classes].",
    DownloadName.MODEL: "Your classifier with the repaired last layer; all else in it is as it was.",
    DownloadName.PLAN: "Slices, strategy and seed; `weakspot repair --plan plan.json` does the same again.",
    DownloadName.WEIGHTS: "Which samples to train on and how much each counts, for your own training.",
    DownloadName.ROWS: "Positions of those samples among your training samples.",
    DownloadName.GROUP_OBJECTIVES: "Groups of samples of which only the one with the largest loss counts.",
    DownloadName.README: "What the files are and how to use them.",
    DownloadName.LABELS: "Pool samples that the repair needs labels of.",
    DownloadName.COLLECT: "Pool rows that fit each slice, in the order in which to take them.",
    DownloadName.NEEDS: "How many rows every slice has, lacks and could get; estimates say so.",
    DownloadName.MORE_WEIGHTS: "Training weights of other strategies.",
}

ARCHIVES = {DownloadName.MODEL: MODEL_FOLDER, DownloadName.MORE_WEIGHTS: WEIGHTS_FOLDER}


class DownloadView(View):
    """A file that can be downloaded.

    Args:
        name: its name.
        sentence: what it is.
        size: bytes; None if it is put together when it is asked for.
    """

    name: DownloadName
    sentence: str
    size: int | None


class DownloadsView(View):
    """The files of a run's newest repair."""

    run_id: str
    files: list[DownloadView]


def chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file bit by bit, and close it."""
    with stream:
        while part := stream.read(CHUNK_BYTES):
            yield part


def downloads(workspace: Workspace, run_id: str | None = None) -> DownloadsView:
    """Return what can be downloaded of a run, the newest by default.

    Raises:
        StoreError: if there is no such run.
    """
    record = workspace.record(run_id)
    if record is None:
        return DownloadsView(run_id="", files=[])
    found = {name: _place(workspace, record, name) for name in DownloadName}
    files = [
        DownloadView(
            name=name,
            sentence=SENTENCES[name],
            size=place.stat().st_size if place.is_file() else None,
        )
        for name, place in found.items()
        if place is not None
    ]
    return DownloadsView(run_id=record.run_id, files=files)


def open_download(
    workspace: Workspace, name: DownloadName, run_id: str | None = None
) -> tuple[IO[bytes], int]:
    """Open a file of a run's newest repair and return it with its size; it is closed by reading its `chunks`.

    Raises:
        StoreError: if the run has none of that name.
    """
    record = workspace.record(run_id)
    place = None if record is None else _place(workspace, record, name)
    if place is None:
        raise StoreError(
            "There is no such file of a repair.", given=name.value, fix="Repair the run first."
        )
    stream = _zip(place) if place.is_dir() else place.open("rb")
    size = stream.seek(0, 2)
    stream.seek(0)
    return stream, size


def _place(workspace: Workspace, record: RunRecord, name: DownloadName) -> Path | None:
    """Return where a file of the newest repair is, None if there is none; archives are folders."""
    if not record.repairs:
        return None
    result, store = record.repairs[0], workspace.project.store
    own = store.runs.run_folder(record.run_id)
    if name is DownloadName.LABELS:
        return _plain(own / name.value) if result.labelling is not None else None
    if name is DownloadName.HEAD:
        return _plain(own / name.value) if result.head_file else None
    folder = current_folder(store, record)
    if folder is None:
        return None
    if name in ARCHIVES:
        packed = folder / ARCHIVES[name]
        return packed if packed.is_dir() and not packed.is_symlink() else None
    return _plain(folder / name.value)


def _plain(path: Path) -> Path | None:
    return path if path.is_file() and not path.is_symlink() else None


def _zip(folder: Path) -> IO[bytes]:
    """Return the files of a folder as one archive that vanishes when it is closed; weights would not get smaller by packing."""
    stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                with (
                    path.open("rb") as source,
                    archive.open(
                        path.relative_to(folder).as_posix(), "w", force_zip64=True
                    ) as target,
                ):
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
    return stream


MAX_SHOWN = 24


class ChangedImages(View):
    """What the current repair of a run changed on the discovery half.

    Args:
        tables: what row numbers belong to.
        half: whose images these are.
        n_right_now: wrong before, right after.
        n_broken: right before, wrong after.
        right_now: some of the first, members of the repaired slices first.
        broken: some of the second.
        note: why nothing is shown; empty if something is.
    """

    tables: str
    half: str
    n_right_now: int = 0
    n_broken: int = 0
    right_now: tuple[ListedImage, ...] = ()
    broken: tuple[ListedImage, ...] = ()
    note: str = ""


def changed_images(workspace: Workspace, run_id: str | None = None) -> ChangedImages:
    """Return images that the current repair of a run changed; a note if its layer is not there or cannot be used on these samples.

    Raises:
        StoreError: if there is no such run.
    """
    nothing = ChangedImages(tables=workspace.tables_key, half=workspace.discovery.name)
    record = workspace.record(run_id)
    if record is None or not record.repairs or record.repairs[0].head_file is None:
        return nothing
    try:
        changed = _changed_rows(workspace, record)
    except WeakspotError as error:
        return nothing.model_copy(update={"note": error.what})
    if changed is None:
        return nothing
    right_now, broken = changed
    return ChangedImages(
        tables=workspace.tables_key,
        half=workspace.discovery.name,
        n_right_now=len(right_now),
        n_broken=len(broken),
        right_now=tuple(list_images(workspace, right_now[:MAX_SHOWN])),
        broken=tuple(list_images(workspace, broken[:MAX_SHOWN])),
    )


def _changed_rows(workspace: Workspace, record: RunRecord) -> tuple[IntArray, IntArray] | None:
    """Return rows that are right now and rows that are broken, members of repaired slices first."""
    samples = workspace.samples_for(record)
    dataset = samples.dataset
    if dataset.task is not Task.SINGLE_LABEL or FEATURES not in samples.spaces:
        return None
    rows = workspace.discovery.rows
    rows = rows[samples.has_embeddings(FEATURES, rows)]
    head, names = read_head(workspace.project.store.runs.run_folder(record.run_id) / HEAD.name)
    probabilities = samples.by_blocks(
        FEATURES, rows, head.reordered(names, dataset.class_names).probabilities
    )
    criterion = workspace.criterion
    before = criterion.failed(dataset, rows)
    after = criterion.failed_predictions(probabilities, dataset.labels[rows], dataset.class_names)
    inside = np.zeros(len(dataset), dtype=np.bool_)
    known = record.slices_by_id()
    for slice_id in record.repairs[0].plan.slice_ids:
        if slice_id in known:
            inside[known[slice_id].members(samples.only(rows))] = True
    order = np.argsort(~inside[rows], kind="stable")
    rows, before, after = rows[order], before[order], after[order]
    return rows[before & ~after], rows[~before & after]


class RepairOnSample(View):
    """One repair on one sample.

    Args:
        repair_id: which repair.
        strategy: how it was made.
        made: when, ISO 8601; empty if that is not known.
        is_current: whether it is the one in use.
        answer: what the classifier says with it.
        probability: of that answer.
        was_failure: whether the classifier failed without it; null without a label.
        is_failure: whether it fails with it; null without a label.
    """

    repair_id: str
    strategy: str
    made: str
    is_current: bool
    answer: str
    probability: float
    was_failure: bool | None
    is_failure: bool | None


def repairs_on_sample(workspace: Workspace, row: int) -> list[RepairOnSample]:
    """Return all repairs of the newest run on one sample, the one in use first; none where a layer cannot be used."""
    record = workspace.record()
    samples = workspace.samples
    here = np.array([row])
    if (
        record is None
        or samples.dataset.task is not Task.SINGLE_LABEL
        or FEATURES not in samples.spaces
        or not bool(samples.has_embeddings(FEATURES, here)[0])
    ):
        return []
    found = [_on_sample(workspace, record, row, *layer) for layer in _layers(workspace, record)]
    return [one for one in found if one is not None]


def _layers(workspace: Workspace, record: RunRecord) -> list[tuple[str, str, str, Path]]:
    """Return id, strategy, time and layer of every repair, the one in use first, then the newest."""
    kept = sorted(record.earlier_repairs, key=lambda one: one.made, reverse=True)
    every = [(current_id(record), record.repaired, record.repairs, HEAD.name)]
    every += [(one.repair_id, one.made, one.repairs, head_name(one.repair_id)) for one in kept]
    folder = workspace.project.store.runs.run_folder(record.run_id)
    return [
        (repair_id, repairs[0].plan.repairer, made, folder / name)
        for repair_id, made, repairs, name in every
        if repairs and (folder / name).is_file()
    ]


def _on_sample(
    workspace: Workspace,
    record: RunRecord,
    row: int,
    repair_id: str,
    strategy: str,
    made: str,
    file: Path,
) -> RepairOnSample | None:
    samples, here = workspace.samples, np.array([row])
    dataset = samples.dataset
    try:
        head, names = read_head(file)
        fitting = head.reordered(names, dataset.class_names)
        probabilities = samples.by_blocks(FEATURES, here, fitting.probabilities)
        labels = dataset.labels[here]
        is_labelled = bool(dataset.is_labelled[row])
        criterion = workspace.criterion
        before = bool(criterion.failed(dataset, here)[0]) if is_labelled else None
        after = (
            bool(criterion.failed_predictions(probabilities, labels, dataset.class_names)[0])
            if is_labelled
            else None
        )
    except WeakspotError:
        return None
    code = int(np.argmax(probabilities[0]))
    return RepairOnSample(
        repair_id=repair_id,
        strategy=strategy,
        made=made,
        is_current=repair_id == current_id(record),
        answer=dataset.class_names[code],
        probability=float(probabilities[0, code]),
        was_failure=before,
        is_failure=after,
    )
