"""Refinements as files: a page with the images, the same as Markdown, the record, a contact sheet and the new last layers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

from weakspot.lab.refine.projects import RefinedProject, RefinedProjects
from weakspot.lab.refine.records import RefinedArm, Refinement
from weakspot.lab.refine.wording import (
    COLUMNS,
    FAMILY_LEGEND,
    FAMILY_TITLES,
    LEGEND,
    arm_rows,
    arm_titles,
    family_headline,
    family_rows,
    family_shares,
    headline,
    markdown_table,
    name_lines,
    rejected_sentence,
    set_sentence,
    shared_lines,
)
from weakspot.media.charts import heat_map, interval_chart
from weakspot.media.image_grid import labelled_grid
from weakspot.pipeline.output_folder import written
from weakspot.repair.export import head_content
from weakspot.report.small_page import figure, paragraph, share_cell, small_page, table, text_cell

PAGE, TEXT, DATA, SHEET = "refinement.html", "refinement.md", "refinement.json", "refinement.png"
HEAD_FILE = "refined_head.safetensors"
CELL_SIDE = 112
MOST_ROWS = 24
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
        HEAD_FILE: head_content(refined.head, refined.class_names),
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
        f"{name}_head.safetensors": head_content(head, refined.class_names[name])
        for name, head in refined.heads.items()
    }
    return written(folder, contents | ({} if sheet is None else {SHEET: sheet}))


def contact_sheet(shown: Mapping[str, Sequence[Image.Image]]) -> Image.Image | None:
    """Return the first images of every prompt, one row a prompt; None if there are none."""
    rows = [(prompt, list(images)) for prompt, images in shown.items() if images][:MOST_ROWS]
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
