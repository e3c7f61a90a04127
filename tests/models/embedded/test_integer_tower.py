import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from weakspot.core.errors import ModelError
from weakspot.models.embedded.image_tower import (
    RANGES_PATH,
    Product,
    Ranges,
    TowerWeights,
    integer_tower,
    read_tower,
    write_integer_tower,
)

WIDTH, WIDE, PATCH, N_TOKENS, N_LAYERS, D = 128, 256, 4, 5, 3, 6
OUTLIER = 7
LINEAR = {
    "self_attn.q_proj": (WIDTH, WIDTH),
    "self_attn.k_proj": (WIDTH, WIDTH),
    "self_attn.v_proj": (WIDTH, WIDTH),
    "self_attn.out_proj": (WIDTH, WIDTH),
    "mlp.fc1": (WIDTH, WIDE),
    "mlp.fc2": (WIDE, WIDTH),
}


def small_weights() -> TowerWeights:
    """A tower of three layers with one channel that is far larger than the others and never near 0."""
    draw = np.random.default_rng(0)

    def numbers(*shape):
        return draw.normal(size=shape).astype(np.float32)

    def product(rows, columns):
        codes = draw.integers(-127, 128, (rows, columns)).astype(np.int8)
        codes[OUTLIER] //= 8
        return Product(codes=codes, scale=np.full(columns, 0.02 / rows**0.5, dtype=np.float32))

    arrays = {
        "embeddings.class_embedding": numbers(WIDTH),
        "embeddings.patch_embedding.weight": numbers(WIDTH, 3, PATCH, PATCH),
        "embeddings.position_embedding.weight": numbers(N_TOKENS, WIDTH),
    }
    products = {}
    for name in ("pre_layrnorm", "post_layernorm"):
        arrays |= {f"{name}.weight": 1 + 0.1 * numbers(WIDTH), f"{name}.bias": numbers(WIDTH)}
    for layer in range(N_LAYERS):
        start = f"encoder.layers.{layer}."
        for norm in ("layer_norm1", "layer_norm2"):
            arrays |= {f"{start}{norm}.weight": 1 + 0.1 * numbers(WIDTH)}
            arrays |= {f"{start}{norm}.bias": 0.1 * numbers(WIDTH)}
            arrays[f"{start}{norm}.weight"][OUTLIER] = 20.0
            arrays[f"{start}{norm}.bias"][OUTLIER] = -60.0
        for name, shape in LINEAR.items():
            products[start + name] = product(*shape)
            arrays[f"{start}{name}.bias"] = 0.1 * numbers(shape[1])
    return TowerWeights(arrays=arrays, products=products, projection=numbers(WIDTH, D))


def known_ranges() -> Ranges:
    shift, factor = np.zeros(WIDTH, dtype=np.float32), np.ones(WIDTH, dtype=np.float32)
    shift[OUTLIER], factor[OUTLIER] = -60.0, 4.0
    places = [f"{layer}.{kind}" for layer in range(N_LAYERS) for kind in ("qkv", "fc1")][:-1]
    values = {f"{layer}.out": np.full(WIDTH, 0.3, np.float32) for layer in range(N_LAYERS - 1)}
    return Ranges(
        shifts=dict.fromkeys(places, shift) | values, factors=dict.fromkeys(places, factor)
    )


def exact_embeddings(weights: TowerWeights, pixels: np.ndarray) -> np.ndarray:
    """The same tower in numpy and float64."""
    get = {name: value.astype(np.float64) for name, value in weights.arrays.items()}

    def norm(rows, name):
        centred = rows - rows.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * get[f"{name}.weight"] + get[f"{name}.bias"]

    def linear(rows, name):
        return rows @ weights.products[name].values.astype(np.float64) + get[f"{name}.bias"]

    n = len(pixels)
    blocks = pixels.reshape(n, 3, 2, PATCH, 2, PATCH).transpose(0, 2, 4, 1, 3, 5).reshape(n, 4, -1)
    patches = blocks @ get["embeddings.patch_embedding.weight"].reshape(WIDTH, -1).T
    first = np.broadcast_to(get["embeddings.class_embedding"], (n, 1, WIDTH))
    tokens = np.concatenate([first, patches], 1) + get["embeddings.position_embedding.weight"]
    tokens = norm(tokens, "pre_layrnorm")
    for layer in range(N_LAYERS):
        start = f"encoder.layers.{layer}."
        rows = norm(tokens, start + "layer_norm1")
        query, key, value = (
            linear(rows, f"{start}self_attn.{part}_proj")
            .reshape(n, N_TOKENS, -1, 64)
            .transpose(0, 2, 1, 3)
            for part in "qkv"
        )
        logits = query @ key.transpose(0, 1, 3, 2) / 8.0
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen = (shares @ value).transpose(0, 2, 1, 3).reshape(n, N_TOKENS, WIDTH)
        tokens = tokens + linear(seen, start + "self_attn.out_proj")
        wide = linear(norm(tokens, start + "layer_norm2"), start + "mlp.fc1")
        tokens = tokens + linear(wide / (1 + np.exp(-1.702 * wide)), start + "mlp.fc2")
    return norm(tokens[:, 0], "post_layernorm") @ weights.projection


def run(model: onnx.ModelProto, pixels: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["image_embeds"], {"pixel_values": pixels})[0]


def error(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


PIXELS = np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32)


def test_integer_tower__is_the_float_tower_but_for_rounding() -> None:
    weights = small_weights()
    model = integer_tower(weights, known_ranges())
    truth = exact_embeddings(weights, PIXELS)
    found = run(model, PIXELS)
    assert error(found, truth) < 0.03
    np.testing.assert_allclose(found[:1], run(model, PIXELS[:1]), rtol=1e-4, atol=1e-4)


def test_integer_tower__shifts_and_factors_are_what_makes_it_right() -> None:
    weights = small_weights()
    truth = exact_embeddings(weights, PIXELS)
    known = error(run(integer_tower(weights, known_ranges()), PIXELS), truth)
    nothing = Ranges(shifts={}, factors={})
    assert error(run(integer_tower(weights, nothing), PIXELS), truth) > 2 * known
    shifts_alone = Ranges(shifts=known_ranges().shifts, factors={})
    assert error(run(integer_tower(weights, shifts_alone), PIXELS), truth) > 1.2 * known


def test_integer_tower__nothing_is_fused_into_a_slower_step(tmp_path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "run.onnx")
    model = integer_tower(small_weights(), known_ranges()).SerializeToString()
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    steps = [node.op_type for node in onnx.load(tmp_path / "run.onnx").graph.node]
    assert steps.count("LayerNormalization") == 2 * N_LAYERS + 2
    assert not any(step.startswith("Skip") for step in steps)


def exported(weights: TowerWeights, *, zero: int = 0) -> onnx.ModelProto:
    """The weights under the names that a quantised export of transformers gives them."""
    named = {f"vision_model.{name}": value for name, value in weights.arrays.items()}
    nodes = []
    for number, (name, product) in enumerate(weights.products.items()):
        nodes.append(_quantised(f"/vision_model/{name.replace('.self', '/self')}", number))
        nodes[-1].name = nodes[-1].name.replace(".mlp.", "/mlp/").replace("attn.", "attn/")
        named |= _constants(number, product, zero)
    identity = Product(codes=np.eye(WIDTH, dtype=np.int8), scale=np.ones(WIDTH, dtype=np.float32))
    nodes.append(_quantised("/visual_projection", len(nodes)))
    named |= _constants(len(nodes) - 1, identity, 0)
    constants = [numpy_helper.from_array(value, name) for name, value in named.items()]
    return helper.make_model(helper.make_graph(nodes, "export", [], [], constants))


def _quantised(name: str, number: int):
    weights = f"w{number}"
    inputs = ["rows", f"{weights}_quantized", "rows_zero", f"{weights}_zero_point"]
    return helper.make_node("MatMulInteger", inputs, [f"{name}_out"], name=f"{name}/MatMul_quant")


def _constants(number: int, product: Product, zero: int) -> dict[str, np.ndarray]:
    return {
        f"w{number}_quantized": product.codes,
        f"w{number}_scale": product.scale,
        f"w{number}_zero_point": np.full(len(product.scale), zero, dtype=np.int8),
    }


def test_read_tower__every_weight_under_its_name(tmp_path) -> None:
    weights = small_weights()
    found = read_tower(exported(weights))
    assert found.arrays.keys() == weights.arrays.keys()
    assert (found.n_layers, found.width, found.n_tokens) == (N_LAYERS, WIDTH, N_TOKENS)
    np.testing.assert_array_equal(found.projection, np.eye(WIDTH))
    for name, product in weights.products.items():
        np.testing.assert_array_equal(found.products[name].values, product.values)


def test_read_tower__weights_of_another_form_are_refused() -> None:
    with pytest.raises(ModelError, match="no quantised CLIP image tower"):
        read_tower(helper.make_model(helper.make_graph([], "empty", [], [])))
    with pytest.raises(ModelError, match="not symmetric int8"):
        read_tower(exported(small_weights(), zero=3))


def test_write_integer_tower__in_one_step(tmp_path, monkeypatch) -> None:
    onnx.save(exported(small_weights()), str(tmp_path / "source.onnx"))
    monkeypatch.setattr(Ranges, "load", known_ranges)
    write_integer_tower(tmp_path / "source.onnx", tmp_path / "made" / "tower.onnx")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["tower.onnx"]
    assert run(onnx.load(str(tmp_path / "made" / "tower.onnx")), PIXELS).shape == (4, WIDTH)


def test_shipped_ranges__every_place_of_twelve_layers_in_whole_factors() -> None:
    ranges = Ranges.load()
    inner = [f"{layer}.{kind}" for layer in range(11) for kind in ("qkv", "out", "fc1")]
    assert sorted(ranges.shifts) == sorted([*inner, "11.qkv"])
    factors = np.stack(list(ranges.factors.values()))
    assert (factors >= 1).all()
    assert factors.shape == (34, 768)
    assert RANGES_PATH.stat().st_size < 50_000
