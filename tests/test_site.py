"""The site is built without a warning and without the network, its links lead somewhere, and the notebooks run."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
ENVIRONMENT = {
    **os.environ,
    "NO_MKDOCS_2_WARNING": "1",
    "PYTHONPATH": str(ROOT / "src"),
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
}


class _Page(HTMLParser):
    """What a page links to, loads and can be linked at."""

    def __init__(self):
        super().__init__()
        self.links, self.loaded, self.places = [], [], set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site: every page by its path."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    pages = {}
    for path in folder.rglob("*.html"):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_site__has_all_kinds_of_pages(site):
    names = {path.parent.name for path in site}
    assert {"tutorials", "guide", "explanation", "reference", "results", "notebooks"} <= names
    assert len(site) > 100


def test_site__links_lead_somewhere(site):
    wrong = []
    for path, page in site.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or link == "." or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            found = site.get(target)
            if not target.exists() or (anchor and found and anchor not in found.places):
                wrong.append(f"{path.name}: {link}")
    assert wrong == []


def test_site__loads_nothing_from_elsewhere(site):
    loaded = [link for page in site.values() for link in page.loaded]
    assert [link for link in loaded if link.startswith(("http", "//"))] == []
    home = next(path.parent for path in site if path.name == "404.html")
    texts = [path.read_text(encoding="utf-8") for path in home.rglob("*.css")]
    assert texts
    assert [text for text in texts if re.search(r"(@import|url\()\s*[\"']?https?:", text)] == []


def test_figures__are_well_formed():
    for path in (ROOT / "docs").rglob("*.svg"):
        ElementTree.parse(path)


def test_llms__names_pages_that_exist():
    text = (ROOT / "docs/llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def _run_notebooks():
    path = ROOT / "tools/run_notebooks.py"
    spec = importlib.util.spec_from_file_location("run_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks__run_and_say_what_the_page_shows(path, tmp_path, monkeypatch):
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    kept = nbformat.read(path, as_version=4)
    now = _run_notebooks().run_notebook(path, tmp_path)
    assert _printed(now) == _printed(kept), "run tools/run_notebooks.py"


def _printed(notebook) -> list[str]:
    """Return what cells printed; the ends of numbers may differ between processors, so figures are left out."""
    texts = [
        "".join(
            output.text
            for output in cell.outputs
            if output.output_type == "stream" and output.name == "stdout"
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    return [re.sub(r"[\d.,]+", "#", text) for text in texts]
