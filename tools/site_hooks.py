"""What mkdocs is told of this repository: pages that live elsewhere in it, notebooks as pages, links that lead out of the site."""

import html
import json
import re
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
ELSEWHERE = {
    "GLOSSARY.md": "project/glossary.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "THIRD_PARTY.md": "project/third-party.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_TAGS = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config) -> Files:
    """Add the pages at the root of the repository, the list of decisions, and a page for every notebook."""
    for name, place in ELSEWHERE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_moved(text)))
    files.append(File.generated(config, "project/decisions.md", content=decisions_page()))
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        page = notebook_page(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
    return files


def _moved(text: str) -> str:
    """Return a page of the root with links as they are one folder deeper in the site."""

    def moved(link: re.Match[str]) -> str:
        target = link[3]
        if target.startswith("docs/") and Path(target.split("#")[0]).suffix:
            return f"{link[1]}[{link[2]}](../{target.removeprefix('docs/')})"
        if target in ELSEWHERE:
            return f"{link[1]}[{link[2]}]({Path(ELSEWHERE[target]).name})"
        return link[0] if target.startswith(("http", "#")) else link[2]

    return _LINK.sub(moved, text)


def on_page_markdown(markdown: str, page, **_given) -> str:
    """Say in words what lies outside of the site, and lead to the pages of notebooks; files of both are in the repository."""
    depth = page.file.src_uri.count("/")
    up = "../" * (depth + 1)

    def outside(link: re.Match[str]) -> str:
        if link[3].startswith(up):
            return link[2]
        is_notebook = link[3].endswith(".ipynb") and link[2] != link[3]
        return link[0].replace(".ipynb)", ".md)") if is_notebook else link[0]

    return _LINK.sub(outside, markdown)


def decisions_page() -> str:
    """Return the list of decisions with their titles."""
    lines = ["# Decisions", "", "Choices that may surprise, and why they were made.", ""]
    for path in sorted((ROOT / "docs/decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}](../decisions/{path.name})")
    return "\n".join(lines) + "\n"


def notebook_page(notebook: dict, name: str) -> str:
    """Return an executed notebook as a page: text, code, and what the code gave."""
    lines = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        lines += [shown for output in cell["outputs"] if (shown := _output(output))]
    note = f"*This page is the notebook [{name}]({name}), as it was run.*"
    first, rest = lines[0].split("\n", 1) if "\n" in lines[0] else (lines[0], "")
    return "\n".join([first, "", note, "", rest, *lines[1:]])


def _output(output: dict) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        inside = "".join(data["text/html"])
    elif "image/png" in data:
        inside = (
            f'<img alt="output" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
        )
    elif "image/jpeg" in data:
        inside = (
            f'<img alt="output" src="data:image/jpeg;base64,{"".join(data["image/jpeg"]).strip()}">'
        )
    else:
        text = "".join(output.get("text", data.get("text/plain", "")))
        inside = f"<pre>{html.escape(_TAGS.sub('', text))}</pre>" if text.strip() else ""
    inside = re.sub(r"\n\s*\n", "\n", inside)
    return f'<div class="notebook-output">{inside}</div>\n' if inside else ""
