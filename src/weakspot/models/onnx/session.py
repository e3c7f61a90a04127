"""onnxruntime sessions, made the same way everywhere: by which execution provider, and how many images at once.

The best provider that is installed and starts computes, else the processor. Nothing here has been run on a graphics processor by
weakspot's own tests: they use the processor, and fakes of the list of providers.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from weakspot.core.errors import ConfigError, ModelError
from weakspot.models.loading import first_line

log = logging.getLogger(__name__)
Opened = TypeVar("Opened")
AUTO = "auto"
CPU = "CPUExecutionProvider"


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An execution provider.

    Args:
        name: what settings call it.
        full_name: what onnxruntime calls it.
        has_half: whether it is faster with half precision, which is then used where a self-test guards it.
        options: given to it, so that it computes in the precision of the file.
        is_automatic: whether it is taken without being asked for.
        has_patterns: whether sessions may plan their memory; one refuses that.
    """

    name: str
    full_name: str
    has_half: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    is_automatic: bool = True
    has_patterns: bool = True


PROCESSOR = Provider(name="cpu", full_name=CPU)
PROVIDERS = (
    Provider(
        name="cuda",
        full_name="CUDAExecutionProvider",
        has_half=True,
        options={"use_tf32": "0"},
    ),
    # It builds an engine for every graph and shape, which takes minutes.
    Provider(
        name="tensorrt",
        full_name="TensorrtExecutionProvider",
        has_half=True,
        is_automatic=False,
    ),
    Provider(name="rocm", full_name="ROCMExecutionProvider", has_half=True),
    Provider(name="migraphx", full_name="MIGraphXExecutionProvider", has_half=True),
    Provider(
        name="directml",
        full_name="DmlExecutionProvider",
        has_half=True,
        has_patterns=False,
    ),
    # The older format computes in half precision whatever the file says.
    Provider(
        name="coreml",
        full_name="CoreMLExecutionProvider",
        has_half=True,
        options={"ModelFormat": "MLProgram"},
    ),
    Provider(
        name="openvino",
        full_name="OpenVINOExecutionProvider",
        options={"precision": "ACCURACY"},
    ),
    Provider(name="xnnpack", full_name="XnnpackExecutionProvider"),
    PROCESSOR,
)
NAMES = (AUTO, *(one.name for one in PROVIDERS))
_notes: dict[str, str] = {}


def available_providers() -> tuple[str, ...]:
    """Return the providers that this onnxruntime was built with; some may not start."""
    import onnxruntime

    return tuple(onnxruntime.get_available_providers())


def choose_provider(asked: Sequence[str] | None = None) -> Provider:
    """Return the provider that computes.

    Args:
        asked: names, short or onnxruntime's own, best first; None or `auto` for the best that starts.

    Raises:
        ConfigError: if what was asked for is not installed, or does not start.
    """
    if asked and AUTO not in asked:
        return _asked_provider(asked)
    present = available_providers()
    for one in PROVIDERS:
        if one.is_automatic and one.full_name in present and _problem(one) is None:
            return one
    return PROCESSOR


def _asked_provider(asked: Sequence[str]) -> Provider:
    chosen = [_by_name(name) for name in asked]
    present = available_providers()
    missing = [one.full_name for one in chosen if one.full_name not in present]
    if missing:
        raise ConfigError(
            "This onnxruntime lacks a provider.",
            where="providers",
            given=missing,
            fix=f"Choose among {list(present)}, or install the build of onnxruntime that has it.",
        )
    first = chosen[0]
    problem = _problem(first)
    if problem is not None:
        raise ConfigError(
            f"The provider {first.name} does not start: {problem}",
            where="providers",
            given=first.full_name,
            fix='Install what it needs, or set provider = "auto" in [engine].',
        )
    return first


def _by_name(name: str) -> Provider:
    known = next((one for one in PROVIDERS if name in (one.name, one.full_name)), None)
    if known is None and not name.endswith("ExecutionProvider"):
        raise ConfigError(
            "There is no such provider.",
            where="providers",
            given=name,
            fix=f"Choose among {', '.join(NAMES)}.",
        )
    return known or Provider(name=name, full_name=name)


def _problem(provider: Provider) -> str | None:
    """Return why a provider does not start, None if it does; a note is kept of that."""
    if provider is PROCESSOR:
        return None
    problem = _tried(provider.full_name, tuple(provider.options.items()))
    if problem is not None:
        note_fallback(provider, problem)
    return problem


@cache
def _tried(full_name: str, options: tuple[tuple[str, str], ...]) -> str | None:
    """Open a graph of one product and compute it; onnxruntime itself would go on with the processor without a word."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.enable_mem_pattern = False
    try:
        session = onnxruntime.InferenceSession(
            _product_graph(),
            settings,
            providers=[full_name, CPU],
            provider_options=[dict(options), {}],
        )
        if full_name not in session.get_providers():
            return "onnxruntime went on without it; a library or a driver is missing"
        rows = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
        made = session.run(None, {"rows": rows})[0]
    except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
        return first_line(error)
    return None if np.allclose(made, rows @ rows, rtol=1e-2) else "it computes a product wrong"


def _product_graph() -> bytes:
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [2, 2])
    made = helper.make_tensor_value_info("product", TensorProto.FLOAT, [2, 2])
    node = helper.make_node("MatMul", ["rows", "rows"], ["product"])
    graph = helper.make_graph([node], "probe", [given], [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def note_fallback(provider: Provider, problem: str) -> None:
    """Remember that the processor computes instead of a provider, and say so in the log, once."""
    if provider.name not in _notes:
        _notes[provider.name] = f"{provider.full_name} is not used: {problem}"
        log.warning("%s", _notes[provider.name])


def fallback_notes() -> tuple[str, ...]:
    """Return which installed providers are not used in this process, and why."""
    return tuple(_notes.values())


def session_arguments(provider: Provider, *, threads: int) -> dict[str, Any]:
    """Return the providers of a session, with options; the processor computes what a provider has no kernel for."""
    if provider is PROCESSOR:
        return {"providers": [CPU]}
    options = dict(provider.options)
    if provider.name == "xnnpack" and threads:
        options["intra_op_num_threads"] = str(threads)
    return {"providers": [provider.full_name, CPU], "provider_options": [options, {}]}


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


def opened_or_made(
    path: Path, open_: Callable[[Path], Opened], make: Callable[[], object]
) -> Opened:
    """Open a file of our own making; one that is not there, or cannot be opened, is made first."""
    if path.is_file():
        try:
            return open_(path)
        except ModelError:
            path.unlink()
    make()
    return open_(path)


def save_graph(model: Any, path: Path) -> None:
    """Write an ONNX model in one atomic step; its folder is made."""
    import onnx

    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        onnx.save(model, str(partial))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


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


PROCESSOR_BATCH = 8
GRAPHICS_BATCH = 32
MAX_BATCH = 256
_MEMORY_SHARE = 0.25
_BYTES_AN_IMAGE = 64 << 20  # activations of a vision transformer at 224 x 224, generously
_USUAL_SIDE = 224
_NVIDIA = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_PATIENCE_SECONDS = 10.0


def fitting_batch(provider: Provider, *, side: int | None, memory: int | None = None) -> int:
    """Return how many images share a call: a power of two, the same for the same machine whatever else runs on it.

    A processor gains nothing from more than 8.

    Args:
        provider: what computes.
        side: of the images, in pixels.
        memory: its bytes; by default those of the machine, None where it does not tell.

    >>> from weakspot.models.onnx.session import PROCESSOR
    >>> fitting_batch(PROCESSOR, side=224, memory=64 << 30), fitting_batch(PROCESSOR, side=224, memory=1 << 30)
    (8, 4)
    """
    most = MAX_BATCH if provider.has_half else PROCESSOR_BATCH
    known = memory if memory is not None else memory_of(provider)
    if known is None:
        return min(most, GRAPHICS_BATCH)
    scale = ((side or _USUAL_SIDE) / _USUAL_SIDE) ** 2
    n_images = int(_MEMORY_SHARE * known / (_BYTES_AN_IMAGE * scale))
    return min(most, 1 << max(n_images.bit_length() - 1, 0))


def memory_of(provider: Provider, *, cards: Path = Path("/sys/class/drm")) -> int | None:
    """Return the bytes of memory that a provider computes in, None if nothing tells."""
    if provider.name in ("cuda", "tensorrt"):
        return _nvidia_memory(_NVIDIA)
    if provider.name in ("rocm", "migraphx"):
        return _smallest(cards.glob("card*/device/mem_info_vram_total"))
    if provider.name == "directml":
        return None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _nvidia_memory(command: Sequence[str]) -> int | None:
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, check=True, timeout=_PATIENCE_SECONDS
        )
        # onnxruntime takes the first device.
        return int(done.stdout.split()[0]) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _smallest(files: Iterable[Path]) -> int | None:
    sizes = []
    for path in files:
        try:
            sizes.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return min(sizes, default=None)
