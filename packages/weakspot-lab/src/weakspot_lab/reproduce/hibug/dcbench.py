"""HiBug's Table 1 on dcbench itself: its classifiers' predictions, its true slices, and images that are embedded here."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.words.wordnet import hyponyms
from weakspot_lab.bench.problem import BenchProblem, KnownSlice, ProblemKind
from weakspot_lab.reproduce.dcbench_files import (
    INDEX,
    SliceProblem,
    SliceTables,
    read_problems,
    read_tables,
)
from weakspot_lab.reproduce.hibug.settings import PAPER_THRESHOLDS, score_rows
from weakspot_lab.reproduce.photographs import embed_files, open_text_embedder
from weakspot_lab.reproduce.protocol import Context, Step, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest

SOURCE = "dcbench"
SECONDS_A_PROBLEM = 900.0
MAX_KINDS = 100
CELEBA_WORDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bald": (("bald",), ("hair", "haired")),
    "bangs": (("bangs", "fringe"), ("forehead",)),
    "blurry": (("blurry", "blurred"), ("sharp", "clear")),
    "eyeglasses": (("eyeglasses", "glasses"), ()),
    "goatee": (("goatee", "beard"), ()),
    "male": (("male", "man", "men", "boy"), ("female", "woman", "women", "girl")),
    "mustache": (("mustache", "moustache"), ()),
    "no_beard": (("beardless", "shaven"), ("beard", "bearded")),
    "smiling": (("smiling", "smile"), ("serious", "frowning")),
    "wearing_earrings": (("earrings",), ()),
    "wearing_hat": (("hat", "cap"), ()),
    "wearing_lipstick": (("lipstick",), ()),
    "wearing_necklace": (("necklace",), ()),
    "wearing_necktie": (("necktie", "tie"), ()),
    "young": (("young",), ("old", "elderly")),
}
"""Words for having and for lacking an attribute of CelebA that dcbench uses; hair colours follow from their names."""
HAIR = ("black", "blond", "brown", "gray")


def dcbench_steps(request: ReproduceRequest) -> tuple[Step, ...]:
    """Return a step for every kind of problem that is there.

    Raises:
        DataError: if the index names a kind that dcbench has not.
    """
    assert request.data is not None
    problems = read_problems(request.data)
    counts: dict[ProblemKind, int] = {}
    for one in problems:
        kind = _kind(one, request.data)
        counts[kind] = counts.get(kind, 0) + 1
    return tuple(
        Step(
            name=f"dcbench-{kind}",
            seconds=SECONDS_A_PROBLEM * request.pick(number, 1),
            work=partial(_measure, kind=kind),
        )
        for kind, number in counts.items()
    )


def _kind(problem: SliceProblem, folder: Path) -> ProblemKind:
    name = problem.category.replace("_", "-")
    for kind in get_args(ProblemKind)[:3]:
        if kind == name:
            found: ProblemKind = kind
            return found
    raise DataError(
        "The index names a kind of problem that dcbench has not.",
        where=str(folder / INDEX),
        given=problem.category,
        fix="It has correlation, rare and noisy_label.",
    )


def _measure(context: Context, kind: ProblemKind) -> StepResult:
    """Run the attribute method, and Domino's mixture beside it, on the problems of one kind."""
    return score_rows(_problems(context, kind)) | {"thresholds": PAPER_THRESHOLDS}


def _problems(
    context: Context, kind: ProblemKind
) -> Iterator[tuple[int, BenchProblem, float | None]]:
    folder = context.request.data
    assert folder is not None
    own = [one for one in read_problems(folder) if _kind(one, folder) == kind]
    for number, problem in enumerate(own[: context.request.pick(len(own), 1)]):
        tables = read_tables(problem, folder)
        yield (
            number,
            bench_problem(context, problem, tables, kind, number),
            strength_of(problem, tables),
        )


def bench_problem(
    context: Context, problem: SliceProblem, tables: SliceTables, kind: ProblemKind, number: int
) -> BenchProblem:
    """Return a problem whose validation images are for discovery and whose test images confirm, as dcbench has them."""
    embedder = context.shared("embedder", lambda: open_text_embedder(context.request.models))
    known: dict[Path, FloatArray] = context.shared("embeddings", dict)
    missing = sorted({path for path in tables.paths if path not in known})
    if missing:
        known.update(zip(missing, embed_files(embedder, missing), strict=True))
    target = _synset_word(problem.target)
    dataset = dataset_from_columns(
        class_names=(f"not {target}", target),
        labels=tables.targets,
        predictions=tables.probabilities.argmax(axis=1),
        probabilities=tables.probabilities,
    )
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(len(dataset)),
        spaces={
            "clip": EmbeddingSpace(
                encoder_id=embedder.encoder_id,
                embeddings=np.stack([known[path] for path in tables.paths]),
                has_text=True,
            )
        },
    )
    rows = np.arange(len(dataset))
    return BenchProblem(
        source=SOURCE,
        kind=kind,
        number=number,
        samples=samples,
        discovery=samples.only(rows[: tables.n_validation], name="validation images"),
        confirmation=samples.only(rows[tables.n_validation :], name="test images"),
        truths=tuple(_truths(problem, tables, dataset.class_names)),
        assistants=Assistants(embed_texts=embedder.embed_texts),
    )


def _truths(
    problem: SliceProblem, tables: SliceTables, class_names: tuple[str, ...]
) -> Iterator[KnownSlice]:
    """Yield the true slices that have members, each in the class of its members."""
    for place, name in enumerate(problem.slice_names):
        inside = tables.inside[:, place]
        if inside.any():
            code = int(np.bincount(tables.targets[inside]).argmax())
            words, beside = slice_words(problem, name)
            yield KnownSlice(
                class_name=class_names[code], inside=inside, words=words, same_attribute=beside
            )


def slice_words(problem: SliceProblem, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the right words for a slice, and words about the same attribute: its other values, or kinds of the rare thing.

    An attribute that has no word for being absent goes by the word for being present: it names what predictions follow.
    """
    found = re.fullmatch(rf"{re.escape(problem.target)}=\d_(.+)=(\d)", name)
    if found is None:
        word = _synset_word(name)
        return (word,), hyponyms(word, most=MAX_KINDS)
    attribute, is_there = found[1], found[2] == "1"
    if attribute.endswith("_hair"):
        colour = attribute.removesuffix("_hair")
        return (colour,), tuple(one for one in HAIR if one != colour)
    present, absent = CELEBA_WORDS.get(attribute, ((attribute.replace("_", " "),), ()))
    return (present, absent) if is_there or not absent else (absent, present)


def _synset_word(name: str) -> str:
    """Return the word of a synset such as `musical_instrument.n.01`, or of an attribute."""
    return re.sub(r"\.[nvars]\.\d+$", "", name).replace("_", " ")


def strength_of(problem: SliceProblem, tables: SliceTables) -> float | None:
    """Return the correlation of predictions with the feature on test images; None where the slices do not tell the feature.

    Of a correlation dcbench has two slices: the feature without the target, and the target without the feature.
    """
    if problem.category != "correlation" or tables.inside.shape[1] != 2:  # noqa: PLR2004 - two slices
        return None
    test = slice(tables.n_validation, None)
    with_target = tables.targets[test] == 1
    feature = np.where(with_target, ~tables.inside[test, 1], tables.inside[test, 0])
    said = tables.probabilities[test].argmax(axis=1)
    if feature.std() == 0 or said.std() == 0:
        return 0.0
    return float(np.corrcoef(feature, said)[0, 1])
