import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from weakspot.models.embedded.image_tower import GraphBuilder, Product

PRODUCT = Product(
    codes=np.array([[10, -20, 30], [-40, 50, 127]], dtype=np.int8),
    scale=np.array([0.5, 0.1, 1.0], dtype=np.float32),
)


def multiplied(rows, product: Product, **options) -> np.ndarray:
    builder = GraphBuilder()
    answer = builder.multiply("rows", product, **options)
    builder.nodes.append(helper.make_node("Identity", [answer], ["answer"]))
    k = np.shape(rows)[1]
    model = builder.model(
        helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", k]),
        helper.make_tensor_value_info("answer", TensorProto.FLOAT, ["n", None]),
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"rows": np.asarray(rows, dtype=np.float32)})[0]


def test_product__values_and_columns_side_by_side() -> None:
    np.testing.assert_allclose(PRODUCT.values, [[5, -2, 30], [-20, 5, 127]], rtol=1e-6)
    both = PRODUCT.beside(PRODUCT, PRODUCT)
    np.testing.assert_array_equal(both.values, np.tile(PRODUCT.values, 3))


def test_with_rows_times__whole_factors_are_exact_while_codes_fit() -> None:
    twice = PRODUCT.with_rows_times(np.array([3.0, 1.0], dtype=np.float32))
    assert twice.codes.tolist() == [[30, -60, 90], [-40, 50, 127]]
    np.testing.assert_array_equal(twice.scale, PRODUCT.scale)


def test_with_rows_times__columns_whose_codes_do_not_fit_get_a_larger_step() -> None:
    larger = PRODUCT.with_rows_times(np.array([1.0, 2.0], dtype=np.float32))
    assert larger.codes.tolist() == [[10, -20, 15], [-80, 100, 127]]
    np.testing.assert_allclose(larger.scale, [0.5, 0.1, 2.0])


def test_multiply__every_row_has_its_own_scale() -> None:
    rows = np.array([[0.003, -0.004], [90.0, 70.0], [0.0, 0.0], [-5.0, 2.0]])
    truth = rows @ PRODUCT.values
    found = multiplied(rows, PRODUCT)
    # One step of a row is 1/127 of its largest value; the sum of the weights bounds what half a step costs.
    step = np.abs(rows).max(axis=1, keepdims=True) / 127
    assert (np.abs(found - truth) <= 0.51 * step * np.abs(PRODUCT.values).sum(axis=0) + 1e-9).all()
    np.testing.assert_array_equal(found[:1], multiplied(rows[:1], PRODUCT))


def test_multiply__another_zero_is_finer_where_negative_values_are_small() -> None:
    draw = np.random.default_rng(0)
    rows = np.maximum(draw.normal(size=(50, 40)), -0.17)
    product = Product(
        codes=draw.integers(-127, 128, (40, 8)).astype(np.int8), scale=np.ones(8, dtype=np.float32)
    )
    truth = rows @ product.values
    middle, low = (
        np.abs(multiplied(rows, product, **options) - truth).mean()
        for options in ({}, {"zero": 24})
    )
    assert low < 0.7 * middle
