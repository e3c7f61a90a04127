"""The command `search`: generate, caption, and prove which captions make the classifier fail."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.generators import GeneratorOption, show_cost
from weakspot.cli.running import EngineOption, JsonOption, ProjectOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weakspot.app.project import Project
    from weakspot.app.searching import SearchOutcome
    from weakspot.core.run import StageProgress

FolderOption = typer.Option(None, "--to", help="Folder for the page, the contact sheet and the record; default: in the project.")
ProveOption = typer.Option(False, "--prove", help="Put what was found to your own samples: a run that `repair` can go on with.")


def search(
    class_name: str = typer.Option(..., "--class", help="Whose failures are searched for."),
    target: str = typer.Option("", "--target", help="Count only failures that are taken for this class."),
    captions: list[str] = typer.Option([], "--caption", help="Your own caption, measured first; repeatable."),
    until: int = typer.Option(0, "--until", min=0, help="Go on with a promising caption until so many failures that count."),
    budget: int | None = typer.Option(None, "--budget", min=16, help="Most pictures in all, instead of the configured number."),
    project: Path = ProjectOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    prove: bool = ProveOption,
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Search for captions on whose pictures the classifier fails more often than on pictures of the class alone."""
    from weakspot.app.search_page import write_search
    from weakspot.app.searching import SearchCall
    from weakspot.cli import terminal

    call = SearchCall(class_name=class_name, target=target, captions=tuple(captions), until_target_failures=until)
    with terminal.showing_progress() as progress:
        opened = _opened(project, generator, engine, budget, progress)
        show_cost(opened, opened.settings.search.budget)
        outcome = opened.search(call)
        files = write_search(outcome, to or opened.folder / "searches" / class_name)
        proven = list(_proven_lines(opened, outcome)) if prove else []
    if as_json:
        terminal.print_json(outcome.record.model_dump(mode="json"))
        return
    terminal.say("\n".join([*_lines(outcome), *proven, f"Page with the pictures: {files[0]}"]))


def _opened(project: Path, generator: str, engine: str, budget: int | None, progress: "StageProgress") -> "Project":
    from weakspot.app.config import load_settings, with_engine
    from weakspot.app.generator_choice import with_generator
    from weakspot.app.project import Project

    settings = with_engine(with_generator(load_settings(project), generator), engine)
    if budget is not None:
        settings = settings.model_copy(update={"search": settings.search.model_copy(update={"budget": budget})})
    return Project(project, settings, progress=progress)


def _lines(outcome: "SearchOutcome") -> "Iterator[str]":
    from weakspot.app.search_page import finding_sentence, headline, what_it_means

    result = outcome.record.result
    yield headline(result)
    yield from (f"  {finding_sentence(finding)}" for finding in result.findings)
    yield from result.notes
    yield from what_it_means(result, outcome.record.inputs)


def _proven_lines(opened: "Project", outcome: "SearchOutcome") -> "Iterator[str]":
    from weakspot.app.searching import phrase_of
    from weakspot.cli.wording import findings

    result = outcome.record.result
    phrases = [phrase_of(finding.trial.caption) for finding in result.findings]
    if not phrases:
        yield "Nothing was found that could be put to your own samples."
        return
    record = opened.prove(result.class_name, phrases)
    yield f"On your own samples (run {record.run_id}):"
    yield findings(record)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(search)
