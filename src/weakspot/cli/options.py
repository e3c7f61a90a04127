"""What several commands share: options, opening a project as they say, and a readable list of commands."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.core

if TYPE_CHECKING:
    from weakspot.core.run import StageProgress
    from weakspot.project.project import Project

ProjectOption = typer.Option(
    Path(), "--project", "-p", help="Project folder; it holds weakspot.toml."
)
JsonOption = typer.Option(False, "--json", help="Write the result as JSON to the output stream.")
RunOption = typer.Option("", "--run", help="Run to continue; the newest by default.")
VerboseOption = typer.Option(
    False,
    "--verbose",
    "-v",
    help="Show everything: what was tried, every test with its figures, every repair.",
)
EngineOption = typer.Option(
    "",
    "--engine",
    help="Where heavy work runs, instead of the configured place: local, processes or ray. Same results.",
)
GeneratorOption = typer.Option(
    "",
    "--generator",
    help="Image generator to use instead of the configured one: NAME, or NAME:MODEL such as edit:FOLDER.",
)
PortOption = typer.Option(8765, "--port", min=0, max=65535, help="Port; 0 takes a free one.")
SeedOption = typer.Option(0, "--seed", min=0, help="Same seed, same answer.")
FamilyArgument = typer.Argument(
    ..., help="Two or more project folders on the same images, one per classifier."
)
QUIET = ("--quiet", "-q")
SourceOption = typer.Option(
    "", "--from", help="With --type 2: the project whose failures are used; the first by default."
)


def open_with_generator(
    folder: Path,
    generator: str,
    engine: str,
    progress: "StageProgress",
    *,
    search_budget: int | None = None,
) -> "Project":
    """Open a project, with another generator, engine and budget of a search if they are given."""
    from weakspot.generation.service.generator_choice import with_generator
    from weakspot.pipeline.changed_settings import with_engine
    from weakspot.pipeline.settings_file import load_settings
    from weakspot.project.project import Project

    settings = with_engine(with_generator(load_settings(folder), generator), engine)
    if search_budget is not None:
        search = settings.search.model_copy(update={"budget": search_budget})
        settings = settings.model_copy(update={"search": search})
    return Project(folder, settings, progress=progress)


def show_cost(project: "Project", n_images: int) -> None:
    """Say on the error stream what the images cost at most, before any is requested."""
    from weakspot.cli import terminal
    from weakspot.generation.service.generator_choice import expected_cost

    terminal.remark(expected_cost(project.settings, project.folder, n_images))


class TopicGroup(typer.core.TyperGroup):
    """Lists commands by topic, each with the first clause of its help, in plain text that fits 80 columns."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write one section per topic."""
        topics: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if command.hidden:
                continue
            topic = getattr(command, "rich_help_panel", None)
            clause = re.split(r"[:;.]\s| \(|\.$", command.help or "")[0]
            topics.setdefault(topic if isinstance(topic, str) else "Commands", []).append(
                (name, clause)
            )
        for topic, rows in topics.items():
            with formatter.section(topic):
                formatter.write_dl(rows)


class OwnCommand(typer.core.TyperCommand):
    """A command that takes `-q` after its name, too; before it, `weakspot -q` says the same."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the command's name; those after `--` are no options."""
        end = args.index("--") if "--" in args else len(args)
        options = [word for word in args[:end] if word not in QUIET]
        if len(options) < end:
            from weakspot.cli.terminal import be_quiet

            be_quiet(asked=True)
        return list(super().parse_args(ctx, [*options, *args[end:]]))
