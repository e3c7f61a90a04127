"""onnxruntime sessions, made the same way everywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weakspot.core.errors import ModelError

CPU = "CPUExecutionProvider"
FASTER_PROVIDERS = ("CUDAExecutionProvider", "ROCMExecutionProvider", "DmlExecutionProvider")


def available_providers() -> tuple[str, ...]:
    import onnxruntime

    return tuple(onnxruntime.get_available_providers())


def make_session(
    path: Path, *, threads: int = 0, spin: bool = False, providers: Sequence[str] | None = None
) -> Any:
    """Open an ONNX file.

    Args:
        path: the file.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        spin: whether idle threads keep a core busy, which is a little faster when nothing else runs.
        providers: by default a graphics processor if this build of onnxruntime has one, then the processor.

    Raises:
        ModelError: if the file is missing or is no ONNX graph that this onnxruntime can run.
    """
    import onnxruntime

    if not path.is_file():
        raise ModelError("There is no such ONNX file.", where=str(path), fix="Correct the path.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    chosen = _choose(providers)
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=chosen)
    except Exception as error:
        raise ModelError(
            f"onnxruntime cannot open the graph: {_first_line(error)}",
            where=str(path),
            fix="Export it again, or update onnxruntime.",
        ) from error


def run_session(
    session: Any, inputs: dict[str, Any], *, outputs: Sequence[str] | None = None, where: str = ""
) -> list[Any]:
    """Run a session; what onnxruntime refuses becomes a ModelError."""
    try:
        return list(session.run(outputs, inputs))
    except Exception as error:
        shapes = {name: getattr(value, "shape", None) for name, value in inputs.items()}
        raise ModelError(
            f"The graph refused its input: {_first_line(error)}", where=where or None, given=shapes
        ) from error


def _choose(providers: Sequence[str] | None) -> list[str]:
    present = available_providers()
    if providers is None:
        return [name for name in (*FASTER_PROVIDERS, CPU) if name in present]
    missing = [name for name in providers if name not in present]
    if missing:
        raise ModelError(
            "This onnxruntime lacks a provider.",
            given=missing,
            fix=f"Choose among {list(present)}.",
        )
    return list(providers)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:300]
