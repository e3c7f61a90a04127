"""Whether 8-bit arithmetic is fast and right on this machine."""

import platform
from functools import cache
from pathlib import Path

import numpy as np

from weakspot.backends.embedded.integer_products import GraphBuilder, Product

_INT8_FLAGS = {
    "avx2": "AVX2",
    "avx512_vnni": "VNNI",
    "avx_vnni": "VNNI",
    "amx_int8": "AMX",
    "asimddp": "dot product",
    "i8mm": "i8mm",
}
_FAST = {"VNNI", "AMX", "dot product", "i8mm"}
_APPLE = ("Darwin", "arm64")


def int8_features(cpu_info: Path = Path("/proc/cpuinfo")) -> tuple[str, ...] | None:
    """Return the processor's features that 8-bit arithmetic depends on, or None where the system does not tell."""
    if (platform.system(), platform.machine()) == _APPLE:
        return ("dot product",)
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    listed = next((line for line in lines if line.lower().startswith(("flags", "features"))), None)
    if listed is None:
        return None
    flags = set(listed.split(":", 1)[-1].split())
    return tuple(dict.fromkeys(label for flag, label in _INT8_FLAGS.items() if flag in flags))


def has_fast_int8() -> bool:
    """Return whether the processor multiplies 8-bit integers faster than floats, and onnxruntime does it without overflow."""
    return not _FAST.isdisjoint(int8_features() or ()) and integer_products_are_exact()


@cache
def integer_products_are_exact() -> bool:
    """Return whether the largest codes give their exact sum here; where pairs of products are added in 16 bits they do not."""
    import onnxruntime
    from onnx import TensorProto, helper

    n_rows, width = 4, 64
    signs = np.where(np.arange(width) < width // 2, 127, -127).astype(np.int8)
    weights = Product(
        codes=np.stack([np.full(width, 127, dtype=np.int8), signs], axis=1),
        scale=np.ones(2, dtype=np.float32),
    )
    builder = GraphBuilder()
    sums = builder.multiply("rows", weights)
    builder.nodes.append(helper.make_node("Identity", [sums], ["sums"]))
    model = builder.model(
        given=helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", width]),
        found=helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["n", 2]),
    )
    rows = np.ones((n_rows, width), dtype=np.float32) * np.array([[1], [2], [5], [9]], np.float32)
    rows[:, width // 2 :] *= np.array([[1], [1], [-1], [-1]], np.float32)
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        found = session.run(None, {"rows": rows})[0]
    except Exception:  # noqa: BLE001 (an onnxruntime without these operators computes nothing wrong)
        return False
    return bool(np.allclose(found, rows @ weights.values, rtol=1e-5, atol=1e-3))
