"""onnxruntime sessions, made the same way everywhere: every ONNX graph of a project is opened here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weakspot.backends.onnx.providers import (
    PROCESSOR,
    Provider,
    choose_provider,
    first_line,
    note_fallback,
    session_arguments,
)
from weakspot.core.errors import ModelError

EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"


def make_session(
    path: Path,
    *,
    threads: int = 0,
    spin: bool = False,
    providers: Sequence[str] | None = None,
    graph: bytes | None = None,
) -> Any:
    """Open an ONNX file.

    Args:
        path: the file.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        spin: whether idle threads keep a core busy, which is a little faster when nothing else runs.
        providers: by default the best that starts, then the processor; of those given, the first.
        graph: the graph itself, if it is not the file's own; weights in other files are still read beside the file.

    Raises:
        ModelError: if the file is missing or is no ONNX graph that this onnxruntime can run.
        ConfigError: if a provider that was asked for is not installed or does not start.
    """
    if graph is None and not path.is_file():
        raise ModelError("There is no such ONNX file.", where=str(path), fix="Correct the path.")
    chosen = choose_provider(providers)
    try:
        return _opened(path, graph, chosen, threads=threads, spin=spin)
    except Exception as error:
        if providers is not None or chosen is PROCESSOR:
            raise _cannot_open(path, error) from error
        note_fallback(chosen, f"it cannot open {path.name}: {first_line(error)}")
    try:
        return _opened(path, graph, PROCESSOR, threads=threads, spin=spin)
    except Exception as error:
        raise _cannot_open(path, error) from error


def _opened(
    path: Path, graph: bytes | None, provider: Provider, *, threads: int, spin: bool
) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.enable_mem_pattern = provider.has_patterns
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    if graph is not None:
        options.add_session_config_entry(EXTERNAL_FOLDER, str(path.parent.resolve()))
    arguments = session_arguments(provider, threads=threads)
    source = str(path) if graph is None else graph
    return onnxruntime.InferenceSession(source, options, **arguments)


def _cannot_open(path: Path, error: Exception) -> ModelError:
    return ModelError(
        f"onnxruntime cannot open the graph: {first_line(error)}",
        where=str(path),
        fix="Export it again, or update onnxruntime.",
    )


def run_session(
    session: Any, inputs: dict[str, Any], *, outputs: Sequence[str] | None = None, where: str = ""
) -> list[Any]:
    """Run a session; what onnxruntime refuses becomes a ModelError."""
    try:
        return list(session.run(outputs, inputs))
    except Exception as error:
        shapes = {name: getattr(value, "shape", None) for name, value in inputs.items()}
        raise ModelError(
            f"The graph refused its input: {first_line(error)}", where=where or None, given=shapes
        ) from error
