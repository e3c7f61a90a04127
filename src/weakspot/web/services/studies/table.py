"""The table of a study: every phrase with what came of it, a summary as papers report it, and the same as CSV."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, stdev

from weakspot.repair.labels.tables import safe_cell
from weakspot.web.services.view import Moment, View

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


class KeptPhrase(PhraseFigures):
    """A phrase as it was kept.

    Args:
        seconds: how long this person had been at work in the study.
        created: when it was submitted.
    """

    seconds: float
    created: Moment


class StudyEntry(KeptPhrase):
    """A phrase of a study.

    Args:
        person_id: whose it is.
        person: their name.
        is_accepted: whether it became a slice.
    """

    person_id: str
    person: str
    is_accepted: bool

    @property
    def triple(self) -> Triple:
        """Return what a repair depends on."""
        return self.class_title, self.phrase, self.threshold


class RepairFigures(View):
    """What repairing by one phrase did, on test samples.

    Args:
        worst_before: accuracy of the worst group before; null if it could not be repaired.
        worst_after: accuracy of the worst group after.
        note: why it could not be repaired.
        given: what it did to groups that are the same for everybody; null if the study has none.
    """

    worst_before: float | None
    worst_after: float | None
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


class StudyTableRow(GivenFigures, StudyEntry):
    """A phrase with what repairing by it did: nulls if that was not worked out.

    Args:
        agreed: when this person agreed to take part; empty if nobody was asked.
        attention: whether they passed the attention check; null if it was not asked or answered.
    """

    worst_before: float | None = None
    worst_after: float | None = None
    note: str = ""
    agreed: str = ""
    attention: bool | None = None


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
    entries: Sequence[StudyEntry],
    repairs: Mapping[Triple, RepairFigures],
    seconds: Mapping[tuple[str, str], float],
    agreements: Mapping[str, tuple[str, bool | None]] | None = None,
) -> StudyTable:
    """Return the table of a study.

    Args:
        agreements: when everybody agreed, and whether they passed the attention check, by person.
        entries: the phrases, oldest first.
        repairs: what repairing by some of them did.
        seconds: time by person and class.
    """
    names = _different_names(entries)
    rows = []
    for entry in entries:
        repair = repairs.get(entry.triple)
        figures = {} if repair is None else repair.model_dump(exclude={"given"})
        if repair is not None and repair.given is not None:
            figures |= repair.given.model_dump()
        agreed, attention = (agreements or {}).get(entry.person_id, ("", None))
        figures |= {"agreed": agreed, "attention": attention}
        rows.append(
            StudyTableRow(**{**entry.model_dump(), "person": names[entry.person_id], **figures})
        )
    return StudyTable(rows=rows, summary=_summary(rows, seconds))


def best_triples(entries: Sequence[StudyEntry]) -> list[Triple]:
    """Return the best phrase of every person and class, each once; the earlier of two that are equally good."""
    return list(dict.fromkeys(entry.triple for entry in _best(entries).values()))


def table_csv(table: StudyTable) -> bytes:
    """Return the rows as CSV whose texts no spreadsheet takes for formulas; numbers stay numbers."""
    columns = [name for name in StudyTableRow.model_fields if name != "person_id"]
    columns.sort(key=lambda name: name != "person")
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows([_cell(getattr(row, name)) for name in columns] for row in table.rows)
    return stream.getvalue().encode("utf-8-sig")


def timings_csv(stretches: Sequence[tuple[str, str, float, str]]) -> bytes:
    """Return stretches of time at work as CSV: person, class, seconds, and when each ended."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["person", "class_title", "seconds", "ended"])
    writer.writerows([_cell(value) for value in row] for row in stretches)
    return stream.getvalue().encode("utf-8-sig")


def _best(entries: Sequence[StudyEntry]) -> dict[tuple[str, str], StudyEntry]:
    best: dict[tuple[str, str], StudyEntry] = {}
    for entry in entries:
        place = entry.person_id, entry.class_title
        if place not in best or _rank(entry) > _rank(best[place]):
            best[place] = entry
    return best


def _rank(entry: StudyEntry) -> tuple[bool, float, float]:
    """Return how good a phrase is: what was accepted goes first, then what holds on other samples than it was chosen on."""
    held_out, own = entry.held_out_score, entry.score
    return entry.is_accepted, -1.0 if held_out is None else held_out, -1.0 if own is None else own


def _summary(
    rows: Sequence[StudyTableRow], seconds: Mapping[tuple[str, str], float]
) -> StudySummary:
    best = {
        place: entry for place, entry in _best(rows).items() if isinstance(entry, StudyTableRow)
    }
    return StudySummary(
        n_people=len({row.person_id for row in rows}),
        n_phrases=len(rows),
        n_accepted=sum(row.is_accepted for row in rows),
        best_score=Spread.of(_largest(rows, "score")),
        best_held_out_score=Spread.of(_largest(rows, "held_out_score")),
        minutes=Spread.of([total / 60 for total in seconds.values() if total > 0]),
        worst_after=Spread.of(
            [row.worst_after for row in best.values() if row.worst_after is not None]
        ),
        given_worst_after=Spread.of(_known([row.given_worst_after for row in best.values()])),
        given_gap_after=Spread.of(_known([row.given_gap_after for row in best.values()])),
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


def _different_names(entries: Sequence[StudyEntry]) -> dict[str, str]:
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
        return safe_cell(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:.6g}"
