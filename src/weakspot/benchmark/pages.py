"""The benchmark's table and plots, as Markdown and SVG."""

from collections.abc import Sequence

from weakspot.benchmark.scores import TableRow, grouped
from weakspot.media.charts import bar_groups

COLUMNS = (
    ("precision_at_10", "precision@10"),
    ("precision_at_25", "precision@25"),
    ("found", "put forward"),
    ("confirmed", "confirmed"),
    ("name_exact", "name exact"),
    ("name_synonym", "or synonym"),
    ("name_same_attribute", "or same attribute"),
    ("false_share", "false share"),
    ("n_tested", "tested"),
    ("seconds", "seconds"),
    ("megabytes", "MB"),
)


def table(rows: Sequence[TableRow]) -> str:
    """Return all rows as Markdown, one table a source and kind."""
    parts: list[str] = []
    for (source, kind), own in grouped(rows).items():
        n_worlds = own[0].n_worlds
        parts += [f"## {source}: {kind} ({n_worlds} world{'s' if n_worlds != 1 else ''})", ""]
        parts += [f"| method | {' | '.join(title for _, title in COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
        parts += [f"| {row.method} | {' | '.join(_cell(row, name) for name, _ in COLUMNS)} |" for row in own]
        parts += ["", *[f"{row.method}: {row.note}" for row in own if row.note], ""]
    return "\n".join(parts)


def _cell(row: TableRow, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return ""
    return f"{value:.1f}" if name in ("n_tested", "seconds", "megabytes") else f"{value:.2f}"


def plots(rows: Sequence[TableRow]) -> dict[str, str]:
    """Return SVG charts by file name: precision and confirmation of every method, per source."""
    drawings: dict[str, str] = {}
    for source in dict.fromkeys(row.source for row in rows):
        own = [row for row in rows if row.source == source]
        for name, title in (
            ("precision_at_10", "precision@10"),
            ("confirmed", "known slices confirmed"),
            ("false_share", "false findings"),
        ):
            groups = {
                kind: {row.method: getattr(row, name) for row in own if row.kind == kind and getattr(row, name) is not None}
                for kind in dict.fromkeys(row.kind for row in own)
            }
            shown = {kind: bars for kind, bars in groups.items() if bars}
            if shown:
                drawings[f"{source}-{name}.svg".replace(" ", "-").replace(",", "")] = bar_groups(shown, title=f"{source}: {title}")
    return drawings
