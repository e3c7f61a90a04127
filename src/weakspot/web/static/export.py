"""The pages as files, for places without ports: read-only, opened from a folder, with everything that they show beside them."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from weakspot import __version__
from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.web.application import HOW_TO_BUILD, PAGES, are_built
from weakspot.web.jobs.runner import JobRunner
from weakspot.web.roles import Role
from weakspot.web.routes.session import PersonView, SessionView
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.samples.thumbnails import thumbnail
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore
from weakspot.web.static.asker import Asker, Question
from weakspot.web.static.questions import Answer, Reading, digests_in, only_exported

MARKER = "weakspot-export.json"
STATE_FILE = "browser.sqlite"
MEGABYTE = 1_000_000
IMAGE_SIDE = 160
DATA_SHARE = 0.6
FILE_BYTES = 8 * MEGABYTE
MOST_FACTS = 1000
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
        with Asker(self.parts, hidden=_hidden(workspace.project)) as asker:
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
        self.answers["/api/session"] = self._session()
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

    def _session(self) -> JsonValue:
        person = PersonView(name="exported pages", role=Role.VIEWER, study_id=None)
        workspace = self.parts.workspace
        view = SessionView(
            person=person,
            csrf_token="",
            project=workspace.project.folder.resolve().name,
            is_read_only=True,
            has_images=workspace.has_images,
        )
        return view.model_dump(mode="json")

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
        for row in rows[:MOST_FACTS]:
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
