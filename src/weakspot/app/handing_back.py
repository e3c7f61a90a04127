"""Handing a repair back: the classifier with its new last layer, the layer alone, the plan, and lists for one's own training."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.app.repair_plans import plan_text, plan_with, read_plan
from weakspot.app.training_lists import CONTESTS_FILE, ROWS_FILE, WEIGHTS_FILE, write_training_lists
from weakspot.backends.head_files import head_bytes, write_head
from weakspot.backends.new_files import files_in, new_files, refuse_existing
from weakspot.core.errors import WeakspotError
from weakspot.core.heads import Head
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import Classifier, TakesHead
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import TrainingSelection

__all__ = ["HandedBack", "hand_back", "head_content", "read_plan"]

HEAD_FILE = "repaired_head.safetensors"
PLAN_FILE = "plan.json"
README_FILE = "README.txt"
MODEL_FOLDER = "model"
WIDE_KINDS = frozenset({"float32", "float64"})


@dataclass(frozen=True, kw_only=True)
class HandedBack:
    """What was written for the user; iterating gives the files.

    Args:
        files: every file, the main one of the classifier first if it could be written.
        notes: what could not be written, and what to know.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Path]:
        """Yield the files."""
        return iter(self.files)


def hand_back(  # noqa: PLR0913 - one argument a record
    folder: Path,
    *,
    classifier: Classifier | None,
    head: Head,
    class_names: Sequence[str],
    selection: TrainingSelection,
    samples: SampleSet,
    plan: RepairPlan,
    slices: Sequence[FailureSlice],
) -> HandedBack:
    """Write everything of a repair that a user takes away into a folder, all of it or nothing.

    Args:
        folder: made if need be; no file in it is overwritten.
        classifier: the user's; None if only its predictions are known. If it cannot be written that becomes a note.
        head: its repaired last layer, rows in the order of `class_names`.
        class_names: the classes of the data set.
        selection: what the head was trained on.
        samples: of the project.
        plan: what was meant to be changed.
        slices: the slices that the plan names.

    Raises:
        ModelError: if files of the same names are there; they are listed.
    """
    refuse_existing(folder, [HEAD_FILE, PLAN_FILE, README_FILE, WEIGHTS_FILE, ROWS_FILE, CONTESTS_FILE])
    with new_files(folder) as staging:
        write_head(staging / HEAD_FILE, head, class_names)
        (staging / PLAN_FILE).write_text(plan_text(plan_with(plan, slices)), encoding="utf-8")
        write_training_lists(staging, selection, samples.dataset)
        model, notes = _written(classifier, head, class_names, staging / MODEL_FOLDER)
        main = [path.relative_to(staging) for path in model]
        (staging / README_FILE).write_text(_readme(main, notes, has_contests=bool(selection.contests)), encoding="utf-8")
        names = [*main, *(name for name in files_in(staging) if name not in main)]
    return HandedBack(files=tuple(folder / name for name in names), notes=notes)


def head_content(head: Head, class_names: Sequence[str]) -> bytes:
    """Return a head as the content of a safetensors file."""
    return head_bytes(head, class_names)


def _written(
    classifier: Classifier | None, head: Head, class_names: Sequence[str], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the classifier's own files with the head in them, the main one first, or why there are none."""
    if classifier is None:
        return (), ("The classifier itself is not known here, only what it said, so it was not written.",)
    if not isinstance(classifier, TakesHead):
        return (), (f"A classifier of this kind ({type(classifier).__name__}) cannot be written with another last layer.",)
    try:
        files = classifier.write_repaired(head.reordered(class_names, classifier.class_names), folder)
    except WeakspotError as error:
        return (), (f"The classifier was not written: {error.what}",)
    kind = getattr(classifier, "layer_kind", None)
    is_rounded = kind is not None and kind not in WIDE_KINDS
    return files, ((f"The classifier keeps its last layer in {kind}, so the head was rounded to that.",) if is_rounded else ())


def _readme(model: Sequence[Path], notes: Sequence[str], *, has_contests: bool) -> str:
    named = "".join([model[0].as_posix(), ", with the files beside it" if len(model) > 1 else ""]) if model else ""
    main = f"{named}: your classifier with the repaired last layer; all else in it is as it was."
    contests = f"{CONTESTS_FILE}: groups of samples of which only the one with the largest mean loss counts, with its weight."
    lines = [
        "What weakspot repair wrote. None of your own files was changed.",
        "",
        *([main] if model else []),
        *notes,
        f"{HEAD_FILE}: the last layer alone: weight [classes, features], bias [classes]; scores = features @ weight.T + bias.",
        "  In torch: torch.nn.Linear(...).load_state_dict(safetensors.torch.load_file(file)).",
        f"{PLAN_FILE}: the slices, strategy and seed; weakspot repair --plan {PLAN_FILE} does the same again.",
        f"{WEIGHTS_FILE}: what it was trained on and how much each sample counts, for your own training of the whole network;",
        "  weakspot.backends.torch_sampler.WeightedSamples draws by it, loss_weights(file, ids) gives factors for losses.",
        f"{ROWS_FILE}: positions, from 0, of those samples among your training samples in the order of the manifest, without",
        "  quarantined ones; samples from the pool and generated ones are in the table only.",
        *([contests] if has_contests else []),
    ]
    return "\n".join(lines) + "\n"
