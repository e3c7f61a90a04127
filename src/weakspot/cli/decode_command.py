"""The command `decode`: what a failure direction looks like."""

from pathlib import Path

import typer

from weakspot.cli.generators import GeneratorOption, opened_with
from weakspot.cli.running import EngineOption, JsonOption, ProjectOption, RunOption

SliceOption = typer.Option("", "--slice", help="Slice of the run (id or its beginning); default: the first with a direction.")
AlphaOption = typer.Option([0.0, 0.1, 0.2, 0.3], "--alpha", min=0.0, max=1.0, help="Share of the rotation; repeatable.")
NumberOption = typer.Option(8, "--number", "-n", min=1, help="Pictures for every share, in each of the two series.")
FolderOption = typer.Option(None, "--to", help="Folder for pictures, table, sheet and record; default: in the project.")


def decode(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    slice_id: str = SliceOption,
    alphas: list[float] = AlphaOption,
    number: int = NumberOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Draw a class rotated towards and away from the direction of its failures; needs a generator that decodes vectors."""
    from weakspot.app.decoding import DecodeRequest, decode_direction
    from weakspot.app.decoding_files import explanation, write_decoded
    from weakspot.cli import terminal

    request = DecodeRequest(slice_id=slice_id, alphas=tuple(alphas), n_each=number)
    with terminal.showing_progress() as progress:
        opened = opened_with(project, generator, engine, progress)
        result = decode_direction(opened, request, run_id=run_id or None)
        files = write_decoded(result, to or opened.folder / "decoded" / result.facts.slice_id)
    if as_json:
        terminal.print_json(result.facts.model_dump(mode="json"))
        return
    terminal.say("\n".join(explanation(result.facts)))
    terminal.say(f"Sheet with both series: {files[0]}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(decode)
