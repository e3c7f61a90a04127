"""Studies with several people: the table of phrases, repairs by them, and the tutorial, a tiny planted world.

Which phrases are repaired is written down before the work starts, and every result as soon as it is known, so an interrupted work
goes on where it was. The tutorial needs neither project nor model.
"""

import hashlib
import io
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import numpy as np
from PIL import Image, ImageDraw
from pydantic import JsonValue, StringConstraints, TypeAdapter, ValidationError

from weakspot.core.arrays import BoolArray, FloatArray, generator
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError, UnavailableError
from weakspot.core.evidence import GivenGroups
from weakspot.core.run import StageProgress
from weakspot.core.slices import FailureSlice
from weakspot.discover.error_score import error_scores
from weakspot.project.project import Project
from weakspot.repair.bench import RepairBench
from weakspot.store import atomic
from weakspot.store.csv_tables import csv_text
from weakspot.web.services.classes import ScoredPhrase, phrase_score
from weakspot.web.services.phrase_checks import phrase_slice
from weakspot.web.services.view import Moment, View
from weakspot.web.services.workspace import Workspace

Triple = tuple[str, str, float | None]


class PhraseFigures(View):
    """A phrase about a class, with its figures.

    Args:
        class_title: the class.
        phrase: the words.
        threshold: the person's own threshold; null for the one that is best on the discovery half.
        score: Error Score on the discovery half, where the threshold was chosen.
        held_out_score: Error Score on parts of it that the threshold was not chosen on.
        confirmed_score: Error Score on the confirmation half; null if it was not asked.
        p_value: of the confirmation half; null if it was not asked.
        fit: whether the words match images, and separate failures.
        source: `own` words, a `suggestion` as it was clicked, one that was `edited`, or `not known`.
    """

    class_title: str
    phrase: str
    threshold: float | None
    score: float | None
    held_out_score: float | None
    confirmed_score: float | None = None
    p_value: float | None = None
    fit: str = ""
    source: str = "not known"


class StoredPhrase(PhraseFigures):
    """A phrase as it was kept.

    Args:
        seconds: how long this person had been at work in the study.
        created: when it was submitted.
    """

    seconds: float
    created: Moment


class RepairFigures(View):
    """What repairing by one phrase did, on test samples.

    Args:
        worst_before: accuracy of the worst group before; null if it could not be repaired.
        worst_after: accuracy of the worst group after.
        note: why it could not be repaired.
        given: what it did to groups that are the same for everybody; null if the study has none.
    """

    worst_before: float | None = None
    worst_after: float | None = None
    note: str = ""
    given: "GivenFigures | None" = None


class GivenFigures(View):
    """Accuracy over given groups on test samples: the same groups for every phrase, so that phrases can be compared.

    Args:
        given_worst_before: of the worst group before.
        given_worst_after: of the worst group after.
        given_average_before: of all samples before.
        given_average_after: of all samples after.
        given_gap_before: average minus worst before.
        given_gap_after: average minus worst after.
        given_change_low: of the interval of the change of the worst group, by a paired bootstrap.
        given_change_high: of the same.
    """

    given_worst_before: float | None = None
    given_worst_after: float | None = None
    given_average_before: float | None = None
    given_average_after: float | None = None
    given_gap_before: float | None = None
    given_gap_after: float | None = None
    given_change_low: float | None = None
    given_change_high: float | None = None


class StudyTableRow(GivenFigures, StoredPhrase):
    """A phrase of a study with what repairing by it did: nulls if that was not worked out.

    Args:
        person_id: whose it is.
        person: their name.
        is_accepted: whether it became a slice.
        agreed: when this person agreed to take part; empty if nobody was asked.
        attention: whether they passed the attention check; null if it was not asked or answered.
    """

    person_id: str
    person: str
    is_accepted: bool
    worst_before: float | None = None
    worst_after: float | None = None
    note: str = ""
    agreed: str = ""
    attention: bool | None = None

    @property
    def triple(self) -> Triple:
        """Return what a repair depends on."""
        return self.class_title, self.phrase, self.threshold


class Spread(View):
    """Mean and standard deviation of some figures; null if there are too few."""

    mean: float | None
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(
            mean=mean(values) if values else None,
            sd=stdev(values) if len(values) > 1 else None,
            n=len(values),
        )


class StudySummary(View):
    """A study in a few figures.

    Args:
        n_people: people who submitted a phrase.
        n_phrases: how many they submitted.
        n_accepted: what was accepted of it.
        best_score: the best Error Score of every person on every class they worked on.
        best_held_out_score: the same on samples that thresholds were not chosen on.
        minutes: time of every person on every class.
        worst_after: worst-group accuracy after repair by the best phrase of every person and class.
        given_worst_after: the same over the groups that are given, which are the same for everybody.
        given_gap_after: the gap over these.
        n_by_source: phrases by where they came from.
    """

    n_people: int
    n_phrases: int
    n_accepted: int
    best_score: Spread
    best_held_out_score: Spread
    minutes: Spread
    worst_after: Spread
    given_worst_after: Spread
    given_gap_after: Spread
    n_by_source: dict[str, int]


class StudyTable(View):
    """All phrases of a study, oldest first."""

    rows: list[StudyTableRow]
    summary: StudySummary


def study_table(
    entries: Sequence[StudyTableRow],
    repairs: Mapping[Triple, RepairFigures],
    seconds: Mapping[tuple[str, str], float],
    agreements: Mapping[str, tuple[str, bool | None]] | None = None,
) -> StudyTable:
    """Return the table of a study.

    Args:
        entries: the phrases, oldest first, without what repairs did.
        repairs: what repairing by some of them did.
        seconds: time by person and class.
        agreements: when everybody agreed, and whether they passed the attention check, by person.
    """
    names = _different_names(entries)
    rows = []
    for entry in entries:
        agreed, attention = (agreements or {}).get(entry.person_id, ("", None))
        figures = {"person": names[entry.person_id], "agreed": agreed, "attention": attention}
        if repair := repairs.get(entry.triple):
            figures |= repair.model_dump(exclude={"given"})
            figures |= repair.given.model_dump() if repair.given is not None else {}
        rows.append(entry.model_copy(update=figures))
    return StudyTable(rows=rows, summary=_summary(rows, seconds))


def best_triples(entries: Sequence[StudyTableRow]) -> list[Triple]:
    """Return the best phrase of every person and class, each once; the earlier of two that are equally good."""
    return list(dict.fromkeys(entry.triple for entry in _best(entries).values()))


def table_csv(table: StudyTable) -> bytes:
    """Return the rows as CSV whose texts no spreadsheet takes for formulas; numbers stay numbers."""
    first = ["person", *StoredPhrase.model_fields, "is_accepted"]
    more = [name for name in StudyTableRow.model_fields if name not in (*first, "person_id")]
    columns = [*first, *more]
    rows = [[_cell(getattr(row, name)) for name in columns] for row in table.rows]
    return csv_text(columns, rows).encode("utf-8-sig")


def timings_csv(stretches: Sequence[tuple[str, str, float, str]]) -> bytes:
    """Return stretches of time at work as CSV: person, class, seconds, and when each ended."""
    rows = [[_cell(value) for value in row] for row in stretches]
    return csv_text(["person", "class_title", "seconds", "ended"], rows).encode("utf-8-sig")


def _best(entries: Sequence[StudyTableRow]) -> dict[tuple[str, str], StudyTableRow]:
    best: dict[tuple[str, str], StudyTableRow] = {}
    for entry in entries:
        place = entry.person_id, entry.class_title
        if place not in best or _rank(entry) > _rank(best[place]):
            best[place] = entry
    return best


def _rank(entry: StudyTableRow) -> tuple[bool, float, float]:
    """Return how good a phrase is: what was accepted goes first, then what holds on other samples than it was chosen on."""
    held_out, own = entry.held_out_score, entry.score
    return entry.is_accepted, -1.0 if held_out is None else held_out, -1.0 if own is None else own


def _summary(
    rows: Sequence[StudyTableRow], seconds: Mapping[tuple[str, str], float]
) -> StudySummary:
    best = _best(rows).values()
    return StudySummary(
        n_people=len({row.person_id for row in rows}),
        n_phrases=len(rows),
        n_accepted=sum(row.is_accepted for row in rows),
        best_score=Spread.of(_largest(rows, "score")),
        best_held_out_score=Spread.of(_largest(rows, "held_out_score")),
        minutes=Spread.of([total / 60 for total in seconds.values() if total > 0]),
        worst_after=Spread.of(_known([row.worst_after for row in best])),
        given_worst_after=Spread.of(_known([row.given_worst_after for row in best])),
        given_gap_after=Spread.of(_known([row.given_gap_after for row in best])),
        n_by_source=dict(Counter(row.source for row in rows)),
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _largest(rows: Sequence[StudyTableRow], name: str) -> list[float]:
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        value: float | None = getattr(row, name)
        if value is not None:
            place = row.person_id, row.class_title
            found[place] = max(value, found.get(place, value))
    return list(found.values())


def _different_names(entries: Sequence[StudyTableRow]) -> dict[str, str]:
    """Return a name for everybody, numbered where several have the same."""
    people = dict.fromkeys((entry.person_id, entry.person) for entry in entries)
    names: dict[str, str] = {}
    used: set[str] = set()
    for person_id, name in people:
        number, shown = 1, name
        while shown in used:
            number += 1
            shown = f"{name} ({number})"
        used.add(shown)
        names[person_id] = shown
    return names


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:.6g}"


FOLDER = "studies"
STRATEGY = "worst-slice"
STAGE = "repairs"
NO_THRESHOLD = "The words do not pick out failures at any threshold."
TRIPLES: TypeAdapter[list[Triple]] = TypeAdapter(list[Triple])


def ask_for_repairs(
    project: Project, study: str, triples: Sequence[Triple], *, groups: str = ""
) -> None:
    """Write down which phrases shall be repaired by, and over which given groups; the next work of the study reads it."""
    folder = _folder(project)
    folder.mkdir(exist_ok=True)
    atomic.write_json(
        folder / f"{study}.asked.json",
        {"phrases": [[title, phrase, cut] for title, phrase, cut in triples], "groups": groups},
    )


def repairs(
    project: Project,
    progress: StageProgress,
    *,
    study: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")],
) -> dict[str, JsonValue]:
    """Retrain by every phrase of a study that was asked for and was not repaired yet."""
    asked, groups = _read_asked(project, study)
    workspace = Workspace(project)
    key, known = _key(workspace, groups), repairs_of(workspace, study, groups=groups)
    missing = [triple for triple in asked if triple not in known]
    bench: RepairBench | None = None
    for number, triple in enumerate(missing):
        progress(STAGE, number, len(missing))
        bench = bench or _bench(workspace, groups)
        figures = _figures(workspace, bench, triple).model_dump(mode="json")
        _keep(_journal(project, study), {"key": key, "triple": triple, "figures": figures})
    progress(STAGE, len(missing), len(missing))
    return {"study": study, "n_phrases": len(asked), "n_repaired": len(missing)}


def repairs_of(
    workspace: Workspace, study: str, *, groups: str = ""
) -> dict[Triple, RepairFigures]:
    """Return what repairing by phrases of a study did; lines of other samples or settings are passed over."""
    path = _journal(workspace.project, study)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    key, known = _key(workspace, groups) if lines else "", dict[Triple, RepairFigures]()
    for line in lines:
        try:
            entry = json.loads(line)
            title, phrase, threshold = entry["triple"]
            if entry["key"] == key:
                figures = RepairFigures.model_validate(entry["figures"])
                known[title, phrase, threshold] = figures
        except (ValueError, KeyError, TypeError):
            continue
    return known


def _journal(project: Project, study: str) -> Path:
    """Return the file of what repairs by phrases of a study did, a line each."""
    return _folder(project) / f"{study}.jsonl"


def _keep(path: Path, entry: dict[str, object]) -> None:
    """Write a line, and be sure that it is on disk; one that a kill cut off before is ended first."""
    text = json.dumps(entry)
    with path.open("a+b") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            text = text if stream.read(1) == b"\n" else f"\n{text}"
        stream.write(f"{text}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def _folder(project: Project) -> Path:
    return project.store.data / FOLDER


def _read_asked(project: Project, study: str) -> tuple[list[Triple], str]:
    path = _folder(project) / f"{study}.asked.json"
    if not path.exists():
        raise DataError(
            "Nothing was asked for in this study.",
            fix="Start the repairs from the page of the study.",
        )
    try:
        written = atomic.read_json(path)
        triples = list(dict.fromkeys(TRIPLES.validate_python(written.get("phrases"))))
        return triples, str(written.get("groups", ""))
    except ValidationError as error:
        raise DataError(
            "The list of phrases of the study cannot be read.", fix="Start the repairs again."
        ) from error


def _key(workspace: Workspace, groups: str) -> str:
    content = f"{STRATEGY}{workspace.prepared.inputs}{workspace.project.settings.model_dump_json()}"
    content += f" groups {groups}" if groups else ""
    return hashlib.sha256(content.encode()).hexdigest()


def _bench(workspace: Workspace, groups: str) -> RepairBench:
    """Return the bench of the project; its penalty is looked for once and given to all phrases, and so are given groups."""
    settings = workspace.project.settings
    if groups:
        repair = settings.repair.model_copy(update={"groups": groups})
        settings = settings.model_copy(update={"repair": repair})
    bench = RepairBench.of(workspace.prepared, settings)
    penalty = bench.trainer.penalty
    repair = settings.repair.model_copy(update={"l2": penalty}) if penalty else settings.repair
    return replace(bench, settings=settings.model_copy(update={"repair": repair}))


def _figures(workspace: Workspace, bench: RepairBench, triple: Triple) -> RepairFigures:
    try:
        own = replace(bench, slices=(_slice(workspace, triple),))
        arm = own.arm(STRATEGY, own.selection(STRATEGY), is_baseline=False)
    except (DataError, ModelError, NotEnoughDataError, UnavailableError) as error:
        return RepairFigures(note=error.what)
    given = None if arm.given is None else _given(arm.given)
    if arm.spread is None:
        return RepairFigures(note="There are fewer than two groups to compare.", given=given)
    return RepairFigures(
        worst_before=arm.spread.worst_before, worst_after=arm.spread.worst_after, given=given
    )


def _given(found: GivenGroups) -> GivenFigures:
    """Return worst, average and gap over given groups, as the papers define them."""
    averages = {
        "given_average_before": found.overall_before,
        "given_average_after": found.overall_after,
    }
    if found.spread is None:
        return GivenFigures(**averages)
    worst = found.spread.worst_before, found.spread.worst_after
    return GivenFigures(
        **averages,
        given_worst_before=worst[0],
        given_worst_after=worst[1],
        given_gap_before=found.overall_before - worst[0],
        given_gap_after=found.overall_after - worst[1],
        given_change_low=found.spread.worst_change.low,
        given_change_high=found.spread.worst_change.high,
    )


def _slice(workspace: Workspace, triple: Triple) -> FailureSlice:
    title, phrase, own = triple
    threshold = phrase_score(workspace, title, phrase, limit=0).threshold if own is None else own
    if threshold is None:
        raise DataError(NO_THRESHOLD)
    return phrase_slice(workspace, title, phrase, threshold, is_own=own is not None)


N_IMAGES = 60
SIDE = 96
N_RED = 15
GOOD_SCORE = 0.5
COLOURS = {
    "red": "#d22f2f",
    "blue": "#2f5fd2",
    "green": "#2f9a4c",
    "yellow": "#e2b71f",
    "purple": "#7b3fb5",
    "grey": "#8a8a8a",
}
SIZES = {"large": 0.72, "small": 0.42}
GROUNDS = {"dark": "#33363b", "light": "#eceae4"}
SAME_WORD = {
    "crimson": "red", "scarlet": "red", "reddish": "red", "big": "large", "huge": "large", "little": "small", "tiny": "small",
    "gray": "grey", "violet": "purple", "bright": "light", "white": "light", "pale": "light", "black": "dark", "night": "dark",
}  # fmt: skip
SHAPE_WORDS = frozenset(
    {
        "square",
        "squares",
        "shape",
        "shapes",
        "box",
        "boxes",
        "block",
        "blocks",
        "rectangle",
        "rectangles",
    }
)
ADVICE = {
    "good": "These words pick out the failures.",
    "matches": "Such images are found, but the AI is not wrong on them more often. Say something else.",
    "unknown": "Hardly any image looks like these words. Say it in other words.",
}


@dataclass(frozen=True, kw_only=True)
class PlantedImage:
    """A square as it was planted."""

    colour: str
    size: str
    ground: str
    angle: float
    is_wrong: bool


class TutorialWorld(View):
    """What the images are and what the AI made of them.

    Args:
        is_wrong: whether the AI was wrong, one entry an image.
        words: what an image shows, for those who cannot see it.
        did_tutorial: whether whoever asks went through it before.
    """

    is_wrong: list[bool]
    words: list[str]
    did_tutorial: bool


class TutorialAnswer(ScoredPhrase):
    """What a phrase says of the planted images.

    Args:
        similarities: how similar every image is to the words.
        fit: `good`, `matches` (but does not pick out failures), or `unknown` (matches nothing).
    """

    similarities: list[float]
    fit: str


@cache
def planted_images() -> tuple[PlantedImage, ...]:
    """Return the planted images: most red ones are wrong, and hardly any other."""
    draws = generator(6, "tutorial")
    others = [name for name in COLOURS if name != "red"]
    colours = ["red"] * N_RED + [others[place % len(others)] for place in range(N_IMAGES - N_RED)]
    found = []
    for place, colour in enumerate(colours):
        # One red square is right and three others are wrong: no words are ever quite right.
        is_wrong = (colour == "red") != (place in (N_RED - 1, N_RED + 3, N_RED + 16, N_RED + 29))
        size, ground = str(draws.choice(list(SIZES))), str(draws.choice(list(GROUNDS)))
        found.append(
            PlantedImage(
                colour=colour,
                size=size,
                ground=ground,
                angle=float(draws.uniform(0, 90)),
                is_wrong=is_wrong,
            )
        )
    return tuple(found[place] for place in draws.permutation(N_IMAGES))


@cache
def tutorial_image(number: int) -> bytes:
    """Return a planted image as PNG."""
    planted = planted_images()[number]
    image = Image.new("RGB", (SIDE * 2, SIDE * 2), GROUNDS[planted.ground])
    reach = SIDE * SIZES[planted.size]
    corners = [math.radians(planted.angle + 45 + 90 * corner) for corner in range(4)]
    outline = [
        (SIDE + reach * math.cos(angle), SIDE + reach * math.sin(angle)) for angle in corners
    ]
    ImageDraw.Draw(image).polygon(outline, fill=COLOURS[planted.colour])
    stream = io.BytesIO()
    image.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(stream, "PNG")
    return stream.getvalue()


def tutorial_world(*, did_tutorial: bool) -> TutorialWorld:
    return TutorialWorld(
        is_wrong=[one.is_wrong for one in planted_images()],
        words=[
            f"a {one.size} {one.colour} square on a {one.ground} ground" for one in planted_images()
        ],
        did_tutorial=did_tutorial,
    )


def tutorial_answer(phrase: str) -> TutorialAnswer:
    """Return what a phrase says of the planted images; similarities are exact up to a little noise, like those of an encoder."""
    words = phrase.strip()
    similarities, is_known = _similarities(words)
    failed: BoolArray = np.array([one.is_wrong for one in planted_images()])
    best = error_scores(similarities[None], failed)
    score, threshold = float(best.score[0]), float(best.threshold[0])
    fit = "good" if score >= GOOD_SCORE else "matches" if is_known else "unknown"
    return TutorialAnswer(
        phrase=words,
        score=score,
        threshold=threshold if np.isfinite(threshold) else None,
        similarities=[float(value) for value in similarities],
        fit=fit,
        advice=ADVICE[fit],
    )


def _similarities(phrase: str) -> tuple[FloatArray, bool]:
    words = [
        SAME_WORD.get(word, word)
        for word in "".join(c if c.isalpha() else " " for c in phrase.lower()).split()
    ]
    seed = int.from_bytes(
        hashlib.sha256(" ".join(words).encode("utf-8", "replace")).digest()[:4], "big"
    )
    noise = np.random.default_rng(seed).normal(0, 0.008, N_IMAGES)
    meant = [word for word in words if word in COLOURS or word in SIZES or word in GROUNDS]
    is_known = bool(meant) or bool(SHAPE_WORDS & set(words))
    shares = np.array([_share(one, meant) for one in planted_images()])
    level = 0.16 + 0.04 * is_known
    return np.asarray(level + 0.1 * shares + noise, dtype=np.float32), is_known


def _share(planted: PlantedImage, words: list[str]) -> float:
    shown = (planted.colour, planted.size, planted.ground)
    return sum(word in shown for word in words) / len(words) if words else 0.0
