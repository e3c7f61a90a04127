"""The pages as files, for places without ports: read-only, opened from a folder, with everything that they show beside them.

What is exported is what the server would have answered: its own routes are asked in this process, page by page.

=========================================  =====================================================================
overview                                   /api/overview, /api/runs, /api/runs/{run}/images, /api/discoverers
classes                                    /api/classes, and of every class /samples, /suggestions, /history and
                                           the scores (POST /phrase) of its suggestions and of earlier phrases
slices                                     /api/slices, and of every slice itself and /members of all four kinds
attributes                                 /api/attributes (all, and every class), /edits, /combinations, /samples
map                                        /api/map, /api/map/colourings, /api/map/colours of everything
repair                                     /api/repair/options, /api/repair/results, /api/repair/images
search                                     /api/generation/setup, /counterfactuals, /searches
a sample                                   /api/samples/{row} of samples whose images are exported
=========================================  =====================================================================

Not exported: the session (a viewer's is written instead), running work, studies and people, uploads, downloads, comparisons,
and everything that changes something. Constants below are those of the pages.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
from fastapi import FastAPI
from pydantic import JsonValue
from starlette.types import ASGIApp, Message, Scope

from weakspot import __version__
from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.web import problems
from weakspot.web.application import HOW_TO_BUILD, PAGES, ROUTERS, are_built
from weakspot.web.jobs import JobRunner
from weakspot.web.routes.session import session_view
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.samples import thumbnail
from weakspot.web.services.view import INT32, UINT8, unpack
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import Person, Role, StateStore

READER = Person(person_id="static export", name="exported pages", role=Role.OWNER)
FOUND = 200


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request of a page.

    Args:
        path: as it is, not encoded.
        query: names and values, in any order; a name may occur several times.
        body: what is sent, if it is not a GET.
        also: other queries that get the same answer, for example the one without the run.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, JsonValue] | None = None
    also: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return under which names pages look for the answer, see `answerKey` in frontend/src/api/static.ts."""
        return tuple(answer_key(self.path, query, self.body) for query in (self.query, *self.also))


def answer_key(
    path: str, query: Sequence[tuple[str, str]], body: Mapping[str, JsonValue] | None = None
) -> str:
    """Return the name of an answer: the path with its query by name, not encoded, and the fields of the body by name.

    >>> answer_key("/api/slices", [("run", "a b"), ("kind", "*")])
    '/api/slices?kind=*&run=a b'
    >>> answer_key("/api/classes/phrase", [], {"title": "x", "offset": 0})
    'POST /api/classes/phrase {"offset":0,"title":"x"}'
    """
    asked = "&".join(f"{name}={value}" for name, value in sorted(query, key=lambda pair: pair[0]))
    key = f"{path}?{asked}" if asked else path
    if body is None:
        return key
    return f"POST {key} {json.dumps(dict(sorted(body.items())), ensure_ascii=False, separators=(',', ':'))}"


@dataclass(eq=False)
class Asker:
    """Asks the routes of a server as a reader who is signed in; there is no network and no session.

    Answers are worked out in a thread of their own, so that a program which has an event loop already, like a notebook, can ask.

    Args:
        parts: what the server holds.
        hidden: texts that must not leave this machine, with what stands in their place.
    """

    parts: ServerParts
    hidden: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the server."""
        self._app = FastAPI()
        self._app.state.parts = self.parts
        problems.add_handlers(self._app)
        for router in ROUTERS:
            self._app.include_router(router)

    def ask(self, question: Question) -> JsonValue | None:
        """Return an answer without what must not leave this machine; None if the server refuses."""
        content = self.data(question.path, question.query, question.body)
        return None if content is None else self._scrub(json.loads(content))

    def data(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, JsonValue] | None = None,
    ) -> bytes | None:
        """Return an answer as it is, for example an image; None if the server refuses."""
        sent = b"" if body is None else json.dumps(dict(body)).encode()
        scope = _scope("GET" if body is None else "POST", path, urlencode(query))
        with ThreadPoolExecutor(1) as thread:
            status, content = thread.submit(asyncio.run, _answer(self._app, scope, sent)).result()
        return content if status == FOUND else None

    def _scrub(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {
                name: _first_words(item) if name == "command" else self._scrub(item)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, str):
            for text, instead in self.hidden.items():
                value = value.replace(text, instead)
        return value


def _scope(method: str, path: str, query: str) -> Scope:
    """Return a request of the reader, who stands where the middleware puts whoever is signed in."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {"person": READER, "csrf_token": "", "session_token": ""},
    }


async def _answer(app: ASGIApp, scope: Scope, body: bytes) -> tuple[int, bytes]:
    status, content = 0, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = int(message["status"])
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(content)


def _first_words(command: JsonValue) -> JsonValue:
    """Return a command without its options, which may name files.

    >>> _first_words("weakspot demo --folder my/fruit")
    'weakspot demo'
    """
    if not isinstance(command, str):
        return command
    found = re.match(r"\S+(?: [a-z][a-z-]*)?", command)
    return found[0].rsplit("/", 1)[-1] if found else ""


SLICE_PAGE = 60
SLICE_KINDS = ("members", "extremes", "counter", "outside")
CLASS_PIECE = 200_000
VALUE_PAGE, VALUE_PAGES = 100, 4
MIN_SUPPORT, WORST_SHOWN, PAIR_CELLS = 10, 60, 2500
MAX_PAIRED = 6
MAX_CLASSES, MAX_SLICES, MAX_VALUES, MAX_COLOURINGS, MAX_PHRASES = 300, 300, 150, 60, 30
FIRST_OF_CLASS = 120

Answer = dict[str, JsonValue]
Chosen = tuple[tuple[str, str], ...]
Ask = Callable[[Question], Answer | None]
Want = Callable[[list[int]], None]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How pages are read through.

    Args:
        ask: returns the answer, and keeps it for the export.
        want: called with the samples that are seen, most important first.
        run_id: the run that is exported; None if there is none.
    """

    ask: Ask
    want: Want
    run_id: str | None

    def all_pages(self) -> None:
        """Ask everything that the pages ask, most important first."""
        for page in (
            self._overview,
            self._slices,
            self._classes,
            self._attributes,
            self._map,
            self._repair,
            self._search,
        ):
            page()

    def _of_run(self, path: str, *query: tuple[str, str]) -> Answer | None:
        """Ask about the run; pages that name none mean the same."""
        if self.run_id is None:
            return self.ask(Question(path=path, query=query))
        return self.ask(Question(path=path, query=(("run", self.run_id), *query), also=(query,)))

    def _overview(self) -> None:
        self._of_run("/api/overview")
        self.ask(Question(path="/api/runs"))
        self.ask(Question(path="/api/discoverers"))
        if self.run_id is not None:
            shown = self.ask(Question(path=f"/api/runs/{self.run_id}/images"))
            self.want(list(_rows(shown)))

    def _slices(self) -> None:
        table = self._of_run("/api/slices")
        for line in _items(table, "slices")[:MAX_SLICES]:
            path = f"/api/slices/{line['slice_id']}"
            self._of_run(path)
            for kind in SLICE_KINDS:
                page = self._of_run(
                    f"{path}/members", ("kind", kind), ("offset", "0"), ("limit", str(SLICE_PAGE))
                )
                self.want(list(_rows(page)))

    def _classes(self) -> None:
        found = self.ask(Question(path="/api/classes"))
        titles = [str(one["title"]) for one in _items(found, "classes")][:MAX_CLASSES]
        for title in titles:
            self._class_samples(title)
        for title in titles:
            self._phrases(title)

    def _class_samples(self, title: str) -> None:
        first = self.ask(Question(path="/api/classes/samples", query=(("title", title),)))
        if first is None:
            return
        rows, failed = unpack(str(first["rows"]), INT32), unpack(str(first["failed"]), UINT8)
        self.want(rows[failed == 1][:FIRST_OF_CLASS].tolist())
        self.want(rows[failed == 0][:FIRST_OF_CLASS].tolist())
        for offset in range(CLASS_PIECE, int(str(first["total"])), CLASS_PIECE):
            self.ask(
                Question(
                    path="/api/classes/samples", query=(("title", title), ("offset", str(offset)))
                )
            )

    def _phrases(self, title: str) -> None:
        asked = (("title", title),)
        suggested = self.ask(Question(path="/api/classes/suggestions", query=asked))
        history = self.ask(Question(path="/api/classes/history", query=asked))
        words = [str(one["words"]) for one in _items(suggested, "words")]
        words += [str(one["phrase"]) for one in _items(history, "phrases")]
        for phrase in list(dict.fromkeys(words))[:MAX_PHRASES]:
            body: Answer = {
                "title": title,
                "phrase": phrase,
                "source": "own",
                "is_submitted": False,
                "offset": 0,
                "limit": CLASS_PIECE,
            }
            self.ask(Question(path="/api/classes/phrase", body=body))

    def _attributes(self) -> None:
        everything = self.ask(Question(path="/api/attributes"))
        self.ask(Question(path="/api/attributes/edits"))
        titles = everything.get("titles") if everything is not None else None
        of_classes: list[Chosen] = [
            (("title", str(title)),) for title in (titles if isinstance(titles, list) else [])
        ]
        for of_class in of_classes[:MAX_CLASSES]:
            self.ask(Question(path="/api/attributes", query=of_class))
        assigned = [
            one for one in _items(everything, "attributes") if one.get("state") == "assigned"
        ]
        names = [str(one["attribute_id"]) for one in assigned]
        for of_class in ((), *of_classes[:MAX_CLASSES]):
            self._combinations((), of_class)
        for chosen in [*[(name,) for name in names], *combinations(names[:MAX_PAIRED], 2)][
            :MAX_VALUES
        ]:
            self._combinations(chosen, ())
        values = [
            (str(one["attribute_id"]), str(value["value_id"]))
            for one in assigned
            for value in _items(one, "values")
        ]
        for attribute, value in values[:MAX_VALUES]:
            self._value_samples(attribute, value)

    def _combinations(self, attributes: tuple[str, ...], of_class: Chosen) -> None:
        limit = PAIR_CELLS if len(attributes) == 2 else WORST_SHOWN  # noqa: PLR2004 - a pair is a table
        chosen = tuple(("attributes", name) for name in attributes)
        query = (*chosen, ("min_support", str(MIN_SUPPORT)), ("limit", str(limit)), *of_class)
        self.ask(Question(path="/api/attributes/combinations", query=query))

    def _value_samples(self, attribute: str, value: str) -> None:
        for result in ("wrong", "right"):
            for offset in range(0, VALUE_PAGES * VALUE_PAGE, VALUE_PAGE):
                paging = (("result", result), ("offset", str(offset)), ("limit", str(VALUE_PAGE)))
                page = self.ask(
                    Question(
                        path="/api/attributes/samples",
                        query=(("attributes", attribute), ("values", value), *paging),
                    )
                )
                self.want(list(_rows(page)) if offset == 0 else [])
                if page is None or int(str(page["total"])) <= offset + VALUE_PAGE:
                    break

    def _map(self) -> None:
        places = [
            self.ask(Question(path="/api/map", query=(("layout", layout),)))
            for layout in ("pca", "umap")
        ]
        found = self.ask(Question(path="/api/map/colourings"))
        for colouring in _items(found, "colourings")[:MAX_COLOURINGS]:
            self.ask(Question(path="/api/map/colours", query=(("by", str(colouring["by"])),)))
        if places[0] is not None:
            # Numpy shuffles a copy, but takes an empty array as it is, and what was unpacked is read-only.
            rows = unpack(str(places[0]["rows"]), INT32).copy()
            self.want(np.random.default_rng(0).permutation(rows).tolist())

    def _repair(self) -> None:
        self._of_run("/api/repair/options")
        self._of_run("/api/repair/results")
        changed = self._of_run("/api/repair/images")
        self.want(list(_rows(changed)))

    def _search(self) -> None:
        for name in ("setup", "counterfactuals", "searches"):
            self.ask(Question(path=f"/api/generation/{name}"))


def only_exported(answer: JsonValue, run_id: str | None) -> JsonValue:
    """Return an answer that offers nothing that only a server could give: no other run, no words for the map."""
    if not isinstance(answer, dict):
        return answer
    changed = dict(answer)
    if "colourings" in answer and "has_words" in answer:
        changed["has_words"] = False
    if "run_ids" in answer:
        changed["run_ids"] = [run_id] if run_id is not None else []
    if isinstance(runs := answer.get("runs"), list):
        changed["runs"] = [
            one for one in runs if isinstance(one, dict) and one.get("run_id") == run_id
        ]
    return changed


def digests_in(answer: JsonValue) -> Iterator[str]:
    if isinstance(answer, dict):
        if isinstance(digest := answer.get("digest"), str):
            yield digest
        listed = answer.get("digests")
        yield from (
            one for one in (listed if isinstance(listed, list) else []) if isinstance(one, str)
        )
        for name, item in answer.items():
            if name not in ("digest", "digests"):
                yield from digests_in(item)
    elif isinstance(answer, list):
        for item in answer:
            yield from digests_in(item)


def _items(answer: JsonValue | None, name: str) -> list[Answer]:
    found = answer.get(name) if isinstance(answer, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _rows(answer: JsonValue | None) -> Iterator[int]:
    if isinstance(answer, dict):
        if isinstance(row := answer.get("row"), int):
            yield row
        listed = answer.get("rows")
        if isinstance(listed, list):
            yield from (one for one in listed if isinstance(one, int))
        if isinstance(listed, str):
            yield from (int(one) for one in unpack(listed, INT32))
        for item in answer.values():
            if isinstance(item, dict | list):
                yield from _rows(item)
    elif isinstance(answer, list):
        for item in answer:
            if isinstance(item, dict | list):
                yield from _rows(item)


MARKER = "weakspot-export.json"
STATE_FILE = "browser.sqlite"
MEGABYTE = 1_000_000
IMAGE_SIDE = 160
DATA_SHARE = 0.6
FILE_BYTES = 8 * MEGABYTE
MAX_FACTS = 1000
PATIENCE_SECONDS = 60.0
ASK_AGAIN_SECONDS = 0.2
SCRIPT = re.compile(r"<script\b")
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """What is exported, and where to.

    Args:
        project: the project folder.
        folder: is made; must be empty, or hold an earlier export if `is_forced`.
        run_id: the newest run if none is named.
        most_samples: images of so many samples at most.
        most_megabytes: size of all files together, the pages themselves not counted.
        is_forced: whether an earlier export may be replaced.
        pages: where the built pages are.
    """

    project: Path
    folder: Path
    run_id: str | None = None
    most_samples: int = 4000
    most_megabytes: float = 60.0
    is_forced: bool = False
    pages: Path = field(default_factory=lambda: PAGES)


@dataclass(frozen=True, kw_only=True)
class ExportSummary:
    """What was written.

    Args:
        index: the page to open.
        n_answers: how many answers.
        n_images: of samples.
        n_bytes: of all files.
        notes: what was left out, in sentences.
    """

    index: Path
    n_answers: int
    n_images: int
    n_bytes: int
    notes: tuple[str, ...]


def export_static(request: ExportRequest, *, say: Say) -> ExportSummary:
    """Write the pages and what they show into a folder.

    Raises:
        ConfigError: if the pages are not built, or the folder holds something else.
        StoreError: if there is no such run.
    """
    if not are_built(request.pages):
        raise ConfigError(
            "The pages of weakspot are not built in this installation.",
            fix=f"Run: {HOW_TO_BUILD}",
        )
    _check_folder(request)
    project = Project.open(request.project)
    if request.run_id is not None:
        project.run_record(request.run_id)
    target = request.folder.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as made,
        _parts(project) as parts,
    ):
        folder = Path(made) / target.name
        folder.mkdir()
        summary = _Writer(request=request, parts=parts, folder=folder, say=say).write()
        _check_folder(request)
        if target.exists():
            shutil.rmtree(target)
        folder.replace(target)
    return summary


@dataclass(eq=False, kw_only=True)
class _Writer:
    """Writes one export into an empty folder."""

    request: ExportRequest
    parts: ServerParts
    folder: Path
    say: Say
    answers: dict[str, JsonValue] = field(default_factory=dict)
    wanted: dict[int, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    n_bytes: int = 0
    n_left_out: int = 0

    def write(self) -> ExportSummary:
        workspace = self.parts.workspace
        record = workspace.record(self.request.run_id)
        asker = Asker(self.parts, hidden=_hidden(workspace.project))
        rows = self._write_answers(asker, record.run_id if record is not None else None)
        if self.n_left_out:
            self.notes.append(
                f"{self.n_left_out} answers, mostly scores of phrases, were left out to stay small."
            )
        self._write_pages(rows)
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        index = self.request.folder / "index.html"
        return ExportSummary(
            index=index,
            n_answers=len(self.answers),
            n_images=len(rows),
            n_bytes=size,
            notes=tuple(self.notes),
        )

    def _write_answers(self, asker: Asker, run_id: str | None) -> list[int]:
        self.say("Asking what the pages show")
        reading = Reading(
            ask=lambda question: self._kept(asker, question, run_id), want=self._want, run_id=run_id
        )
        reading.all_pages()
        self.answers["/api/session"] = session_view(self.parts, READER, "").model_dump(mode="json")
        self.say("Writing images")
        rows = self._write_images(self.parts.workspace)
        self._write_facts(asker, rows if self.parts.workspace.has_images else list(self.wanted))
        self._write_generated(asker)
        return rows

    def _want(self, rows: list[int]) -> None:
        for row in rows:
            if len(self.wanted) >= self.request.most_samples:
                return
            self.wanted.setdefault(int(row))

    def _kept(self, asker: Asker, question: Question, run_id: str | None) -> Answer | None:
        found = only_exported(self._complete(asker, question), run_id)
        if not isinstance(found, dict):
            return None
        size = len(json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if self.n_bytes + size > DATA_SHARE * self._most_bytes:
            self.n_left_out += 1
            return found
        self.n_bytes += size
        self.answers.update(dict.fromkeys(question.keys, found))
        return found

    def _complete(self, asker: Asker, question: Question) -> JsonValue:
        """Ask until an answer is complete; one that is not after a while is marked so, because nothing can be added later."""
        found = asker.ask(question)
        for name in ("is_ranked", "is_complete"):
            until = time.monotonic() + PATIENCE_SECONDS
            while isinstance(found, dict) and found.get(name) is False and time.monotonic() < until:
                time.sleep(ASK_AGAIN_SECONDS)
                found = asker.ask(question)
            if isinstance(found, dict) and name in found:
                found = {**found, name: True}
        return found

    @property
    def _most_bytes(self) -> float:
        return self.request.most_megabytes * MEGABYTE

    def _write_images(self, workspace: Workspace) -> list[int]:
        """Write thumbnails of samples that pages show, most important first, as long as there is room."""
        if not workspace.has_images:
            return []
        folder = self.folder / "images"
        folder.mkdir()
        written: list[int] = []
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            made = pool.map(
                lambda row: (row, thumbnail(workspace, row, side=IMAGE_SIDE)), list(self.wanted)
            )
            for row, small in made:
                if small is None:
                    continue
                if self.n_bytes + len(small.data) > self._most_bytes:
                    break
                self.n_bytes += len(small.data)
                (folder / f"{row}.jpg").write_bytes(small.data)
                written.append(row)
        n_samples = len(workspace.samples.dataset)
        if len(written) < n_samples:
            self.notes.append(
                f"Images of {len(written):,} of {n_samples:,} samples were exported; others say so in their place."
            )
        return written

    def _write_facts(self, asker: Asker, rows: list[int]) -> None:
        tables = self.parts.workspace.tables_key
        for row in rows[:MAX_FACTS]:
            question = Question(path=f"/api/samples/{row}", query=(("tables", tables),))
            self._kept(asker, question, None)

    def _write_generated(self, asker: Asker) -> None:
        folder = self.folder / "generated"
        for digest in dict.fromkeys(digests_in(list(self.answers.values()))):
            data = asker.data(f"/api/generation/images/{digest}")
            if data is not None and self.n_bytes + len(data) <= self._most_bytes:
                folder.mkdir(exist_ok=True)
                self.n_bytes += len(data)
                (folder / f"{digest}.jpg").write_bytes(data)

    def _write_pages(self, rows: list[int]) -> None:
        for path in sorted(self.request.pages.rglob("*")):
            if path.is_file() and path.name != "index.html":
                place = self.folder / path.relative_to(self.request.pages)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        names = list(self._write_data(rows))
        tags = "".join(f'<script defer src="./{name}"></script>\n    ' for name in names)
        html = (self.request.pages / "index.html").read_text(encoding="utf-8")
        found = SCRIPT.search(html)
        if found is None:
            raise ConfigError("The built pages have no script.", fix=f"Run: {HOW_TO_BUILD}")
        (self.folder / "index.html").write_text(
            html[: found.start()] + tags + html[found.start() :], encoding="utf-8"
        )
        marker = {
            "made_by": "weakspot export --static",
            "version": __version__,
            "n_answers": len(self.answers),
        }
        (self.folder / MARKER).write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")

    def _write_data(self, rows: list[int]) -> Iterator[str]:
        """Write the answers as scripts of bounded size, and yield their names; the first one makes the place for the others."""
        start = {"answers": {}, "images": rows, "notes": self.notes}
        parts: list[dict[str, JsonValue]] = [{}]
        n_bytes = 0
        for key, answer in self.answers.items():
            size = len(json.dumps(answer))
            if n_bytes and n_bytes + size > FILE_BYTES:
                parts.append({})
                n_bytes = 0
            parts[-1][key] = answer
            n_bytes += size
        (self.folder / "data").mkdir()
        for number, part in enumerate(parts):
            name = f"data/data-{number}.js"
            opening = f"window.weakspotStatic = {_parse(start)};\n" if number == 0 else ""
            text = f"{opening}Object.assign(window.weakspotStatic.answers, {_parse(part)});\n"
            (self.folder / name).write_text(text, encoding="utf-8")
            yield name


def _parse(value: object) -> str:
    """Return an expression whose value this is; text is parsed as JSON, so that no name in it means anything to the language."""
    return f"JSON.parse({json.dumps(json.dumps(value))})"


def _check_folder(request: ExportRequest) -> None:
    """Do nothing if the folder can be written without losing anything.

    Raises:
        ConfigError: if it holds something.
    """
    folder = request.folder
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError("The folder for the pages is no folder.", where=str(folder))
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / MARKER).is_file():
        raise ConfigError(
            "The folder holds something else.", where=str(folder), fix="Name a new folder."
        )
    if not request.is_forced:
        raise ConfigError(
            "The folder holds an earlier export.",
            where=str(folder),
            fix="Name a new folder, or add --force.",
        )


def _hidden(project: Project) -> dict[str, str]:
    """Return paths of this machine, longest first, with what stands in their place."""
    root = project.folder.resolve()
    found = {
        str(root): root.name,
        str(project.folder.absolute()): root.name,
        str(root.parent): "…",
        str(Path.home()): "~",
    }
    return {text: found[text] for text in sorted(found, key=len, reverse=True) if len(text) > 1}


@contextlib.contextmanager
def _parts(project: Project) -> Iterator[ServerParts]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        original = project.store.data / STATE_FILE
        if original.exists():
            with (
                contextlib.closing(sqlite3.connect(f"file:{original}?mode=ro", uri=True)) as source,
                contextlib.closing(sqlite3.connect(place / STATE_FILE)) as copy,
            ):
                source.backup(copy)
        with (
            contextlib.closing(StateStore.beside(place)) as state,
            contextlib.closing(JobRunner(place, state)) as jobs,
        ):
            yield ServerParts(
                workspace=Workspace(project),
                state=state,
                jobs=jobs,
                owner_token="",
                is_read_only=True,
            )
