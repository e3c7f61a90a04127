"""Tiny torch networks in memory, as scripts, and as weights with a factory; and tiny hub classifiers of transformers."""

import json
import warnings

import torch

FACTORY = """
import torch

class Net(torch.nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.last = torch.nn.Linear(6, n_classes)
        self.conv = torch.nn.Conv2d(3, 6, 3)
        self.norm = torch.nn.BatchNorm2d(6)

    def forward(self, pixels):
        return self.last(torch.relu(self.norm(self.conv(pixels))).mean((2, 3)))

def wrong():
    return "no module"
"""
SIZES = {
    "last.weight": (3, 6),
    "last.bias": (3,),
    "conv.weight": (6, 3, 3, 3),
    "conv.bias": (6,),
    **{f"norm.{name}": (6,) for name in ("weight", "bias", "running_mean", "running_var")},
}
VIT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
VIT_IMAGES = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 16, "width": 16},
    "resample": 2,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.5, 0.25, 0.2],
}


class Net(torch.nn.Module):
    """The last layer is registered first, and another one last, so that only a run can tell them apart."""

    def __init__(self, end=None, last=None, n_classes=3):
        super().__init__()
        self.last = last or torch.nn.Linear(6, n_classes)
        self.conv = torch.nn.Conv2d(3, 6, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.end = end or torch.nn.Identity()
        self.hidden = torch.nn.Linear(6, 6)

    def forward(self, pixels):
        pooled = torch.relu(self.conv(pixels)).mean((2, 3))
        return self.end(self.last(self.drop(self.hidden(pooled))))


def net(**options):
    torch.manual_seed(0)
    return Net(**options)


def without_layer():
    """Return a network without any linear layer."""
    layers = torch.nn.Conv2d(3, 3, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    return torch.nn.Sequential(*layers)


def script(network, path=None, *, trace=False, freeze=False):
    """Return a network as a script, or the path to which it was saved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        example = torch.zeros(1, 3, 8, 8)
        network = network.eval()
        made = torch.jit.trace(network, example) if trace else torch.jit.script(network)
        made = torch.jit.freeze(made) if freeze else made
        if path is None:
            return made
        torch.jit.save(made, str(path), _extra_files={"labels.txt": "cat dog owl"})
    return path


def with_factory(folder, name, **arguments):
    """Return the options of a classifier whose module is built by a factory in a file of its own."""
    (folder / f"{name}.py").write_text(FACTORY)
    return {"factory": f"{name}:Net", "folder": folder, "arguments": arguments, "image_side": 8}


def state():
    """Return the weights of the factory's module."""
    torch.manual_seed(1)
    numbers = {name: torch.rand(size) for name, size in SIZES.items()}
    return numbers | {"norm.num_batches_tracked": torch.tensor(1)}


def save_vit(folder, *, names=None, images=VIT_IMAGES, **options):
    """Save a classifier of transformers and return it."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    named = {} if names is None else {"id2label": dict(enumerate(names))}
    config = ViTConfig(**VIT, image_size=16, patch_size=8, **named, **options)
    return save_with_images(ViTForImageClassification(config), folder, images)


def save_with_images(model, folder, images=VIT_IMAGES):
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
    return model.eval()
