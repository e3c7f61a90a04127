"""A page of its own for one question: the frame, tables and images that such pages share; nothing is fetched from outside."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

from PIL import Image

from weakspot.core.evidence import Share
from weakspot.report.wording import percent

JPEG_QUALITY = 86
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}caption{text-align:left}"
    "td,th{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}"
    "th:first-child,td.words{text-align:left}"
    "small{color:#5a6470;font-weight:400}td small{white-space:nowrap}figure{margin:1rem 0;overflow-x:auto}.scroll{overflow-x:auto}"
    "figure img{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b;--ink:#eee;--quiet:#aaa;--accent:#6ba6e8}"
    "td,th{border-color:#444}small{color:#a0aab5}}"
    "@media print{body{color:#000;background:#fff;max-width:none}.scroll{overflow:visible}tr,figure{break-inside:avoid}}"
)


def small_page(title: str, parts: Iterable[str]) -> str:
    """Return a page of parts that are HTML already.

    Args:
        title: plain text; it is the heading, too.
        parts: what comes below it, in order; empty ones are left out.
    """
    head = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>weakspot: {escape(title)}</title><style>{STYLE}</style></head><body>"
    )
    return "\n".join(
        [head, f"<h1>{escape(title)}</h1>", *(part for part in parts if part), "</body></html>"]
    )


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """Return a table that scrolls by itself on narrow screens.

    Args:
        titles: of the columns, plain text.
        rows: cells that are HTML already, `<td>` and all; the first of a row is plain text and names it.
        caption: plain text above it.
    """
    head = "".join(f"<th scope='col'>{escape(title)}</th>" for title in titles)
    lines = "".join(
        f"<tr><th scope='row'>{escape(first)}</th>{''.join(others)}</tr>" for first, *others in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<div class='scroll' tabindex='0'><table>{above}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def share_cell(share: Share) -> str:
    """Return a rate with its counts and interval as a cell; a dash where nothing was counted."""
    if not share.total:
        return "<td>–</td>"
    low, high = 100 * share.interval.low, 100 * share.interval.high
    counts = f"{share.count:,} of {share.total:,}<br>{low:.0f}–{high:.0f} %"
    return f"<td>{percent(share.value)}<br><small>{counts}</small></td>"


def text_cell(text: str, quiet: str = "") -> str:
    below = f"<br><small>{escape(quiet)}</small>" if quiet else ""
    return f"<td>{escape(text)}{below}</td>"


def figure(image: Image.Image, *, alt: str) -> str:
    stream = io.BytesIO()
    image.convert("RGB").save(stream, format="JPEG", quality=JPEG_QUALITY)
    data = base64.b64encode(stream.getvalue()).decode()
    return f"<figure><img src='data:image/jpeg;base64,{data}' alt='{escape(alt, quote=True)}'></figure>"
