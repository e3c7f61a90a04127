import numpy as np
import pytest
import timm
import torch
from onnx import TensorProto
from PIL import Image
from safetensors.torch import save_file
from tests.models.tiny_graphs import entry, node, save_graph
from tests.models.tiny_networks import script

from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.roles import Embedder
from weakspot.models.torch.embedders import InceptionEmbedder


class WithFlag(torch.nn.Module):
    """Class scores, or twice the mean of every channel in bytes, as the usual FID network is called."""

    def forward(self, images: torch.Tensor, return_features: bool = False) -> torch.Tensor:  # noqa: FBT001, FBT002 - as it is called
        assert images.dtype == torch.uint8
        means = images.float().mean(dim=[2, 3]) * 2.0
        return means if return_features else torch.softmax(means[:, :2], dim=1)


class Maps(torch.nn.Module):
    """Feature maps, and something else beside them."""

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pixels = images.float()
        return pixels, pixels.sum()


def _graph(path, *, kind=TensorProto.FLOAT, shape=("n", 3, 6, 6)):
    nodes = [
        node("Cast", ["pixels"], ["numbers"], to=TensorProto.FLOAT),
        node("GlobalAveragePool", ["numbers"], ["mean"]),
        node("Flatten", ["mean"], ["flat"]),
        node("MatMul", ["flat", "weights"], ["features"]),
    ]
    given, found = entry("pixels", kind, list(shape)), entry("features", shape=[shape[0], 4])
    return save_graph(path, nodes, [given], [found], {"weights": np.eye(3, 4, dtype=np.float32)})


def _raw(embedder, *images):
    return embedder.raw_features([embedder.prepare(image) for image in images])


RED, GREY = Image.new("RGB", (40, 20), (255, 0, 0)), Image.new("RGB", (9, 9), (51, 51, 51))


def test_inception_embedder__a_script_that_takes_the_flag_gives_features(tmp_path):
    embedder = InceptionEmbedder(path=script(WithFlag(), tmp_path / "net.pt"), side=12)
    assert isinstance(embedder, Embedder)
    assert embedder.prepare(RED).shape == (3, 12, 12)
    assert embedder.prepare(RED).dtype == np.uint8
    assert _raw(embedder, RED, GREY).tolist() == [[510.0, 0.0, 0.0], [102.0, 102.0, 102.0]]
    assert embedder.dimension == 3
    assert embedder.image_side == 12
    assert not embedder.has_text


def test_inception_embedder__embeddings_have_length_one_and_features_keep_theirs(tmp_path):
    embedder = InceptionEmbedder(path=script(WithFlag(), tmp_path / "net.pt"))
    prepared = [embedder.prepare(RED)]
    assert prepared[0].shape == (3, 299, 299)
    assert embedder.embed_prepared(prepared).tolist() == [[1.0, 0.0, 0.0]]
    assert embedder.raw_features(prepared)[0, 0] == pytest.approx(510.0)


def test_inception_embedder__a_script_without_the_flag_and_with_maps(tmp_path):
    embedder = InceptionEmbedder(path=script(Maps(), tmp_path / "net.pt"), side=4)
    assert _raw(embedder, GREY).tolist() == [[51.0, 51.0, 51.0]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(TensorProto.FLOAT, [1.0, -1.0, -1.0, 0.0]), (TensorProto.UINT8, [255.0, 0.0, 0.0, 0.0])],
)
def test_inception_embedder__an_onnx_graph_gets_the_numbers_its_input_wants(
    tmp_path, kind, expected
):
    embedder = InceptionEmbedder(path=_graph(tmp_path / "net.onnx", kind=kind))
    assert _raw(embedder, RED)[0].tolist() == expected
    assert embedder.dimension == 4
    assert embedder.prepare(RED).shape == (3, 6, 6)


def test_inception_embedder__an_onnx_graph_of_fixed_batch_and_free_size(tmp_path):
    embedder = InceptionEmbedder(
        path=_graph(tmp_path / "net.onnx", shape=(2, 3, "h", "w")), side=10
    )
    assert embedder.prepare(RED).shape == (3, 10, 10)
    assert _raw(embedder, RED, RED, RED).shape == (3, 4)


def test_inception_embedder__a_timm_folder_gives_pooled_features(tmp_path):
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", pretrained=False)
    timm.models._hub.save_config_for_hf(model, tmp_path / "config.json")
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    embedder = InceptionEmbedder(path=tmp_path)
    found = _raw(embedder, RED, GREY)
    pixels = torch.from_numpy(np.stack([embedder.prepare(RED), embedder.prepare(GREY)]))
    with torch.inference_mode():
        expected = (
            model.eval().forward_head(model.forward_features(pixels), pre_logits=True).numpy()
        )
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert found.shape[1] == model.num_features


def test_inception_embedder__the_id_follows_weights_and_size(tmp_path):
    one, other = (
        _graph(tmp_path / "a.onnx", shape=("n", 3, "h", "w")),
        script(WithFlag(), tmp_path / "b.pt"),
    )
    ids = {
        InceptionEmbedder(path=path, side=side).encoder_id
        for path in (one, other)
        for side in (8, 9)
    }
    assert len(ids) == 4
    assert InceptionEmbedder(path=one, side=8).encoder_id in ids


def test_inception_embedder__phrases_are_refused(tmp_path):
    with pytest.raises(ModelError, match="no text side"):
        InceptionEmbedder(path=_graph(tmp_path / "net.onnx")).embed_texts(["a fly"])


@pytest.mark.parametrize(
    "options", [{}, {"path": "a.pt", "model": "inception_v3"}, {"path": "a.pt", "side": 0}]
)
def test_inception_embedder__settings_that_mean_nothing_are_refused(options):
    with pytest.raises(ConfigError):
        InceptionEmbedder(**options)


def test_inception_embedder__what_cannot_be_loaded_says_so(tmp_path):
    (tmp_path / "other.bin").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "absent.pt", tmp_path / "other.bin"):
        with pytest.raises(ModelError, match="no such model file|neither TorchScript"):
            _ = InceptionEmbedder(path=path).encoder_id
    with pytest.raises(UnavailableError, match="are unavailable"):
        _ = InceptionEmbedder(path=tmp_path / "empty").encoder_id
    with pytest.raises(ModelError, match="timm has no such model"):
        _ = InceptionEmbedder(model="inception_v300").encoder_id


class Scalar(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.float().sum()


class Broken(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.float().reshape(-1, 7)


@pytest.mark.parametrize(
    ("module", "words"), [(Scalar(), "one row of features"), (Broken(), "fails on a batch")]
)
def test_inception_embedder__an_answer_that_is_no_feature_is_refused(tmp_path, module, words):
    embedder = InceptionEmbedder(path=script(module, tmp_path / "net.pt"), side=4)
    with pytest.raises(ModelError, match=words):
        _raw(embedder, RED)
