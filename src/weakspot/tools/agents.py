"""A project for programs that talk: what an agent may ask of it and do with it, by the Model Context Protocol."""

import hmac
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from weakspot import __version__
from weakspot.core.errors import ConfigError, MissingExtraError, WeakspotError
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.data.images import jpeg_at
from weakspot.gate.check import CheckRequest, check
from weakspot.gate.policy import load_policy
from weakspot.project.project import Project
from weakspot.report.findings import choose_images, slice_sentences
from weakspot.report.first_answer import first_answer
from weakspot.run.halves import split_in_halves
from weakspot.run.reporting import place_of_report
from weakspot.store.project import DATA_FOLDER
from weakspot.tools.exchange import EXPORTS, export_to
from weakspot.words.meanings import class_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_IMAGES = 24
SIDE = 256


class ProjectTools:
    """One project, asked by name of tool; what a tool says of itself is read by agents.

    Args:
        folder: the project.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def findings(self) -> dict[str, Any]:
        """What is wrong: whole classes that fail, confirmed slices with rates and causes, and what to do."""
        record = self._project().run_record()
        answer = first_answer(record)
        return {
            "run": record.run_id,
            "headline": answer.headline,
            "problems": [check.sentence for check in answer.problems],
            "whole_classes": [one.text for one in answer.findings if not one.slice_id],
            "slices": [
                self._told(record, found.slice_id)
                for found, evidence in record.published()
                if evidence.explained is None
            ],
            "to_do": [one.sentence for one in answer.to_do],
            "not_confirmed": answer.not_confirmed,
        }

    def evidence(self, slice_id: str) -> dict[str, Any]:
        """Everything that was measured of one slice, confirmed or not; the id is in `findings`."""
        record = self._project().run_record()
        measured = next(
            (one for one in record.evidence if one.slice_id == self._full_id(record, slice_id)),
            None,
        )
        told = self._told(record, slice_id)
        return told if measured is None else told | {"evidence": measured.model_dump(mode="json")}

    def images(self, slice_id: str, n_images: int) -> dict[str, list[tuple[str, bytes]]]:
        """Return images of a slice and of the rest of its class, each with what the classifier says of it.

        They are among the samples that questions may be thought up on.

        Samples that a question is judged on stay unseen, so that what is asked after looking can still be proven.

        Raises:
            ConfigError: if there is no slice of this id, or nothing to show.
        """
        project = self._project()
        record = project.run_record()
        found = record.slices_by_id()[self._full_id(record, slice_id)]
        samples = project.samples(record)
        if not samples.dataset.has_images:
            raise ConfigError(
                "The samples of this project have no images.", fix="Ask for the evidence instead."
            )
        halves = split_in_halves(samples, project.settings, project.criterion)
        shown = choose_images(
            found,
            halves[0][0],
            project.criterion,
            n_images=max(1, min(n_images, MAX_IMAGES)),
        )
        dataset = samples.dataset
        places = dict(zip(dataset.sample_ids(), dataset.locations(), strict=True))
        strips = {"in the slice": shown.hard, "rest of the class": shown.easy}
        return {
            name: [
                (image.caption, data)
                for image in images
                if (data := jpeg_at(places[image.sample_id], SIDE)) is not None
            ]
            for name, images in strips.items()
        }

    def ask(self, phrase: str, class_name: str = "") -> dict[str, Any]:
        """Test words for what failures have in common, on held-out samples. Counts in the ledger: each question makes proof dearer."""
        project = self._project()
        dataset = project.samples().dataset
        named = class_name or class_in([phrase], dataset.class_names)
        report = project.ask(named, [phrase])
        (answer,) = report.answers
        return {
            "class": answer.class_name,
            "phrase": answer.phrase,
            "answer": answer.fit.value,
            "advice": answer.advice,
            "held_out": answer.confirmation.model_dump(mode="json"),
            "p_value": answer.p_value,
            "p_over_everything_asked": answer.p_after_looks,
            "left": report.left,
        }

    def run(self, progress: StageProgress = no_stage_progress) -> dict[str, Any]:
        """Do the whole loop, write the report, and return the findings."""
        project = Project.open(self.folder, progress=progress)
        record = project.run()
        return {"report": str(place_of_report(project.store, record.run_id)), **self.findings()}

    def check(self, policy: str = "policy.toml") -> dict[str, Any]:
        """Judge the newest run by a policy file of the project folder: may this model be released?"""
        request = CheckRequest(policy=load_policy(self._inside(policy)), policy_name=policy)
        return check(self._project(), request)[0].model_dump(mode="json")

    def export(self, to: str, out: str) -> dict[str, Any]:
        """Write findings for another tool (fiftyone, label-studio, cvat, ...) into a folder within the project."""
        if to not in EXPORTS:
            raise ConfigError(
                "There is no such tool.", given=to, fix=f"Choose among: {', '.join(EXPORTS)}."
            )
        folder = self._inside(out)
        own = self.folder.resolve()
        if folder == own or folder.is_relative_to(own / DATA_FOLDER):
            raise ConfigError(
                "This is where the project keeps its own files.",
                given=out,
                fix="Name a new folder, such as exports/coco.",
            )
        written = export_to(self._project(), to, folder)
        return {"files": [str(path) for path in written.files], "sentence": written.sentence}

    def _project(self) -> Project:
        return Project.open(self.folder)

    def _inside(self, name: str) -> Path:
        """Return a path in the project folder; an agent reads and writes nowhere else."""
        home = self.folder.resolve()
        path = home / name if "\0" in name else (home / name).resolve()
        if "\0" in name or not path.is_relative_to(home):
            raise ConfigError(
                "This path leads out of the project folder.",
                given=name,
                fix="Name a file or folder within it.",
            )
        return path

    def _full_id(self, record: RunRecord, slice_id: str) -> str:
        known = [name for name in record.slices_by_id() if slice_id and name.startswith(slice_id)]
        if len(known) != 1:
            raise ConfigError(
                f"There is {'no slice' if not known else 'more than one slice'} of this id.",
                given=slice_id,
                fix="Take an id from the findings.",
            )
        return known[0]

    def _told(self, record: RunRecord, slice_id: str) -> dict[str, object]:
        full = self._full_id(record, slice_id)
        found = record.slices_by_id()[full]
        evidence = next((one for one in record.evidence if one.slice_id == full), None)
        said = slice_sentences(found, evidence, record)
        return {
            "slice_id": full,
            "title": found.title,
            "class": found.class_name,
            "verdict": "not measured" if evidence is None else evidence.verdict.value,
            "sentence": said.sentence,
            "proof": said.proof,
            "effect": said.effect,
            "cause": list(said.cause),
            "not_sure": said.not_sure,
        }


Given = ParamSpec("Given")
Told = TypeVar("Told")
INSTRUCTIONS = (
    "weakspot finds, names and proves the systematic failures of an image classifier. Begin with `findings`. "
    "`images` shows what a slice looks like; `ask` tests your own words on held-out samples: every question counts, so ask few. "
    "Only what is confirmed may be said to be true. `run` takes minutes."
)
MIN_TOKEN = 20


def build_server(folder: Path) -> Any:
    """Return a server with the tools of a project.

    Raises:
        MissingExtraError: if the library `mcp` is not installed.
    """
    try:
        from mcp.server.mcpserver import Context, Image, MCPServer
    except ModuleNotFoundError as error:
        raise MissingExtraError("mcp", extra="mcp", purpose="`weakspot mcp`") from error
    tools = ProjectTools(folder)
    server = MCPServer(
        "weakspot", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR"
    )

    for tool in (tools.findings, tools.evidence, tools.ask, tools.check, tools.export):
        server.tool()(_answering(tool))

    @server.tool(structured_output=False)
    def images(slice_id: str, n_images: int = 8) -> list[Any]:
        """Images of a slice, then images of the rest of its class, each after what the classifier says of it."""
        return _strips(_answering(tools.images)(slice_id, n_images), Image)

    @server.tool()
    async def run(ctx: Context) -> dict[str, Any]:
        """Do the whole loop again (minutes); what is known already is not computed again. Returns the findings."""
        import anyio

        await ctx.report_progress(0, 1)
        return await anyio.to_thread.run_sync(_answering(tools.run))

    return server


def _strips(shown: "Mapping[str, Sequence[tuple[str, bytes]]]", image: Any) -> list[Any]:
    parts: list[Any] = []
    for name, samples in shown.items():
        parts.append(f"{name}: {len(samples)} images")
        for caption, jpeg in samples:
            parts += [caption, image(data=jpeg, format="jpeg")]
    return parts


def _answering(tool: "Callable[Given, Told]") -> "Callable[Given, Told]":
    """Return a tool that tells the agent what weakspot says on purpose as it is."""

    @wraps(tool)
    def answer(*given: Given.args, **named: Given.kwargs) -> Told:
        try:
            return tool(*given, **named)
        except WeakspotError as error:
            from mcp.server.mcpserver.exceptions import ToolError

            raise ToolError(str(error)) from None

    return answer


def with_token(app: Any, token: str) -> Any:
    """Return an application that answers only those who send the token as Bearer.

    Raises:
        ConfigError: if the token is too short to be one.
    """
    if len(token) < MIN_TOKEN:
        raise ConfigError(
            f"A token has at least {MIN_TOKEN} characters.",
            where="WEAKSPOT_TOKEN",
            fix="Make one: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    expected = token.encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, told = given.partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(told.strip(), expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"A token is needed."})
                return
        await app(scope, receive, send)

    return guarded
