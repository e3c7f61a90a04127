"""What several commands share: options, opening a project as they say, an example each, and a readable list of commands."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.core

from weakspot.cli import terminal

if TYPE_CHECKING:
    from weakspot.core.run import StageProgress
    from weakspot.project.project import Project

EXAMPLES = {
    "demo": "weakspot demo",
    "init": "weakspot init my-project --data photos/ --classifier model.onnx",
    "run": "weakspot run -p my-project",
    "serve": "weakspot serve -p my-project",
    "doctor": "weakspot doctor -p my-project",
    "ask": 'weakspot ask -p my-project "green apples"',
    "nearest": 'weakspot nearest -p my-project "on a shelf" --class apple --top 20',
    "compare": "weakspot compare old-model new-model --out comparison",
    "report": "weakspot report -p my-project",
    "repair": "weakspot repair -p my-project --compare",
    "export": "weakspot export -p my-project --to fiftyone --out for-fiftyone",
    "import": "weakspot import tasks.json --from label-studio --out labelled.csv",
    "generate": 'weakspot generate -p my-project "a green apple" --class apple --to generated -n 30',
    "search": "weakspot search -p my-project --class apple --target pear",
    "counterfactual": 'weakspot counterfactual -p my-project --class apple "a green apple"',
    "check": "weakspot check -p my-project --policy policy.toml --junit check.xml",
    "watch": "weakspot watch -p my-project --every 600",
    "mcp": "weakspot mcp -p my-project",
    "ingest": "weakspot ingest -p my-project",
    "embed": "weakspot embed -p my-project",
    "discover": "weakspot discover -p my-project --method directions",
    "verify": "weakspot verify -p my-project",
    "align": "weakspot lab align text-side -p my-project --column caption",
    "bench": "weakspot lab bench --kind rare --worlds 2 --out bench",
    "collective": "weakspot lab collective first-model second-model --out family",
    "reproduce": "weakspot lab reproduce clarify --stand-in --small --out clarify",
    "sweep": "weakspot lab sweep -p my-project --synthetic generated --to sweep",
    "refine": "weakspot lab refine -p my-project",
    "decode": "weakspot lab decode -p my-project --generator unclip:MODEL",
    "adversarial": "weakspot lab adversarial -p my-project --to hard-set",
}


def example_of(command: str) -> str:
    """Return the last line of a command's help."""
    return f"Example: {EXAMPLES[command]}"


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


@contextmanager
def opened(folder: Path, *, compiles: bool = False, **options: Any) -> Iterator["Project"]:
    """Open a project, with progress on the error stream for as long as it is used.

    Args:
        folder: of the project.
        compiles: whether compiling begins beside the first reading.
        options: of `Project.open`.
    """
    from weakspot.project.project import Project

    with terminal.showing_progress() as progress:
        if compiles:
            from weakspot.project.warm_up import begin_compiling

            begin_compiling(progress)
        yield Project.open(folder, progress=progress, **options)


def open_with_generator(
    folder: Path,
    generator: str,
    engine: str,
    progress: "StageProgress",
    *,
    search_budget: int | None = None,
) -> "Project":
    """Open a project, with another generator, engine and budget of a search if they are given."""
    from weakspot.generate.project_generator import with_generator
    from weakspot.project.project import Project
    from weakspot.run.settings import load_settings, with_engine

    settings = with_engine(with_generator(load_settings(folder), generator), engine)
    if search_budget is not None:
        search = settings.search.model_copy(update={"budget": search_budget})
        settings = settings.model_copy(update={"search": search})
    return Project(folder, settings, progress=progress)


def show_cost(project: "Project", n_images: int) -> None:
    """Say on the error stream what the images cost at most, before any is requested."""
    from weakspot.generate.project_generator import expected_cost

    terminal.remark(expected_cost(project.settings, project.folder, n_images))


def require_web() -> None:
    """Refuse early, and in words, where the libraries of the browser are not installed."""
    from weakspot.core.errors import MissingExtraError

    for library, name in (
        ("fastapi", "fastapi"),
        ("uvicorn", "uvicorn"),
        ("sqlalchemy", "sqlalchemy"),
        ("alembic", "alembic"),
        ("argon2", "argon2-cffi"),
        ("python_multipart", "python-multipart"),
    ):
        try:
            __import__(library)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                name, extra="web", purpose="The pages of `weakspot serve`"
            ) from error


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
            terminal.be_quiet(asked=True)
        return list(super().parse_args(ctx, [*options, *args[end:]]))
