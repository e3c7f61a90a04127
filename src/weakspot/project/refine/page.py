"""Refinements as sentences, tables and files: a page with the images, Markdown, the record, a contact sheet and the new last layers."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from PIL import Image

from weakspot.core.evidence import Share
from weakspot.data.charts import heat_map, interval_chart
from weakspot.data.image_grid import labelled_grid
from weakspot.models.files import head_bytes
from weakspot.project.refine.projects import RefinedProject, RefinedProjects
from weakspot.project.refine.prompts import by_class_and_kind
from weakspot.project.refine.refinement import HELD_OUT, SEED, TEST, FamilyRefinement, RefinedMember
from weakspot.project.refine.request import PLAIN, RANDOM, RefinedArm, Refinement
from weakspot.report.document import figure, paragraph, share_cell, small_page, table, text_cell
from weakspot.report.repairs import p_words
from weakspot.report.wording import CERTAIN, count, interval, percent
from weakspot.run.reporting import written

COLUMNS = (
    ("clean", "clean"),
    ("failure", "failure"),
    ("seed", "seed"),
    ("held-out", "held_out"),
    ("test before", "test_before"),
    ("test after", "test_after"),
)
LEGEND = (
    "clean: test samples right before that still are; failure: test samples wrong before that are right now; seed: failures that "
    "the values came from; held-out: failures that chose nothing."
)
FAMILY_LEGEND = (
    "seed: failures that values came from; held-out: failures that chose nothing; resolved with the model's own images, the "
    "collective ones, and as many of the mere classes."
)


def headline(refinement: Refinement) -> str:
    """Return what the refinement did, in a sentence or two."""
    first, random = refinement.arms[0], refinement.arm(RANDOM)
    held = first.held_out
    if not held.total:
        return "No failure was held out, so it cannot be told what the refinement resolves."
    said = f"Refinement resolves {held.count} of {held.total} held-out failures ({percent(held.value)}, {interval(held.interval)})"
    if random is not None:
        many = (
            "as many"
            if random.n_images == first.n_images
            else f"{random.n_images} instead of {first.n_images}"
        )
        said += f"; {many} images of the mere classes resolve {random.held_out.count} ({percent(random.held_out.value)})"
        if first.p_against_random is not None:
            said += f", {p_words(first.p_against_random)}"
    kept = (
        f"{percent(first.clean.value)} of the test samples that were right before are still right."
    )
    first_words = _no_help(first) or _not_better(refinement)
    return " ".join(filter(None, (first_words, f"{said}.", kept)))


def _not_better(refinement: Refinement) -> str:
    """Return what the refinement is not better than, or not beyond chance; nothing if it is better than all that is beside it."""
    first, random, plain = (
        refinement.arms[0],
        refinement.arm(RANDOM),
        refinement.arm(PLAIN),
    )
    resolved = first.held_out.count
    if random is not None and resolved <= random.held_out.count:
        return "Not better than images of the mere classes."
    if plain is not None and resolved <= plain.held_out.count:
        return "Not better than retraining without images."
    if first.p_against_random is not None and first.p_against_random > CERTAIN:
        return "Better than images of the mere classes, but that may be chance."
    return ""


def _no_help(arm: RefinedArm) -> str:
    """Return that a refinement does not help, which is said before anything else; nothing if it does."""
    n_lost = arm.clean.total - arm.clean.count
    if arm.share == 0.0:
        return "No help here: even a small step towards these images loses right samples, so the layer stays as it is."
    if n_lost and n_lost >= arm.failure.count:
        return f"No help here: of the test samples it loses {n_lost} right ones and resolves {count(arm.failure.count, 'failure')}."
    return ""


def set_sentence(refinement: Refinement) -> str:
    first = refinement.arms[0]
    way = "" if first.share is None else f"; the layer goes {percent(first.share)} of the way"
    return (
        f"{count(first.n_images, 'image')} from {count(len(first.prompts), 'prompt')}; together they count "
        f"{first.debug_weight:g} times as much as all training samples (lambda){way}."
    )


def name_lines(refinement: Refinement, most: int = 3) -> Iterator[str]:
    """Yield what the seed failures of every class show, commonest first."""
    for own in by_class_and_kind(refinement.names):
        shown = ", ".join(
            f"{one.value} ({one.n_failures}; {one.n_right_shown} of the others)"
            for one in own[:most]
        )
        counted = f"{count(own[0].n_seed, 'failure')}; {own[0].n_right:,} others"
        yield f"{own[0].class_name}, {own[0].kind} ({counted}): {shown}"


def share_text(share: Share) -> str:
    """Return a rate with its interval and counts, a dash where nothing was counted.

    >>> share_text(Share.of(9, 10))
    '90 % (60–98) 9/10'
    """
    if not share.total:
        return "–"
    low, high = 100 * share.interval.low, 100 * share.interval.high
    return f"{100 * share.value:.0f} % ({low:.0f}–{high:.0f}) {share.count}/{share.total}"


def arm_cells(arm: RefinedArm) -> list[str]:
    return [share_text(getattr(arm, field)) for _, field in COLUMNS]


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(titles), *[list(row) for row in rows]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(titles))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as Markdown; a bar inside a cell does not break it."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (titles, *rows)]
    head, *body = [f"| {' | '.join(line)} |" for line in cells]
    return [head, f"|{'---|' * len(titles)}", *body]


def arm_rows(refinement: Refinement) -> list[list[str]]:
    return [[arm.arm, str(arm.n_images), *arm_cells(arm)] for arm in refinement.arms]


def arm_titles() -> list[str]:
    return ["arm", "images", *[title for title, _ in COLUMNS]]


def refinement_lines(refinement: Refinement) -> Iterator[str]:
    yield headline(refinement)
    yield set_sentence(refinement)
    yield from (f"  {line}" for line in name_lines(refinement))
    yield from text_table(arm_titles(), arm_rows(refinement))
    yield LEGEND
    yield from [rejected_sentence(refinement.rejected)] if refinement.rejected else []
    yield from refinement.notes


def rejected_sentence(rejected: Mapping[str, int]) -> str:
    """Return which quality checks rejected images, nothing if none did."""
    return (
        f"Rejected images: {', '.join(f'{check} {number}' for check, number in rejected.items())}."
        if rejected
        else ""
    )


def family_headline(family: FamilyRefinement) -> str:
    shared, random = family.shared, family.shared_random
    whose = "all models (type 1)" if family.source is None else f"{family.source} alone (type 2)"
    begun = f"One set of images, from the failures of {whose},"
    if not shared.total:
        return f"{begun} was measured, but the models' own refinements resolve no held-out failure."
    relative = (
        ""
        if family.relative is None
        else f"; it resolves {percent(family.relative)} as many failures as they do"
    )
    return (
        f"{begun} resolves {shared.count} of the {shared.total} held-out failures that the models' own refinements resolve "
        f"({percent(shared.value)}, {interval(shared.interval)}){relative}. Images of the mere classes resolve {random.count} "
        f"of them ({percent(random.value)})."
    )


FAMILY_TITLES = (
    "model",
    "test before",
    "own",
    "collective",
    "seed: own",
    "collective",
    "held-out: own",
    "collective",
    "mere classes",
    "own and collective",
    "clean",
)


def family_rows(family: FamilyRefinement) -> list[list[str]]:
    return [[model.name, *map(share_text, family_shares(model))] for model in family.models]


def family_shares(model: RefinedMember) -> tuple[Share, ...]:
    test, seed, held = (model.figures[place] for place in (TEST, SEED, HELD_OUT))
    resolved = (held.resolved_individual, held.resolved_collective, held.resolved_random)
    return (
        test.before,
        test.individual,
        test.collective,
        seed.resolved_individual,
        seed.resolved_collective,
        *resolved,
        held.shared,
        test.clean_collective,
    )


def shared_lines(family: FamilyRefinement, most: int = 3) -> Iterator[str]:
    """Yield what all models fail on before any refinement, and what these failures show."""
    common = family.common
    if common is None or not common.test.total:
        return
    yield (
        f"All {len(family.models)} models fail on {common.test.count} of the {common.test.total} test samples that any of them "
        f"fails on ({percent(common.test.value)}, {interval(common.test.interval)})."
    )
    for kind in dict.fromkeys(one.kind for one in common.values):
        shown = [one for one in common.values if one.kind == kind][:most]
        listed = ", ".join(f"{one.value} {percent(one.share.value)}" for one in shown)
        yield f"Of the {common.n_seed} failures of the discovery half that all share, by {kind}: {listed}."


def family_lines(family: FamilyRefinement) -> Iterator[str]:
    yield family_headline(family)
    yield from shared_lines(family)
    yield from text_table(FAMILY_TITLES, family_rows(family))
    yield FAMILY_LEGEND
    yield from [rejected_sentence(family.rejected)] if family.rejected else []
    yield from (f"{model.name}: {note}" for model in family.models for note in model.notes)
    yield from family.notes


PAGE, TEXT, DATA, SHEET = "refinement.html", "refinement.md", "refinement.json", "refinement.png"
HEAD_FILE = "refined_head.safetensors"
CELL_SIDE = 112
MAX_ROWS = 24
ALT = "The first generated images of every prompt that was trained on"


def write_refinement(refined: RefinedProject, folder: Path) -> tuple[Path, ...]:
    """Write a refinement into a folder: page, Markdown, record, contact sheet and last layer; the page comes first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    record, sheet = refined.refinement, contact_sheet(refined.shown)
    contents: dict[str, bytes | Image.Image] = {
        PAGE: refinement_page(record, sheet).encode(),
        TEXT: refinement_markdown(record).encode(),
        DATA: (record.model_dump_json(indent=2) + "\n").encode(),
        HEAD_FILE: head_bytes(refined.head, refined.class_names),
    }
    return written(folder, contents | ({} if sheet is None else {SHEET: sheet}))


def write_refined_family(refined: RefinedProjects, folder: Path) -> tuple[Path, ...]:
    """Write a collective refinement into a folder in the same way, with the last layer of every model.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    record, sheet = refined.refinement, contact_sheet(refined.shown)
    lines = [
        "# Collective refinement",
        "",
        family_headline(record),
        "",
        *[f"- {line}" for line in shared_lines(record)],
        "",
        *markdown_table(FAMILY_TITLES, family_rows(record)),
        "",
        FAMILY_LEGEND,
    ]
    contents: dict[str, bytes | Image.Image] = {
        PAGE: family_page(refined, sheet).encode(),
        TEXT: ("\n".join(lines) + "\n").encode(),
        DATA: (record.model_dump_json(indent=2) + "\n").encode(),
    }
    contents |= {
        f"{name}_head.safetensors": head_bytes(head, refined.class_names[name])
        for name, head in refined.heads.items()
    }
    return written(folder, contents | ({} if sheet is None else {SHEET: sheet}))


def contact_sheet(shown: Mapping[str, Sequence[Image.Image]]) -> Image.Image | None:
    """Return the first images of every prompt, one row a prompt; None if there are none."""
    rows = [(prompt, list(images)) for prompt, images in shown.items() if images][:MAX_ROWS]
    if not rows:
        return None
    width = max(len(images) for _, images in rows)
    cells = [[*images, *[None] * (width - len(images))] for _, images in rows]
    return labelled_grid(
        cells,
        row_names=[prompt for prompt, _ in rows],
        column_names=[""] * width,
        cell_side=CELL_SIDE,
    )


def refinement_page(record: Refinement, sheet: Image.Image | None) -> str:
    """Return a refinement as one HTML page without outside references."""
    chart = [
        (arm.arm, arm.held_out.interval.low, arm.held_out.value, arm.held_out.interval.high)
        for arm in record.arms
    ]
    rows = [[arm.arm, f"<td>{arm.n_images}</td>", *_cells(arm)] for arm in record.arms]
    generated = [
        [
            one.prompt,
            text_cell(one.class_name),
            text_cell(f"{one.n_kept} of {one.n_asked}"),
            text_cell(f"{one.weight:.2f}"),
        ]
        for one in record.arms[0].prompts
    ]
    return small_page(
        f"{record.name}: refined with generated images",
        [
            paragraph(headline(record)),
            paragraph(set_sentence(record)),
            table(arm_titles(), rows, caption=LEGEND),
            f"<figure>{interval_chart(chart, title='Held-out failures resolved')}</figure>"
            if record.arms[0].held_out.total
            else "",
            *[paragraph(f"{arm.arm}: {arm.note}.") for arm in record.arms],
            "<h2>What failures show</h2>",
            *[paragraph(line) for line in name_lines(record)],
            "<h2>What was generated</h2>",
            table(["prompt", "class", "images", "share of the weight"], generated),
            "" if sheet is None else figure(sheet, alt=ALT),
            paragraph(rejected_sentence(record.rejected)),
            *[paragraph(note) for note in record.notes],
        ],
    )


def refinement_markdown(record: Refinement) -> str:
    lines = [
        f"# {record.name}: refined with generated images",
        "",
        headline(record),
        "",
        set_sentence(record),
        "",
        *markdown_table(arm_titles(), arm_rows(record)),
        "",
        LEGEND,
        "",
        *[f"- {arm.arm}: {arm.note}" for arm in record.arms],
        "",
        "## What failures show",
        "",
        *[f"- {line}" for line in name_lines(record)],
        "",
        rejected_sentence(record.rejected),
        *[f"- {note}" for note in record.notes],
    ]
    return "\n".join(lines).rstrip() + "\n"


def family_page(refined: RefinedProjects, sheet: Image.Image | None) -> str:
    """Return a collective refinement as one HTML page without outside references."""
    record = refined.refinement
    rows = [[model.name, *map(share_cell, family_shares(model))] for model in record.models]
    names = [model.name for model in record.models]
    return small_page(
        f"{len(names)} classifiers, one set of images",
        [
            paragraph(family_headline(record)),
            table(FAMILY_TITLES, rows, caption=FAMILY_LEGEND),
            "<h2>Shared failures before</h2>",
            *[paragraph(line) for line in shared_lines(record)],
            f"<figure>{heat_map(names, record.overlaps, title='Intersection over union')}</figure>",
            "" if sheet is None else figure(sheet, alt=ALT),
            paragraph(rejected_sentence(record.rejected)),
            *[
                paragraph(f"{model.name}: {note}")
                for model in record.models
                for note in model.notes
            ],
            *[paragraph(note) for note in record.notes],
        ],
    )


def _cells(arm: RefinedArm) -> list[str]:
    return [share_cell(getattr(arm, field)) for _, field in COLUMNS]
