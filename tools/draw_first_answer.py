"""Draw the first lines of a run as the terminal shows them, for README and guides.

python tools/draw_first_answer.py weakspot-demo     of the newest run of a project, as `weakspot demo` leaves it

Writes docs/first-answer.svg and the text between the marks in README.md.
"""

import argparse
import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from weakspot.cli.results import answer_lines
from weakspot.project.project import Project
from weakspot.report.first_answer import first_answer

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "first-answer.svg"
README = ROOT / "README.md"
WIDTH = 80
BLOCK = re.compile(r"(<!-- first answer -->\n```text\n).*?(```\n<!-- end -->)", re.DOTALL)
FETCHED_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Draw, and put the same as text into README.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("project", type=Path, help="Project folder with a run.")
    parser.add_argument("--command", default="weakspot demo", help="What is shown as typed.")
    arguments = parser.parse_args()
    record = Project.open(arguments.project).run_record()
    shown = Path(arguments.project.resolve().name)
    lines = answer_lines(
        first_answer(record), width=WIDTH, project=shown, report=shown / "report.html"
    )
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)
    drawn = console.export_svg(
        title=arguments.command, theme=SVG_EXPORT_THEME, unique_id="weakspot"
    )
    # Nothing is fetched from elsewhere: the reader's own fixed-width font is as good.
    PICTURE.write_text(FETCHED_FONTS.sub("", drawn).replace("Fira Code,", ""), encoding="utf-8")
    text = "".join(f"{line.plain}\n" for line in lines)
    written = BLOCK.sub(lambda match: match[1] + text + match[2], README.read_text("utf-8"))
    README.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
