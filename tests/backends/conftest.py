"""Fixtures shared by the tests of backends."""

import importlib.util

if importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torchvision") is not None:
    import torch

    # torchvision on the package index is built for CUDA; beside a torch for the processor its compiled part does not load and its
    # import then stumbles over two operators. Declaring them is all that timm and open_clip need.
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        TORCHVISION = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            TORCHVISION.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
