"""The setting that chooses what computes ONNX models."""

from typing import Annotated, Literal

from pydantic import Field

ProviderName = Literal[
    "auto",
    "cpu",
    "cuda",
    "tensorrt",
    "rocm",
    "migraphx",
    "directml",
    "coreml",
    "openvino",
    "xnnpack",
]
ProviderSetting = Annotated[
    ProviderName,
    Field(
        description="Which execution provider of onnxruntime computes all ONNX models; auto: the best that is installed and starts."
    ),
]
