"""What is kept of a repair: the model, its layer and plan, lists for training, the script that gives its figures, and what was replaced."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from pydantic import ValidationError

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Split, Task
from weakspot.core.errors import ConfigError, DataError, StoreError, WeakspotError, raise_all
from weakspot.core.failures import FailureCriterion
from weakspot.core.heads import Head, TrainingSelection
from weakspot.core.repairs import GroupChange, GroupKind, RepairPlan, RepairResult
from weakspot.core.roles import Classifier, TakesHead
from weakspot.core.run import RunRecord, StoredRepair
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.data.locations import is_local, local_path, read_location, shown_location, split_range
from weakspot.models.files import (
    PlainModel,
    files_in,
    new_files,
    plain_model_of,
    refuse_existing,
    write_head,
)
from weakspot.models.training_weights import COLUMNS
from weakspot.repair.bench import RepairBench
from weakspot.store.csv_tables import csv_text
from weakspot.store.project import ProjectStore

LIBRARIES = {"onnx": "onnxruntime", "torchscript": "torch"}

FORMAT = "weakspot repair plan"
VERSION = 1
REWRITE = "Use a plan.json that weakspot repair wrote."
_N_SHOWN = 5


def filled(template: str, **facts: object) -> str:
    """Return a text file of a repair, written from facts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("weakspot.repair"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters["repr"] = repr
    return environment.get_template(template).render(**facts)


SCRIPT_FILE = "reproduce.py"
FIGURES_FILE = "figures.json"
PREPROCESSING_FILE = "preprocessing.json"
IMAGES_FOLDER = "test_images"
MAX_COPIED = 2_000
DEEP_NOTES = frozenset({"16-bit", "32-bit", "float"})


def write_reproduction(
    staging: Path,
    folder: Path,
    bench: RepairBench,
    *,
    repaired: Path | None,
    changes: Sequence[GroupChange],
) -> str:
    """Write how images are prepared, and where it can be done a script that gives the claimed figures again.

    Args:
        staging: where to write.
        folder: where that will be in the end; paths in the files are relative to it.
        bench: whose classifier, measured samples and slices these are.
        repaired: the repaired model in `staging`, None if it was not written.
        changes: what is claimed: right before and after, by group; empty if nothing was measured.

    Returns:
        Why there is no script although there might be one; empty otherwise.
    """
    plain = plain_model_of(bench.prepared.classifier)
    if plain is None:
        return ""
    _write_json(staging / PREPROCESSING_FILE, preprocessing_facts(plain))
    if repaired is None or not changes:
        return ""
    samples = bench.measured
    note = _obstacle(samples, bench.criterion, plain)
    if note:
        return note
    dataset, rows = samples.dataset, _labelled(samples)
    labels = [dataset.class_names[code] for code in dataset.labels[rows].tolist()]
    places = _image_places(samples, rows, staging, folder)
    content = {
        "model_before": _relative(plain.path, folder),
        "model_after": repaired.relative_to(staging).as_posix(),
        "class_names": list(plain.class_names or dataset.class_names),
        "images": [
            {"path": place, "label": label} for place, label in zip(places, labels, strict=True)
        ],
        "figures": _figures(samples, rows, bench.slices, changes),
    }
    _write_json(staging / FIGURES_FILE, content)
    script = filled(
        "reproduce.py.txt",
        plain=plain,
        made=plain.preprocessing,
        library=LIBRARIES[plain.kind],
        figures_file=FIGURES_FILE,
    )
    (staging / SCRIPT_FILE).write_text(script, encoding="utf-8")
    return ""


def preprocessing_facts(plain: PlainModel) -> dict[str, object]:
    """Return how an image becomes the input of a model, number by number."""
    settings = plain.preprocessing.as_settings()
    side = plain.preprocessing.needed_side
    return {
        **settings,
        "resize_side": None
        if settings["crop"] == "none"
        else settings["resize_side"] or max(settings["height"], settings["width"]),
        "jpeg_decoded_at": f"1/8, 1/4 or 1/2 where its shorter side stays at least {side} pixels, else whole",
        "orientation": "turned upright as EXIF says",
        "transparency": "on white",
        "class_names": None if plain.class_names is None else list(plain.class_names),
    }


def _obstacle(samples: SampleSet, criterion: FailureCriterion, plain: PlainModel) -> str:
    """Return why a script cannot give the figures; empty if it can."""
    dataset, rows = samples.dataset, _labelled(samples)
    is_usual = dataset.task is Task.SINGLE_LABEL and criterion.kind == "top-1"
    if not is_usual or plain.has_one_score:
        return f"{SCRIPT_FILE} was not written: it is for one label an image, one score a class and failures of the kind top-1."
    places = dataset.locations(rows)
    if not places or any(place is None for place in places):
        return f"{SCRIPT_FILE} was not written: not every measured sample has an image of its own."
    n_copied = sum(not _is_plain_file(place) for place in places if place is not None)
    if n_copied > MAX_COPIED:
        return f"{SCRIPT_FILE} was not written: {n_copied:,} measured images lie in archives or elsewhere."
    if any(DEEP_NOTES & set(notes or ()) for notes in _notes(samples, rows)):
        return (
            f"{SCRIPT_FILE} was not written: some measured images have more than 8 bits a channel."
        )
    return ""


def _notes(samples: SampleSet, rows: IntArray) -> list[list[str] | None]:
    table = samples.dataset.table
    if "notes" not in table.column_names:
        return []
    notes: list[list[str] | None] = table.column("notes").take(rows).to_pylist()
    return notes


def _labelled(samples: SampleSet) -> IntArray:
    return samples.rows[samples.dataset.is_labelled[samples.rows]]


def _is_plain_file(place: str) -> bool:
    return is_local(place) and split_range(place)[1] is None


def _image_places(samples: SampleSet, rows: IntArray, staging: Path, folder: Path) -> list[str]:
    """Return where the images are, seen from the folder; those that are no files of their own are copied into it."""
    found = []
    ids, places = samples.dataset.sample_ids(rows), samples.dataset.locations(rows)
    for name, place in zip(ids, places, strict=True):
        if place is None:
            continue
        if _is_plain_file(place):
            found.append(_relative(local_path(place), folder))
            continue
        copy = Path(IMAGES_FOLDER) / name
        (staging / copy).parent.mkdir(exist_ok=True)
        (staging / copy).write_bytes(read_location(place))
        found.append(copy.as_posix())
    return found


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.resolve().as_posix()


def _figures(
    samples: SampleSet,
    rows: IntArray,
    slices: Sequence[FailureSlice],
    changes: Sequence[GroupChange],
) -> list[dict[str, object]]:
    """Return the claims on all samples, slices and classes, each with the positions of its images in the list."""
    members = _members(samples, rows, slices)
    return [
        {
            "of": change.group,
            "rows": np.flatnonzero(np.isin(rows, members[change.kind, change.group])).tolist(),
            "right_before": change.right_before,
            "right_after": change.right_after,
        }
        for change in changes
        if (change.kind, change.group) in members
        and len(members[change.kind, change.group]) == change.n_samples
    ]


def _members(
    samples: SampleSet, rows: IntArray, slices: Sequence[FailureSlice]
) -> dict[tuple[GroupKind, str], IntArray]:
    dataset = samples.dataset
    found = {(GroupKind.OVERALL, "overall"): rows}
    for code, name in enumerate(dataset.class_names):
        found[GroupKind.CLASS, name] = rows[dataset.labels[rows] == code]
    for slice_ in slices:
        own = slice_.class_rows(samples.only(rows))
        found[GroupKind.SLICE, slice_.title] = own[slice_.rule.members(samples, own)]
    return found


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def plan_with(plan: RepairPlan, slices: Sequence[FailureSlice]) -> RepairPlan:
    """Return a plan that holds its slices themselves.

    Raises:
        ConfigError: if a slice of the plan is not among those given.
    """
    by_id = {found.slice_id: found for found in slices}
    missing = [name for name in plan.slice_ids if name not in by_id]
    if missing:
        raise ConfigError("The plan names slices that are not there.", where="plan", given=missing)
    return plan.model_copy(update={"slices": tuple(by_id[name] for name in plan.slice_ids)})


def plan_text(plan: RepairPlan) -> str:
    """Return a plan as the content of a file."""
    return (
        json.dumps(
            {"format": FORMAT, "version": VERSION, "plan": json.loads(plan.model_dump_json())},
            indent=1,
        )
        + "\n"
    )


def read_plan(path: Path) -> RepairPlan:
    """Read a plan that `plan_text` made, with its slices.

    Raises:
        ConfigError: if the file is no plan, of another version, has unknown or wrong fields, or no slices; with what is wrong.
    """
    plan = _parse(_content(path), where=str(path))
    if not plan.slices:
        raise ConfigError(
            "The plan holds no slices, so there is nothing to repair.", where=str(path), fix=REWRITE
        )
    own = tuple(found.slice_id for found in plan.slices)
    if own != plan.slice_ids:
        raise ConfigError(
            "The slices of the plan are not those that slice_ids names: one of the two was edited.",
            where=str(path),
            given=list(plan.slice_ids)[:_N_SHOWN],
            fix=f"Set slice_ids to {list(own)[:_N_SHOWN]}, or use the plan as it was written.",
        )
    return plan


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"The plan cannot be read: {error.strerror or error}.",
            where=str(path),
            fix="Correct the path.",
        ) from error
    except ValueError as error:
        raise ConfigError(f"The plan is no JSON: {error}.", where=str(path), fix=REWRITE) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ConfigError("This is no repair plan.", where=str(path), fix=REWRITE)
    if content.get("version") != VERSION:
        raise ConfigError(
            f"The plan is of another version than {VERSION}.",
            where=str(path),
            given=content.get("version"),
            fix="Update weakspot.",
        )
    unknown = sorted(set(content) - {"format", "version", "plan"})
    if unknown:
        raise ConfigError(
            "The plan has unknown fields.", where=str(path), given=unknown, fix="Remove them."
        )
    return content


def _parse(content: dict[str, Any], *, where: str) -> RepairPlan:
    try:
        return RepairPlan.model_validate_json(json.dumps(content.get("plan")))
    except ValidationError as error:
        found = error.errors(include_url=False)
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'plan'}: {one['msg']}" for one in found[:_N_SHOWN]
        ]
        raise_all(
            problems, error=ConfigError, what="The plan cannot be used:", where=where, fix=REWRITE
        )
        raise


WEIGHTS_FILE = "training_weights.csv"
KEY = "key"
ROWS_FILE = "training_rows.txt"
GROUP_OBJECTIVES_FILE = "group_objectives.json"
TRAINED_ON = (Split.TRAIN, Split.POOL, Split.SYNTHETIC)


def write_training_lists(
    folder: Path, selection: TrainingSelection, dataset: Dataset
) -> tuple[Path, ...]:
    """Write which samples a repair trains on and how much each counts, in the order of the data set.

    Args:
        folder: where to; files of the same names are replaced.
        selection: what is trained on.
        dataset: the samples.

    Returns:
        `training_weights.csv`; `training_rows.txt`, positions among the training samples; `group_objectives.json` if there are any.

    Raises:
        DataError: if validation or test samples are selected.
    """
    _refuse_measured(selection.rows, dataset)
    order = np.argsort(selection.rows, kind="stable")
    rows = selection.rows[order]
    files = [folder / WEIGHTS_FILE, folder / ROWS_FILE]
    _write_weights(files[0], rows, selection.weights[order].tolist(), dataset)
    training = dataset.rows_of(Split.TRAIN)
    positions = np.searchsorted(
        training, rows[dataset.splits[rows] == SPLIT_ORDER.index(Split.TRAIN)]
    )
    files[1].write_text(
        "".join(f"{position}\n" for position in positions.tolist()), encoding="ascii"
    )
    if selection.group_objectives:
        files.append(folder / GROUP_OBJECTIVES_FILE)
        files[2].write_text(
            json.dumps(_group_objectives(selection, dataset), indent=1) + "\n", encoding="utf-8"
        )
    return tuple(files)


def _write_weights(path: Path, rows: IntArray, weights: Sequence[float], dataset: Dataset) -> None:
    ids, places, splits, keys = (
        dataset.sample_ids(rows),
        dataset.locations(rows),
        dataset.splits[rows].tolist(),
        keys_of(rows, dataset),
    )
    labels = shown_labels(rows, dataset)
    lines = [
        [
            name,
            shown_location(place) if place else "",
            label,
            repr(float(weight)),
            SPLIT_ORDER[split].value,
            key,
        ]
        for name, place, label, weight, split, key in zip(
            ids, places, labels, weights, splits, keys, strict=True
        )
    ]
    path.write_text(csv_text((*COLUMNS, KEY), lines, is_data=True), encoding="utf-8")


def keys_of(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return the user's own names of samples: what the column `key` says, else which row or file it was."""
    return [str(key) for key in dataset.table.column("key").take(rows).to_pylist()]


def shown_labels(rows: IntArray, dataset: Dataset) -> list[str]:
    """Return labels as a manifest has them: several with `;` between them, or as a JSON list if a name holds a separator."""
    names = dataset.class_names
    if dataset.task is Task.SINGLE_LABEL:
        return [names[code] if code >= 0 else "" for code in dataset.labels[rows].tolist()]
    is_plain = not any(mark in name for name in names for mark in ";|")
    lists = [[names[code] for code in np.flatnonzero(has)] for has in dataset.label_matrix[rows]]
    return [";".join(own) if is_plain else json.dumps(own, ensure_ascii=False) for own in lists]


def _group_objectives(selection: TrainingSelection, dataset: Dataset) -> list[dict[str, object]]:
    return [
        {
            "weight": float(sum(selection.weights[group].sum() for group in group_objective)),
            "groups": [dataset.sample_ids(selection.rows[group]) for group in group_objective],
        }
        for group_objective in selection.group_objectives
    ]


def _refuse_measured(rows: IntArray, dataset: Dataset) -> None:
    wrong = rows[~np.isin(dataset.splits[rows], [SPLIT_ORDER.index(split) for split in TRAINED_ON])]
    if len(wrong):
        raise DataError(
            f"{len(wrong)} samples are for measuring, so nothing may be trained on them.",
            where="training selection",
            given=dataset.sample_ids(wrong[:3]),
        )


HEAD_FILE = "repaired_head.safetensors"
PLAN_FILE = "plan.json"
README_FILE = "README.txt"
MODEL_FOLDER = "model"
OWN_FILES = (
    HEAD_FILE,
    PLAN_FILE,
    README_FILE,
    WEIGHTS_FILE,
    ROWS_FILE,
    GROUP_OBJECTIVES_FILE,
    SCRIPT_FILE,
    FIGURES_FILE,
    PREPROCESSING_FILE,
)
WIDE_KINDS = frozenset({"float32", "float64"})


def export_repair(
    folder: Path,
    bench: RepairBench,
    *,
    head: Head,
    selection: TrainingSelection,
    plan: RepairPlan,
    changes: Sequence[GroupChange] = (),
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write everything of a repair that a user takes away into a folder, all of it or nothing.

    Args:
        folder: made if need be; no file in it is overwritten.
        bench: samples, slices and the user's classifier; one that is not known or cannot be written becomes a note.
        head: the repaired last layer, rows in the order of the data set's classes.
        selection: what the head was trained on.
        plan: what was meant to be changed.
        changes: what is claimed of it, which a script in the folder gives again; empty if nothing was measured.

    Returns:
        Every file, the main one of the classifier first if it could be written; then what could not be written, and what to know.

    Raises:
        ModelError: if files of the same names are there; they are listed.
    """
    refuse_existing(folder, OWN_FILES)
    classifier, dataset = bench.prepared.classifier, bench.samples.dataset
    with new_files(folder) as staging:
        write_head(staging / HEAD_FILE, head, dataset.class_names)
        text = plan_text(plan_with(plan, bench.slices))
        (staging / PLAN_FILE).write_text(text, encoding="utf-8")
        write_training_lists(staging, selection, dataset)
        model, notes = _write(classifier, head, dataset.class_names, staging / MODEL_FOLDER)
        main = [path.relative_to(staging) for path in model]
        repaired = model[0] if model else None
        note = write_reproduction(staging, folder, bench, repaired=repaired, changes=changes)
        notes = (*notes, *filter(None, [note]))
        plain = plain_model_of(classifier)
        text = filled(
            "readme.txt",
            model=main,
            notes=notes,
            has_groups=bool(selection.group_objectives),
            has_script=(staging / SCRIPT_FILE).exists(),
            made=None if plain is None else plain.preprocessing,
        )
        (staging / README_FILE).write_text(text, encoding="utf-8")
        names = [*main, *(name for name in files_in(staging) if name not in main)]
    return tuple(folder / name for name in names), notes


def _write(
    classifier: Classifier | None, head: Head, class_names: Sequence[str], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the classifier's own files with the head in them, the main one first, or why there are none."""
    if classifier is None:
        return (), (
            "The classifier itself is not known here, only its predictions, so it was not written.",
        )
    if not isinstance(classifier, TakesHead):
        return (), (
            f"A classifier of this kind ({type(classifier).__name__}) cannot be written with another last layer.",
        )
    try:
        files = classifier.write_repaired(
            head.reordered(class_names, classifier.class_names), folder
        )
    except WeakspotError as error:
        return (), (f"The classifier was not written: {error.what}",)
    kind = getattr(classifier, "layer_kind", None)
    is_rounded = kind is not None and kind not in WIDE_KINDS
    return files, (
        (f"The classifier keeps its last layer in {kind}, so the head was rounded to that.",)
        if is_rounded
        else ()
    )


@dataclass(frozen=True, kw_only=True)
class RepairJournal:
    """The finished predictions of one run.

    Args:
        store: of the project.
        run_id: the run.
        key: everything that predictions depend on beside their plan; another key makes kept ones worthless.
    """

    store: ProjectStore
    run_id: str
    key: str

    def kept(self, result: RepairResult) -> RepairResult | None:
        """Return the finished result of the same plan, measured on the same samples, or None."""
        try:
            content = self.store.runs.load_artefact(self.run_id, self._name(result))
            entry = json.loads(content)
            is_same = entry["key"] == self._key(result)
            return RepairResult.model_validate(entry["result"]) if is_same else None
        except (StoreError, ValueError, TypeError, KeyError):
            return None

    def keep(self, result: RepairResult) -> None:
        """Write a finished result."""
        entry = {"key": self._key(result), "result": result.model_dump(mode="json")}
        with self.store.writing():
            self.store.runs.save_artefact(
                self.run_id, self._name(result), json.dumps(entry).encode()
            )

    def _name(self, result: RepairResult) -> str:
        return f"repair-{result.plan.repairer}.json"

    def _key(self, result: RepairResult) -> str:
        content = f"{self.key}{result.plan.model_dump_json()}{result.measured_on.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()


HEAD = PurePath(HEAD_FILE)


def set_repair_aside(store: ProjectStore, record: RunRecord) -> RunRecord:
    """Return a run that is about to be repaired: what was repaired before is among its earlier repairs, whatever comes of this one."""
    kept = keep_current(store, record)
    return record.model_copy(
        update={
            "earlier_repairs": (*record.earlier_repairs, *kept),
            # To the microsecond: repairs are ordered by it, and small ones take less than a second.
            "repaired": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
    )


def keep_current(store: ProjectStore, record: RunRecord) -> tuple[StoredRepair, ...]:
    """Copy the retrained layer of the current repair, and return the repair; none if nothing came of it yet."""
    if not any(result.arms or result.needs for result in record.repairs):
        return ()
    kept = StoredRepair(
        repair_id=current_id(record),
        made=record.repaired,
        repairs=record.repairs,
        advice=record.advice,
    )
    _copy(store, record.run_id, HEAD.name, head_name(kept.repair_id))
    return (kept,)


def forget_repeats(record: RunRecord) -> RunRecord:
    """Return a run that was just repaired without earlier repairs that came to the same, as after an interruption at the last moment."""
    others = tuple(one for one in record.earlier_repairs if one.repairs != record.repairs)
    return record.model_copy(update={"earlier_repairs": others})


def current_id(record: RunRecord) -> str:
    """Return what the current repair is called among all of the run; empty if there is none."""
    if not record.repairs:
        return ""
    made_of = f"{record.repaired} {[result.plan.model_dump_json() for result in record.repairs]}"
    return hashlib.sha256(made_of.encode()).hexdigest()[:12]


def go_back(
    store: ProjectStore, run_id: str, repair_id: str, *, patience: float = 0.0
) -> RunRecord:
    """Make an earlier repair the current one again; the one that was current is kept in its place.

    Raises:
        DataError: if the run has no such repair.
    """
    with store.writing(patience=patience):
        record = store.runs.load(run_id)
        chosen = next((one for one in record.earlier_repairs if one.repair_id == repair_id), None)
        if chosen is None:
            raise DataError(
                "The run has no such repair.",
                given=repair_id,
                fix=f"Choose one of {[one.repair_id for one in record.earlier_repairs]}.",
            )
        kept = keep_current(store, record)
        others = [one for one in record.earlier_repairs if one is not chosen]
        _copy(store, run_id, head_name(repair_id), HEAD.name)
        changed = record.model_copy(
            update={
                "repairs": chosen.repairs,
                "repaired": chosen.made,
                "advice": chosen.advice,
                "earlier_repairs": tuple(sorted([*others, *kept], key=lambda one: one.made)),
            }
        )
        store.runs.save(changed)
    return changed


def head_name(repair_id: str) -> str:
    """Return the file of an earlier repair's retrained layer."""
    return f"{HEAD.stem}-{repair_id}{HEAD.suffix}"


def _copy(store: ProjectStore, run_id: str, source: str, target: str) -> None:
    if (store.runs.run_folder(run_id) / source).is_file():
        store.runs.save_artefact(run_id, target, store.runs.load_artefact(run_id, source))
