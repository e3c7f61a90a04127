"""The first answer of a run: what is wrong, how sure, and what to do; terminal, report and browser begin with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pydantic import JsonValue

from weakspot.core.bounds import SliceOrder
from weakspot.core.evidence import Cause, ClassFinding, ClassFindingKind, Share, Verdict
from weakspot.core.run import CheckState, ClassifierFacts, PreflightCheck, RunRecord
from weakspot.report.repairs import repair_section
from weakspot.report.tree import TreeRow, first_rows, tree_rows
from weakspot.report.wording import checks_sentence, count, percent

MAX_CLASSES = 5
MAX_FINDINGS = 5
MAX_TO_DO = 3
MAX_NAMED = 2
JOINED = (ClassFindingKind.WHOLE, ClassFindingKind.SHIFT)
UNCONFIRMED_WORDS = {
    Verdict.TOO_FEW: "with too few samples",
    Verdict.NOT_CONFIRMED: "that may be chance",
    Verdict.CIRCULAR: "that cannot be tested",
}


@dataclass(frozen=True, kw_only=True)
class WrongAnswer:
    """What samples of a class are taken for, and how many of them."""

    name: str
    number: int


@dataclass(frozen=True, kw_only=True)
class FirstClass:
    """One class of the table.

    Args:
        name: the class.
        right: how often the classifier is right on it.
        is_failing: whether a failure of the class is confirmed.
        taken_for: what its failures are taken for, largest first.
    """

    name: str
    right: Share
    is_failing: bool = False
    taken_for: tuple[WrongAnswer, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FirstFinding:
    """One confirmed finding in a line.

    Args:
        title: name of the slice; empty if the whole is one sentence on a class.
        sentence: the rest, or all of it.
        slice_id: which slice it is; empty for a class.
        class_name: the class that it is about.
    """

    title: str = ""
    sentence: str
    slice_id: str = ""
    class_name: str

    @property
    def text(self) -> str:
        return f"{self.title} - {self.sentence}" if self.title else self.sentence


@dataclass(frozen=True, kw_only=True)
class ToDo:
    """One thing to do; the sentence says all, the command and the files are for those who click or copy."""

    sentence: str
    command: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FirstAnswer:
    """What a busy person reads first; what is not known is empty.

    Args:
        headline: how often the classifier is right, on what.
        problems: what makes all else untrustworthy, with what to do about it.
        classes: the classes to look at, failing ones and worst first.
        n_classes: how many classes there are.
        findings: confirmed findings, those on whole classes first.
        n_findings: how many there are, shown or not.
        findings_note: what is true of all findings, or that there is none.
        to_do: what to do, best first.
        repaired: what the repair did; empty if advice says it.
        not_confirmed: what is suspected only.
        checks: what was looked at before.
    """

    headline: str
    problems: tuple[PreflightCheck, ...] = ()
    classes: tuple[FirstClass, ...] = ()
    n_classes: int = 0
    findings: tuple[FirstFinding, ...] = ()
    n_findings: int = 0
    findings_note: str = ""
    to_do: tuple[ToDo, ...] = ()
    repaired: str = ""
    not_confirmed: str = ""
    checks: str = ""


def first_answer(record: RunRecord, *, order: SliceOrder | str = SliceOrder.BOTH) -> FirstAnswer:
    """Return what to say first of a run; slices come in the given order."""
    facts, said_of_classes = record.classifier, _class_findings(record)
    own = [row for row in tree_rows(record, order) if not row.is_explained]
    found = [*said_of_classes, *map(_slice_finding, first_rows(own, MAX_FINDINGS))]
    return FirstAnswer(
        headline=_headline(record),
        problems=tuple(one for one in record.checks if _is_problem(one)),
        classes=_class_rows(record),
        n_classes=0 if facts is None else len(facts.per_class),
        findings=first_findings(found, MAX_FINDINGS),
        n_findings=len(said_of_classes) + len(own),
        findings_note=_findings_note(record, len(said_of_classes) + len(own)),
        to_do=tuple(
            ToDo(sentence=one.sentence, command=one.command, files=one.files)
            for one in record.advice[:MAX_TO_DO]
        ),
        repaired="" if record.advice else _repaired(record),
        not_confirmed=_not_confirmed(record),
        checks=checks_sentence([one for one in record.checks if not _is_problem(one)]),
    )


def _is_problem(check: PreflightCheck) -> bool:
    return check.state is CheckState.PROBLEM


def first_findings(findings: Sequence[FirstFinding], most: int) -> tuple[FirstFinding, ...]:
    """Return so many findings in their order; where there is no room for all, slices get half of it, as classes come first."""
    slices = [one for one in findings if one.slice_id]
    others = [one for one in findings if not one.slice_id]
    n_slices = max(min(len(slices), most // 2), most - len(others))
    return (*others[: most - n_slices], *slices[:n_slices])


def _findings_note(record: RunRecord, n_findings: int) -> str:
    if n_findings:
        is_table = record.classifier is None or record.classifier.counted != "images"
        return f"confirmed on {'samples' if is_table else 'images'} not used to find them"
    tested = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)
    n_tested = sum(one.verdict in tested for one in record.evidence)
    if n_tested:
        return f"none: nothing systematic was confirmed, {count(n_tested, 'slice')} tested"
    return "none: nothing systematic stood out that could be tested"


def _headline(record: RunRecord) -> str:
    facts, name = record.classifier, classifier_name(record)
    if facts is None or not facts.n_samples:
        return f"{name}: how often it is right was not measured"
    n_right = facts.n_samples - facts.n_failed
    right = Share.of(n_right, facts.n_samples, effective=facts.effective)
    low, high = round(100 * right.interval.low), round(100 * right.interval.high)
    where = f"{facts.n_samples:,} {_splits(record)}{facts.counted}"
    chosen = record.settings.get("failure")
    is_plain = not isinstance(chosen, dict) or chosen.get("kind", "top-1") == "top-1"
    good = "right" if is_plain else "without failure"
    return f"{name}: {percent(right.value)} {good} on {where} ({low}-{high} %){_training(facts)}"


def _training(facts: ClassifierFacts) -> str:
    if facts.training is None:
        return ""
    n_samples, n_failed = facts.training
    return f"; training {percent((n_samples - n_failed) / n_samples)}"


def classifier_name(record: RunRecord) -> str:
    """Return what people call the classifier: its file or model name, else the classifier."""
    chosen = record.settings.get("classifier")
    options = chosen.get("options") if isinstance(chosen, dict) else None
    for key in ("path", "model", "name"):
        value = options.get(key) if isinstance(options, dict) else None
        if isinstance(value, str) and value:
            return PurePath(value).name if key == "path" else value
    return "The classifier"


def _splits(record: RunRecord) -> str:
    chosen = record.settings.get("verify")
    names: JsonValue = chosen.get("splits") if isinstance(chosen, dict) else None
    return f"{' and '.join(map(str, names))} " if isinstance(names, list) and names else ""


def _class_rows(record: RunRecord) -> tuple[FirstClass, ...]:
    """Return the classes that certainly do worst; a class of two samples is not at the top because both failed."""
    facts = record.classifier
    if facts is None:
        return ()
    failing = {
        one.class_name
        for one in record.class_findings
        if one.is_confirmed and one.kind is not ClassFindingKind.SHIFT
    }
    rows = [
        FirstClass(
            name=name,
            right=Share.of(n_samples - n_failed, n_samples),
            is_failing=name in failing,
            taken_for=tuple(
                WrongAnswer(name=answer, number=number)
                for answer, number in facts.confusions.get(name, ())
            ),
        )
        for name, (n_samples, n_failed) in facts.per_class.items()
    ]
    rows.sort(key=lambda row: (not row.is_failing, row.right.interval.high, row.name))
    return tuple(rows[:MAX_CLASSES])


def _class_findings(record: RunRecord) -> list[FirstFinding]:
    """Return the confirmed sentences on classes; how a class looks stands behind that it fails."""
    confirmed = [one for one in record.class_findings if one.is_confirmed]
    whole = {one.class_name: one for one in confirmed if one.kind is ClassFindingKind.WHOLE}
    shifts = {one.class_name: one for one in confirmed if one.kind is ClassFindingKind.SHIFT}
    joined = {name: [whole[name], shifts[name]] for name in whole if name in shifts}
    others = [one for one in confirmed if not (one.class_name in joined and one.kind in JOINED)]
    parts = [*joined.values(), *([one] for one in others if one.kind is ClassFindingKind.WHOLE)]
    parts += [[one] for one in others if one.kind is not ClassFindingKind.WHOLE]
    parts.sort(
        key=lambda each: (
            _repeats(each[0], whole),
            each[0].kind is not ClassFindingKind.WHOLE,
            -_n_failed(each[0]),
        )
    )
    return [
        FirstFinding(
            sentence=_join_sentences(each),
            class_name=each[0].class_name,
        )
        for each in parts
    ]


def _repeats(one: ClassFinding, whole: Mapping[str, ClassFinding]) -> bool:
    """Return whether the failure of the whole class already says what it is taken for."""
    is_confused = one.kind is ClassFindingKind.CONFUSED and one.class_name in whole
    return is_confused and whole[one.class_name].other_class == one.other_class


def _join_sentences(findings: Sequence[ClassFinding]) -> str:
    """Return the sentences in one; the class is named once."""
    first, *others = (one.sentence.rstrip(".") for one in findings)
    name = f"{findings[0].class_name} "
    return "; ".join([first, *(one.removeprefix(name) for one in others)])


def _n_failed(one: ClassFinding) -> int:
    return 0 if one.kind is ClassFindingKind.SHIFT else one.n_failed


def _slice_finding(row: TreeRow) -> FirstFinding:
    entry, cause = row.evidence, row.evidence.named_cause
    rates = f"{percent(entry.rate_inside)} of {entry.n_inside:,} wrong, {percent(entry.rate_outside)} of the rest"
    why = "" if cause in (None, Cause.UNKNOWN) else f"; {cause}"
    return FirstFinding(
        title=row.slice_.title,
        sentence=f"{rates}{why}",
        slice_id=row.slice_id,
        class_name=row.slice_.class_name,
    )


def _repaired(record: RunRecord) -> str:
    """Return what the chosen repair did to the first slice, in a sentence."""
    sections = [repair_section(result) for result in record.repairs[:1]]
    return next((sentence for section in sections for sentence in section.sentences), "")


def _not_confirmed(record: RunRecord) -> str:
    dismissed, known = record.dismissed(), record.slices_by_id()
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in UNCONFIRMED_WORDS}
    for entry in sorted(record.evidence, key=lambda one: (one.q_value, one.p_value, one.slice_id)):
        if entry.verdict in by_verdict and entry.slice_id not in dismissed:
            by_verdict[entry.verdict].append(known[entry.slice_id].title)
    for one in record.class_findings:
        if one.verdict in by_verdict:
            by_verdict[one.verdict].append(f"{one.class_name}: {one.kind.value}")
    unique = {verdict: list(dict.fromkeys(titles)) for verdict, titles in by_verdict.items()}
    n_all = sum(map(len, unique.values()))
    if not n_all:
        return ""
    kinds = {verdict: titles for verdict, titles in unique.items() if titles}
    if len(kinds) == 1:
        ((verdict, titles),) = kinds.items()
        return f"{count(n_all, 'suspicion')} {UNCONFIRMED_WORDS[verdict]}{_named(titles)}"
    parts = [
        f"{len(titles):,} {UNCONFIRMED_WORDS[verdict]}{_named(titles)}"
        for verdict, titles in kinds.items()
    ]
    return f"{count(n_all, 'suspicion')}: {', '.join(parts)}"


def _named(titles: Sequence[str]) -> str:
    more = ", ..." if len(titles) > MAX_NAMED else ""
    return f" ({', '.join(titles[:MAX_NAMED])}{more})"
