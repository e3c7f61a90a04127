"""The sources of the pages: small, each with its own words for its own looks, and a client that fits the server."""

import importlib.util
import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "frontend" / "src"
GENERATED = SOURCES / "api" / "schema.d.ts"
MAX_FILE_LINES = 300
RULE = re.compile(r"(?:^|[},])\s*\.([a-zA-Z][\w-]*)(?=[\s{,:\[.>+~])", re.MULTILINE)


def _files(*suffixes: str) -> list[Path]:
    found = [path for path in SOURCES.rglob("*") if path.suffix in suffixes and path != GENERATED]
    assert len(found) > 10
    return found


def test_pages__no_file_is_too_long():
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in _files(".ts", ".tsx", ".css")
    }
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_pages__looks_of_one_page_do_not_reach_another():
    """All style sheets are loaded together, so a name that two pages style belongs into styles/ or needs another word."""
    pages = defaultdict(set)
    for path in _files(".css"):
        if path.parent.name != "styles":
            for name in RULE.findall(path.read_text()):
                pages[name].add(path.relative_to(SOURCES).parts[1])
    shared = {
        name
        for path in (SOURCES / "styles").glob("*.css")
        for name in RULE.findall(path.read_text())
    }
    clashes = {
        name: sorted(found)
        for name, found in pages.items()
        if len(found) > 1 and name not in shared
    }
    assert clashes == {}


def test_pages__nothing_is_loaded_from_another_host():
    found = [
        str(path.relative_to(ROOT))
        for path in _files(".ts", ".tsx", ".css")
        if re.search(r"https?://(?!www\.w3\.org)", path.read_text())
    ]
    assert [name for name in found if ".test." not in name] == []


def test_client__every_route_that_the_pages_call_is_one_of_the_server():
    spec = importlib.util.spec_from_file_location("make_client", ROOT / "tools" / "make_client.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    called = {
        path
        for file in _files(".ts", ".tsx")
        for path in re.findall(r'api\.(?:GET|POST|DELETE)\("([^"]+)"', file.read_text())
    }
    assert len(called) > 30
    assert called <= set(json.loads(tool.schema_text())["paths"])
