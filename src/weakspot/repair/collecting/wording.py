"""What is said of rows to collect; estimates say that they are some."""

from collections.abc import Mapping, Sequence

from weakspot.core.repairs import SliceNeed
from weakspot.core.training_sets import TrainingSelection
from weakspot.report.need_wording import need_sentences

FILE_SENTENCES = {
    "how_many.csv": "how many rows every slice has, lacks and could get; every figure says whether it is measured or an estimate.",
    "plan.json": "the slices, strategy and seed; weakspot repair --plan plan.json carries it out where the last layer is known.",
    "to_collect.csv": (
        "pool rows that fit each slice, in the order in which to take them: labelled ones first,\n"
        "  of these the ones that the classifier gets wrong; rows without a label may be of another class."
    ),
    "training_rows.txt": "positions, from 0, of the weighted rows among your training rows, without quarantined ones.",
    "training_weights.csv": (
        "how much each training row counts in your own training; weakspot.backends.torch_sampler.WeightedSamples draws by it."
    ),
    "group_objectives.json": "groups of rows of which only that with the largest mean loss counts.",
}


def readme_text(
    needs: Sequence[SliceNeed],
    files: Sequence[str],
    selections: Mapping[str, TrainingSelection],
    notes: Sequence[str],
) -> str:
    """Return the README of the folder."""
    lines = [
        "What weakspot repair wrote. Nothing was retrained, and none of your own files was changed.",
        "",
        *notes,
        "",
        *(f"{name}: {FILE_SENTENCES[name]}" for name in files if name in FILE_SENTENCES),
        *(f"weights/{name}/: the same for the strategy {name}." for name in list(selections)[1:]),
        "",
        *(f"{name}: {selection.note}" for name, selection in selections.items()),
        "",
        *(" ".join(need_sentences(need)) for need in needs),
    ]
    return "\n".join(lines) + "\n"
