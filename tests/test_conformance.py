"""Every registered part, times every check of its role."""

import base64
import copy
import importlib.util
import io
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from weakspot.backends.sentence_encoder import SentenceEncoder
from weakspot.core.projection import TextProjection
from weakspot.core.registry import OWN_DISTRIBUTION, ROLES, part_class, registered
from weakspot.testing.checks import checks_for, material
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.renderer import render
from weakspot.testing.scenes import Scene

Factory = Callable[[], object]
Builder = Callable[[Path, ExitStack], Factory]

NAMES = ("disc", "square", "triangle", "star")
RANDOM = np.random.default_rng(0)
CONV = RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32)
WEIGHTS = RANDOM.standard_normal((4, 5)).astype(np.float32)
WORDS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]", "a", "photo", "of", "red", "green", "disc", "dark", "grass", "street", "on")
PIXELS = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def _part(role: str, name: str, **options: object) -> Factory:
    return lambda: part_class(role, name)(**options)


def _plain(role: str, name: str, **options: object) -> Builder:
    return lambda _folder, _stack: _part(role, name, **options)


# ------------------------------------------------------------------------------------------------ tiny models in their real formats


def mean_colour_probabilities(pictures: list[np.ndarray]) -> np.ndarray:
    means = np.stack([picture.reshape(-1, 3).mean(axis=0) for picture in pictures]) / 64.0
    powers = np.exp(np.concatenate([means, 2.0 * np.ones((len(means), 1))], axis=1))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


class _Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        encoded = [base64.b64decode(item["image"]["b64"]) for item in asked["instances"]]
        pictures = [np.asarray(Image.open(io.BytesIO(content)).convert("RGB")) for content in encoded]
        found = [{"probabilities": row.tolist()} for row in mean_colour_probabilities(pictures).astype(float)]
        content = json.dumps({"predictions": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        pass


def _endpoint(_folder: Path, stack: ExitStack) -> Factory:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    url = f"http://127.0.0.1:{server.server_port}/"
    return _part("classifiers", "endpoint", url=url, class_names=NAMES, batch_size=4, n_retries=0)


def _saved_graph(path: Path, nodes, inputs, outputs, constants) -> None:
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))


def _pooled(last: list) -> list:
    return [
        helper.make_node("Conv", ["pixels", "conv"], ["map"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["map"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        *last,
    ]


def _onnx_classifier(folder: Path, _stack: ExitStack) -> Factory:
    ends = [
        helper.make_node("Gemm", ["flat", "weights"], ["scores"], transB=1),
        helper.make_node("Softmax", ["scores"], ["y"], axis=1),
    ]
    given = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 16, 16])
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    _saved_graph(folder / "model.onnx", _pooled(ends), [given], [found], {"conv": CONV, "weights": WEIGHTS})
    return _part("classifiers", "onnx", path=folder / "model.onnx", class_names=NAMES)


def _onnx_pair(folder: Path, _stack: ExitStack) -> Factory:
    image = [helper.make_node("MatMul", ["flat", "weights"], ["vectors"])]
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, 16, 16])
    found = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 4])
    _saved_graph(folder / "image.onnx", _pooled(image), [pixels], [found], {"conv": CONV, "weights": WEIGHTS.T.copy()})
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=1),
    ]
    nodes += [helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]), helper.make_node("Mul", ["each", "wide"], ["kept"])]
    nodes += [helper.make_node("ReduceSum", ["kept", "tokens"], ["vectors"], keepdims=0)]
    ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in ("input_ids", "attention_mask")]
    vectors = RANDOM.standard_normal((len(WORDS), 4)).astype(np.float32)
    _saved_graph(folder / "text.onnx", nodes, ids, [found], {"words": vectors, "last": np.array([2]), "tokens": np.array([1])})
    _tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "embedder.json").write_text(json.dumps({"pictures": {"picture_side": 16, **PIXELS}}))
    return _part("embedders", "onnx-pair", folder=folder)


def _aligned(folder: Path, stack: ExitStack) -> Factory:
    pictures = _onnx_pair(folder, stack)
    draws = np.random.default_rng(1)
    shapes = {"image_mean": (4,), "text_mean": (4,), "linear": (4, 4), "bias": (4,), "hidden_in": (4, 3), "hidden_bias": (3,)}
    arrays = {name: draws.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    TextProjection(**arrays, hidden_out=np.zeros((3, 4), np.float32)).save(folder / "text_side.npz")
    sentences = SentenceEncoder(folder / "text.onnx", folder / "tokenizer.json")
    return lambda: part_class("embedders", "aligned")(pictures=pictures(), text_side=folder, sentences=sentences)


def _tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(single="[BOS] $A [EOS]", special_tokens=[("[BOS]", 2), ("[EOS]", 3)])
    return made


def _sklearn(_folder: Path, _stack: ExitStack) -> Factory:
    from sklearn.linear_model import LogisticRegression

    world = material.small_world()
    model = LogisticRegression().fit(world.vectors(), [NAMES[label] for label in world.dataset.labels])
    return _part("classifiers", "sklearn", model=model)


def _given_vectors(folder: Path, _stack: ExitStack) -> Factory:
    np.save(folder / "vectors.npy", material.small_world().vectors())
    return _part("embedders", "given-vectors", path=folder / "vectors.npy", text=PlantedEmbedder())


def _torch(_folder: Path, _stack: ExitStack) -> Factory:
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 5, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(5, 4)]
    return _part("classifiers", "torch", module=torch.nn.Sequential(*layers), class_names=NAMES, picture_side=16)


def _timm(folder: Path, _stack: ExitStack) -> Factory:
    import torch
    from safetensors.torch import save_file

    from weakspot.backends.torchvision_operators import declare_torchvision_operators

    declare_torchvision_operators()
    import timm

    torch.manual_seed(0)
    save_file(timm.create_model("test_resnet", pretrained=False, num_classes=4).state_dict(), folder / "m.safetensors")
    return _part(
        "classifiers", "timm", model="test_resnet", checkpoint=folder / "m.safetensors", class_names=NAMES, picture_side=64
    )


def _transformers_classifier(folder: Path, _stack: ExitStack) -> Factory:
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "image_size": 16,
        "patch_size": 8,
    }
    labels = {"id2label": dict(enumerate(NAMES)), "label2id": {name: number for number, name in enumerate(NAMES)}}
    ViTForImageClassification(ViTConfig(**sizes, **labels)).save_pretrained(folder)
    pictures = {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}, "resample": 2}
    pictures |= {"image_mean": PIXELS["mean"], "image_std": PIXELS["std"]}
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    return _part("classifiers", "transformers", model=folder)


def _transformers_embedder(folder: Path, _stack: ExitStack) -> Factory:
    import torch
    from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    layers = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    vision = {**layers, "image_size": 32, "patch_size": 16}
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    text = {**layers, **special, "vocab_size": len(WORDS), "max_position_embeddings": 16}
    CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).save_pretrained(folder)
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "[BOS]", "eos_token": "[EOS]"}
    PreTrainedTokenizerFast(tokenizer_object=_tokenizer(), **named).save_pretrained(folder)
    pictures = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}, "do_center_crop": True, "resample": 3}
    pictures |= {"image_mean": PIXELS["mean"], "image_std": PIXELS["std"]}
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    return _part("embedders", "transformers", model=folder, device="cpu")


def _open_clip(folder: Path, _stack: ExitStack) -> Factory:
    import torch

    from weakspot.backends.torchvision_operators import declare_torchvision_operators

    declare_torchvision_operators()
    import open_clip

    torch.manual_seed(0)
    vision = {"image_size": 32, "layers": 2, "width": 16, "head_width": 8, "patch_size": 16}
    text = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
    model = {"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}
    (folder / "conformance-tiny.json").write_text(json.dumps(model))
    open_clip.add_model_config(folder / "conformance-tiny.json")
    torch.save(open_clip.create_model("conformance-tiny").state_dict(), folder / "open_clip_pytorch_model.bin")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": PIXELS}))
    return _part("embedders", "open-clip", model=str(folder), device="cpu")


def _embedded(_folder: Path, _stack: ExitStack) -> Factory:
    # Opening the real tower takes seconds: copies share what one of them has opened.
    opened = part_class("embedders", "embedded")(threads=2)
    opened.embed_prepared([opened.prepare(material.pictures()[0])])
    return lambda: copy.copy(opened)


# ------------------------------------------------------------------------------------------------ the table


def _of_backends(name: str, room: str = "backends"):
    """Tests cannot import each other, so the builders of captioners, language models and generators are loaded by path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / room / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _diffusers(folder: Path, _stack: ExitStack) -> Factory:
    model = _of_backends("tiny_pipelines").save_stable_diffusion(folder / "model", checker="passes")
    return _part("image_generators", "diffusers", model=model, device="cpu", steps=2, batch_size=2)


def _unclip(folder: Path, _stack: ExitStack) -> Factory:
    model = _of_backends("tiny_pipelines").save_unclip_from_words(folder / "model")
    return _part("image_generators", "unclip", model=model, device="cpu", steps=2, batch_size=2)


def _compose(folder: Path, _stack: ExitStack) -> Factory:
    for kind in ("disc", "star"):
        (folder / "shapes" / kind).mkdir(parents=True, exist_ok=True)
        for instance in range(3):
            scene = Scene(kinds=(kind,), colour="blue", size="large", instance=instance)
            render(scene, side=128, marked=False).save(folder / "shapes" / kind / f"{instance}.png")
    return _part("image_generators", "compose", pictures=str(folder / "shapes"), side=64)


def _inception(folder: Path, _stack: ExitStack) -> Factory:
    """Save a TorchScript file with the interface of the usual FID network."""
    import torch

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 5, 3, stride=4)

        def forward(self, images: torch.Tensor, return_features: bool = False) -> torch.Tensor:  # noqa: FBT001, FBT002 - as it is called
            maps = self.conv(images.float() / 127.5 - 1.0)
            return maps.mean(dim=[2, 3]) if return_features else torch.softmax(maps.mean(dim=[2, 3]), dim=1)

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit.*deprecated", category=DeprecationWarning)
        torch.jit.script(Features()).save(str(folder / "inception.pt"))
    return _part("embedders", "inception", path=folder / "inception.pt", side=32)


BUILDERS: dict[tuple[str, str], Builder] = {
    ("classifiers", "callable"): _plain("classifiers", "callable", function=mean_colour_probabilities, class_names=NAMES),
    ("classifiers", "endpoint"): _endpoint,
    ("classifiers", "onnx"): _onnx_classifier,
    ("classifiers", "planted"): _plain("classifiers", "planted"),
    ("classifiers", "sklearn"): _sklearn,
    ("classifiers", "timm"): _timm,
    ("classifiers", "torch"): _torch,
    ("classifiers", "transformers"): _transformers_classifier,
    ("embedders", "aligned"): _aligned,
    ("embedders", "embedded"): _embedded,
    ("embedders", "given-vectors"): _given_vectors,
    ("embedders", "onnx-pair"): _onnx_pair,
    ("embedders", "open-clip"): _open_clip,
    ("embedders", "planted"): _plain("embedders", "planted"),
    ("embedders", "transformers"): _transformers_embedder,
    ("captioners", "planted"): _plain("captioners", "planted"),
    ("question_answerers", "planted"): _plain("question_answerers", "planted"),
    ("text_generators", "planted"): _plain("text_generators", "planted"),
    ("image_generators", "planted"): _plain("image_generators", "planted"),
    ("discoverers", "attributes"): _plain("discoverers", "attributes", n_permutations=19),
    ("discoverers", "confidence"): _plain("discoverers", "confidence"),
    ("discoverers", "directions"): _plain("discoverers", "directions", costs=(0.01,), n_outer_folds=2),
    ("discoverers", "hypothesis"): _plain("discoverers", "hypothesis", phrases={"disc": ["green", "dark"]}, n_permutations=20),
    ("discoverers", "keywords"): _plain("discoverers", "keywords", n_permutations=20, max_candidates=60),
    ("discoverers", "loss"): _plain("discoverers", "loss"),
    ("discoverers", "mixture"): _plain("discoverers", "mixture"),
    ("discoverers", "spotlight"): _plain("discoverers", "spotlight"),
    ("discoverers", "uncommon-attributes"): _plain("discoverers", "uncommon-attributes", axes=("background", "colour")),
    ("describers", "caption-grammar"): _plain("describers", "caption-grammar"),
    ("verifiers", "holdout"): _plain("verifiers", "holdout"),
    ("repairers", "class-balanced"): _plain("repairers", "class-balanced"),
    ("repairers", "dfr-subsample"): _plain("repairers", "dfr-subsample", column="colour"),
    ("repairers", "dfr-upsample"): _plain("repairers", "dfr-upsample", column="colour"),
    ("repairers", "group-dro"): _plain("repairers", "group-dro", column="colour"),
    ("repairers", "plain"): _plain("repairers", "plain"),
    ("repairers", "pool-budgeted"): _plain("repairers", "pool-budgeted"),
    ("repairers", "pool-confidence"): _plain("repairers", "pool-confidence"),
    ("repairers", "pool-coreset"): _plain("repairers", "pool-coreset"),
    ("repairers", "pool-deepest"): _plain("repairers", "pool-deepest"),
    ("repairers", "pool-entropy"): _plain("repairers", "pool-entropy"),
    ("repairers", "pool-margin"): _plain("repairers", "pool-margin"),
    ("repairers", "pool-random"): _plain("repairers", "pool-random"),
    ("repairers", "slice-balanced"): _plain("repairers", "slice-balanced"),
    ("repairers", "synthetic"): _plain("repairers", "synthetic"),
    ("repairers", "up-weight"): _plain("repairers", "up-weight"),
    ("repairers", "worst-class"): _plain("repairers", "worst-class"),
    ("repairers", "worst-slice"): _plain("repairers", "worst-slice"),
    ("embedders", "inception"): _inception,
    ("image_generators", "compose"): _compose,
    ("image_generators", "diffusers"): _diffusers,
    ("image_generators", "unclip"): _unclip,
}
BUILDERS |= _of_backends("tiny_speakers").BUILDERS | _of_backends("tiny_images").BUILDERS
BUILDERS |= _of_backends("tiny_engines", "engine").BUILDERS
NEEDS_NETWORK = {("embedders", "embedded")}


def _cases() -> Iterator[object]:
    for role, name in BUILDERS:
        marks = [pytest.mark.network] if (role, name) in NEEDS_NETWORK else []
        for check in checks_for(role):
            yield pytest.param(role, name, check, id=f"{role}-{name}-{check}", marks=marks)


@pytest.fixture(scope="module")
def factory_of(tmp_path_factory) -> Iterator[Callable[[str, str], Factory]]:
    built: dict[tuple[str, str], Factory] = {}
    with ExitStack() as stack:

        def factory(role: str, name: str) -> Factory:
            if (role, name) not in built:
                built[role, name] = BUILDERS[role, name](tmp_path_factory.mktemp("part"), stack)
            return built[role, name]

        yield factory


@pytest.mark.parametrize(("role", "name", "check"), list(_cases()))
def test_part__keeps_its_contract(factory_of, role, name, check):
    checks_for(role)[check](factory_of(role, name))


@pytest.mark.parametrize("check", checks_for("classifiers"))
def test_planted_classifier__multi_label__keeps_its_contract(check):
    checks_for("classifiers")[check](lambda: planted_classifier(material.small_world(is_multi_label=True)))


def test_discoverer__default_settings_keep_the_contract_of_words():
    checks_for("discoverers")["every_class_gets_a_word"](part_class("discoverers", "directions"))


def test_builders__cover_every_registered_part():
    own = {
        (role, name)
        for role in ROLES
        for name, point in registered(role).items()
        if point.dist is not None and point.dist.name == OWN_DISTRIBUTION
    }
    assert set(BUILDERS) == own
