import onnxruntime
import pytest

from weakspot.models.embedded import image_tower
from weakspot.models.embedded.image_tower import (
    has_fast_int8,
    int8_features,
    integer_products_are_exact,
)


def test_int8_features__of_three_processors(tmp_path):
    (tmp_path / "old").write_text("processor : 0\nflags\t\t: fpu sse4_2 avx avx2 fma\n")
    (tmp_path / "new").write_text("flags : avx2 avx512_vnni avx_vnni\n")
    (tmp_path / "arm").write_text("Features : fp asimd asimddp i8mm\n")
    (tmp_path / "other").write_text("nothing said\n")
    assert int8_features(tmp_path / "old") == ("AVX2",)
    assert int8_features(tmp_path / "new") == ("AVX2", "VNNI")
    assert int8_features(tmp_path / "arm") == ("dot product", "i8mm")
    assert int8_features(tmp_path / "other") is None
    assert int8_features(tmp_path / "absent") is None


def test_int8_features__of_an_apple_processor(monkeypatch):
    monkeypatch.setattr(image_tower.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(image_tower.platform, "machine", lambda: "arm64")
    assert int8_features() == ("dot product",)


@pytest.fixture
def asked_anew():
    integer_products_are_exact.cache_clear()
    yield
    integer_products_are_exact.cache_clear()


def test_integer_products_are_exact__not_where_the_largest_sums_are_cut_off(
    monkeypatch, asked_anew
):
    class Saturating:
        def __init__(self, *given, **options) -> None:
            self._session = session(*given, **options)

        def run(self, names, given):
            return [self._session.run(names, given)[0].clip(-32768 / 2, 32767 / 2)]

    session = onnxruntime.InferenceSession
    assert integer_products_are_exact()
    integer_products_are_exact.cache_clear()
    monkeypatch.setattr(onnxruntime, "InferenceSession", Saturating)
    assert not integer_products_are_exact()


def test_integer_products_are_exact__not_without_the_operators(monkeypatch, asked_anew):
    def refuse(*given, **options):
        raise RuntimeError("MatMulIntegerToFloat is not a registered operator")

    monkeypatch.setattr(onnxruntime, "InferenceSession", refuse)
    assert not integer_products_are_exact()


@pytest.mark.parametrize(
    ("features", "exact", "fast"),
    [
        (("AVX2", "VNNI"), True, True),
        (("dot product",), True, True),
        (("AVX2", "VNNI"), False, False),
        (("AVX2",), True, False),
        (None, True, False),
    ],
)
def test_has_fast_int8__instructions_and_exact_sums(monkeypatch, features, exact, fast):
    monkeypatch.setattr(image_tower, "int8_features", lambda: features)
    monkeypatch.setattr(image_tower, "integer_products_are_exact", lambda: exact)
    assert has_fast_int8() is fast
