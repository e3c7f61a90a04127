import numpy as np
import pytest
from known_word_memory import MemorySettings, fit_memory

from weakspot.core.arrays import unit_rows
from weakspot.core.errors import ModelError
from weakspot.models.text_side import TextMemory, TextProjection, bare_phrase

WORDS = ("apple", "pear", "dog", "text")


def encode(texts):
    """Each word is a direction of its own; a phrase is the sum of its words."""
    rows = np.zeros((len(texts), 16), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            rows[row, sum(map(ord, word)) % 16] += 1
    return unit_rows(rows)


@pytest.fixture
def projection():
    draws = np.random.default_rng(0)
    return TextProjection(
        image_mean=np.zeros(8, dtype=np.float32),
        text_mean=np.zeros(16, dtype=np.float32),
        linear=draws.normal(size=(16, 8)).astype(np.float32),
        bias=np.zeros(8, dtype=np.float32),
        hidden_in=np.zeros((16, 0), dtype=np.float32),
        hidden_bias=np.zeros(0, dtype=np.float32),
        hidden_out=np.zeros((0, 8), dtype=np.float32),
    )


@pytest.fixture
def taught():
    return dict(zip(WORDS, unit_rows(np.random.default_rng(1).normal(size=(4, 8))), strict=True))


@pytest.fixture
def memory(taught, projection):
    return fit_memory(taught, encode=encode, projection=projection)


def test_recall__known_phrases_get_what_they_were_taught(memory, taught, projection):
    for template in ("{}", "a {}", "a photo of a {}", "A Photo of the {}"):
        found, trust = memory.recall([template.format(word) for word in WORDS], encode, projection)
        assert found == pytest.approx(np.stack(list(taught.values())), abs=1e-4)
        assert trust == pytest.approx(1.0)


def test_recall__a_phrase_far_from_all_is_the_projection_and_little_trusted(memory, projection):
    sentence = "zzz qqq"
    assert abs(encode([sentence]) @ encode(WORDS).T).max() == 0
    found, trust = memory.recall([sentence], encode, projection)
    assert float(trust[0]) < 0.6
    assert float((found @ projection.apply(encode([sentence])).T)[0, 0]) > 0.9


def test_recall__the_order_and_the_company_of_phrases_do_not_matter(memory, projection):
    one, _ = memory.recall(["red apple"], encode, projection)
    many, _ = memory.recall(["dog", "red apple", "pear"], encode, projection)
    assert many[1] == pytest.approx(one[0], abs=1e-6)


def test_save__bytes_are_small_and_say_the_same(memory, taught, projection, tmp_path):
    path = tmp_path / "words.npz"
    memory.save(path)
    again = TextMemory.load(path)
    assert again.phrases == memory.phrases
    first, second = (one.recall([*WORDS, "red dog"], encode, projection) for one in (memory, again))
    assert (first[0] * second[0]).sum(axis=1).min() > 0.999
    with np.load(path, allow_pickle=False) as stored:
        assert stored["taught"].dtype == stored["centres"].dtype == np.int8


def test_load__bad_files__are_refused(memory, tmp_path):
    path = tmp_path / "words.npz"
    np.savez(path, mean=np.zeros(3))
    with pytest.raises(ModelError, match="lacks arrays"):
        TextMemory.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ModelError, match="cannot be read"):
        TextMemory.load(path)
    with pytest.raises(ModelError, match="do not fit together"):
        TextMemory(**{**vars(memory), "phrases": ("apple",)})


def test_fit_memory__lent_phrases_help_their_neighbours_and_are_not_known(taught, projection):
    lent = {"cat": np.eye(8, dtype=np.float32)[0]}
    settings = MemorySettings(share=0.1)
    with_it = fit_memory(taught, encode=encode, projection=projection, lent=lent, settings=settings)
    without = fit_memory(taught, encode=encode, projection=projection, settings=settings)
    assert with_it.places(["cat", "dog"]).tolist() == [-1, WORDS.index("dog")]
    near = [
        one.recall(["cat"], encode, projection)[0][0] @ lent["cat"] for one in (without, with_it)
    ]
    assert near[1] > near[0]


def test_bare_phrase__words_that_begin_like_articles_stay_whole():
    assert [bare_phrase(one) for one in ("ant", "an ant", "theatre", "Some onesie", "a")] == [
        "ant",
        "ant",
        "theatre",
        "onesie",
        "a",
    ]
