"""A family of repaired classifiers, as the terminal shows it."""

import textwrap
from collections.abc import Iterator

from weakspot.app.collective_page import headline, set_sentence
from weakspot.core.evidence import Share
from weakspot.repair.collective import CollectiveRepair, FamilyFigures, FamilyModel
from weakspot.report.repair_wording import data_words, p_words
from weakspot.report.wording import CERTAIN, count, interval, percent

WIDTH = 100
NAME, COLUMN = 30, 14
ARMS = ("before", "own repair", "collective", "random twin")


def collective_lines(repair: CollectiveRepair) -> Iterator[str]:
    """Yield a collective repair line by line."""
    yield from _wrapped(headline(repair))
    yield from _wrapped(set_sentence(repair))
    yield f"Measured on {repair.n_samples:,} test samples that all {len(repair.models)} models share."
    yield "  " + " " * NAME + "".join(arm.rjust(COLUMN) for arm in ARMS)
    for model in repair.models:
        yield from _model(model)
    yield "Shared failures before (intersection over union):"
    width = max(len(model.name) for model in repair.models)
    for model, line in zip(repair.models, repair.overlaps, strict=True):
        yield f"  {model.name:<{width}}  " + "  ".join(f"{value:.2f}" for value in line)
    for note in repair.notes:
        yield from _wrapped(note)


def _model(model: FamilyModel) -> Iterator[str]:
    sizes = f"own set {model.n_individual:,} samples, collective {model.n_collective:,}"
    yield f"{model.name} ({count(model.n_slices, 'slice')}, {sizes})"
    test = model.figures[0]
    yield _row("accuracy", test.before, test.individual, test.collective, test.random)
    for figures in model.figures:
        resolved = (figures.resolved_individual, figures.resolved_collective, figures.resolved_random)
        yield _row(f"resolved, {_short(figures)}", None, *resolved)
    yield _row("still right", None, test.clean_individual, test.clean_collective, None)
    yield from _wrapped(_sentence(test), "    ")
    for note in model.notes:
        yield from _wrapped(note, "    ")


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
    relative = "" if test.relative_accuracy is None else f"; relative accuracy {test.relative_accuracy:.3f}"
    return f"{said}, {against} its random twin ({p_words(test.p_against_random)}); {shared}{relative}."


def _short(figures: FamilyFigures) -> str:
    return data_words(figures.measured_on).split(" (", maxsplit=1)[0]


def _row(title: str, *shares: Share | None) -> str:
    return f"  {title[:NAME]:<{NAME}}{''.join(_figure(share).rjust(COLUMN) for share in shares)}".rstrip()


def _figure(share: Share | None) -> str:
    if share is None or not share.total:
        return "–" if share is not None else ""
    return f"{percent(share.value)} of {share.total:,}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    joined = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(joined, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
    return [line.replace("\u00a0%", " %") for line in lines]
