"""Which execution provider of onnxruntime computes: the best that is installed and starts, else the processor.

Nothing here has been run on a graphics processor by weakspot's own tests: they use the processor, and fakes of the list of providers.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError

log = logging.getLogger(__name__)
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


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:300]
