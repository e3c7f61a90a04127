"""Commands that generate images: generate, search, counterfactual."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from weakspot.cli import terminal
from weakspot.cli.options import (
    EngineOption,
    GeneratorOption,
    JsonOption,
    ProjectOption,
    RunOption,
    open_with_generator,
    show_cost,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weakspot.generate.adversarial_sources import ModelUnderTest
    from weakspot.generate.search_run import SearchResult
    from weakspot.project.project import Project

FolderOption = typer.Option(
    None,
    "--to",
    help="Folder for the page, the contact sheet and the record; default: in the project.",
)


def generate(
    captions: list[str] = typer.Argument(
        None,
        help='What to show: "on grass" "green" or whole prompts; default: the confirmed slices.',
    ),
    class_name: str = typer.Option("", "--class", help="The class of the captions."),
    to: Path = typer.Option(
        ...,
        "--to",
        help="Folder for the images, one sub-folder per class, and their table metadata.csv.",
    ),
    number: int = typer.Option(20, "--number", "-n", min=1, help="Images for every prompt."),
    purpose: Literal["train", "measure"] = typer.Option(
        "train",
        "--for",
        help="train: composed from samples to train on; measure: from samples that are held out.",
    ),
    project: Path = ProjectOption,
    run_id: str = RunOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Generate images of what the classifier fails on; `repair --synthetic FOLDER` trains on them."""
    from weakspot.generate.generated_folder import GenerateRequest

    request = GenerateRequest(
        class_name=class_name, captions=tuple(captions or ()), n_each=number, purpose=purpose
    )
    with terminal.showing_progress() as progress:
        made = open_with_generator(project, generator, engine, progress).generate(
            to, request, run_id or None
        )
    terminal.show(made, made.lines(), as_json=as_json)


def search(
    class_name: str = typer.Option(..., "--class", help="Whose failures are searched for."),
    target: str = typer.Option(
        "", "--target", help="Count only failures that are taken for this class."
    ),
    captions: list[str] = typer.Option(
        [], "--caption", help="Your own caption, measured first; repeatable."
    ),
    until: int = typer.Option(
        0,
        "--until",
        min=0,
        help="Go on with a promising caption until so many failures that count.",
    ),
    budget: int | None = typer.Option(
        None, "--budget", min=16, help="Most images in all, instead of the configured number."
    ),
    project: Path = ProjectOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    prove: bool = typer.Option(
        False,
        "--prove",
        help="Put what was found to your own samples: a run that `repair` can go on with.",
    ),
    confirm: str = typer.Option(
        "", "--confirm", help="Second generator (NAME or NAME:MODEL) that findings are put to."
    ),
    also: list[Path] = typer.Option(
        [], "--also", help="Another project whose classifier sees findings too; repeatable."
    ),
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Search for captions whose images make the classifier fail: more often than images of the class alone."""
    from weakspot.generate.search_run import SearchRequest, write_search
    from weakspot.project.generated_findings import classifier_of

    call = SearchRequest(
        class_name=class_name, target=target, captions=tuple(captions), until_target_failures=until
    )
    with terminal.showing_progress() as progress:
        opened = open_with_generator(project, generator, engine, progress, search_budget=budget)
        second = open_with_generator(project, confirm or generator, engine, progress)
        others = [classifier_of(path) for path in also]
        show_cost(opened, opened.settings.search.budget)
        result = opened.search(call)
        files = write_search(result, to or opened.folder / "searches" / class_name)
        proven = list(_proven_lines(opened, result)) if prove else []
        if confirm or others:
            proven += _confirmed_lines(second, result, others, files[0].parent)
    terminal.show(
        result.record,
        [*_search_lines(result), *proven, f"Page with the images: {files[0]}"],
        as_json=as_json,
    )


def _search_lines(search: "SearchResult") -> "Iterator[str]":
    from weakspot.generate.search_run import finding_sentence, headline, what_it_means

    result = search.record.result
    yield headline(result)
    yield from (f"  {finding_sentence(finding)}" for finding in result.findings)
    yield from result.notes
    yield from what_it_means(result, search.record.inputs)


def _confirmed_lines(
    second: "Project", search: "SearchResult", others: "list[ModelUnderTest]", folder: Path
) -> list[str]:
    from weakspot.core.errors import RefusedPromptError
    from weakspot.project.generated_findings import confirm_findings

    result = search.record.result
    captions = [finding.trial.prompt for finding in result.findings]
    if not captions:
        return ["Nothing was found that could be put to another generator or classifier."]
    try:
        found = confirm_findings(second, result.class_name, captions, others=others)
    except RefusedPromptError as error:
        return [f"Not confirmed: {error.what} {error.fix or ''}".rstrip()]
    path = folder / "confirmation.json"
    path.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return [*found.lines(), f"Record: {path}"]


def _proven_lines(opened: "Project", search: "SearchResult") -> "Iterator[str]":
    from weakspot.cli.results import findings
    from weakspot.generate.search_run import phrase_of

    result = search.record.result
    phrases = [phrase_of(finding.trial.caption) for finding in result.findings]
    phrases = phrases or [phrase_of(caption) for caption in result.suspicions]
    if not phrases:
        yield "Nothing was found that could be put to your own samples."
        return
    record = opened.prove(result.class_name, phrases)
    yield f"On your own samples (run {record.run_id}):"
    yield findings(record)
    yield from opened.asked()


def counterfactual(
    captions: list[str] = typer.Argument(
        ..., help='What is changed: "on grass" "green" "it is dark." or a whole prompt.'
    ),
    class_name: str = typer.Option(..., "--class", help="What the images show."),
    project: Path = ProjectOption,
    number: int = typer.Option(40, "--number", "-n", min=1, help="Images for every caption."),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Change one thing in images of a class: how much more often does the classifier fail then?"""
    from weakspot.generate.counterfactuals import (
        CounterfactualRequest,
        explanation,
        sentence,
        write_counterfactuals,
    )

    with terminal.showing_progress() as progress:
        opened = open_with_generator(project, generator, engine, progress)
        request = CounterfactualRequest(
            class_name=class_name, captions=tuple(captions), n_each=number
        )
        show_cost(opened, number * (len(captions) + 1))
        result = opened.counterfactual(request)
        files = write_counterfactuals(result, to or opened.folder / "counterfactuals" / class_name)
    series = result.series
    lines = [*explanation(series), *(f"  {sentence(rate)}" for rate in series.rates), *series.notes]
    terminal.show(series, [*lines, f"Page with the images: {files[0]}"], as_json=as_json)
