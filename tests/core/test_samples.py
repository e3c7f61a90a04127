from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests import build

from weakspot.core.arrays import BLOCK_ROWS
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import (
    EmbeddingSpace,
    Material,
    Need,
    SampleSet,
    mark_attributes,
    marked_attributes,
    needs_of,
    obstacle,
    separating_cut,
    with_embeddings,
)
from weakspot.testing.examples import discovery_samples


@pytest.fixture
def samples():
    return build.samples(
        [0, 0, 0],
        class_names=["a"],
        sample_ids=["x", "y", "z"],
        embeddings=np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float64),
        encoder_id="e",
        rows=np.array([0, 2]),
        name="test",
    )


def test_embeddings__own_rows_or_others(samples):
    assert len(samples) == 2
    assert samples.embeddings("clip").tolist() == [[1, 2], [5, 6]]
    assert samples.embeddings("clip", np.array([1])).tolist() == [[3, 4]]
    assert samples.embeddings("clip").dtype == np.float32


def test_embeddings__read_from_a_memory_map_are_a_copy(samples, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    mapped = EmbeddingSpace(encoder_id="e", embeddings=np.load(tmp_path / "v.npy", mmap_mode="r"))
    found = SampleSet(
        dataset=samples.dataset, rows=samples.rows, spaces={"clip": mapped}
    ).embeddings("clip")
    found[:] = 7
    assert np.load(tmp_path / "v.npy").max() == 1


def test_space__unknown(samples):
    with pytest.raises(DataError, match=r"no embeddings called 'features'.*\['clip'\]"):
        samples.space("features")


def test_only__same_view_on_other_rows(samples):
    other = samples.only(np.array([1]), name="half")
    assert (other.rows.tolist(), other.name, other.dataset) == ([1], "half", samples.dataset)
    assert samples.only(np.array([1])).name == "test"


def test_digest__depends_on_the_ids_alone(samples):
    assert samples.digest() == samples.only(np.array([0, 2]), name="other").digest()
    assert samples.digest() != samples.only(np.array([0, 1])).digest()
    assert len(samples.digest()) == 32


def _many(n_rows):
    data = dataset_from_columns(class_names=["a"], labels=[0] * n_rows)
    embeddings = np.random.default_rng(1).standard_normal((n_rows, 4)).astype(np.float32)
    embeddings[::1000] = np.nan
    return SampleSet(
        dataset=data,
        rows=np.arange(n_rows),
        spaces={"clip": EmbeddingSpace(encoder_id="e", embeddings=embeddings)},
    )


def test_by_blocks__the_same_as_all_at_once_with_few_in_memory():
    samples, sizes = _many(2 * BLOCK_ROWS + 5), []
    rows = samples.rows[::-1]

    def measured(embeddings):
        sizes.append(len(embeddings))
        return embeddings * 2

    found = samples.by_blocks("clip", rows, measured)
    assert np.array_equal(found, samples.embeddings("clip", rows) * 2, equal_nan=True)
    assert sizes == [BLOCK_ROWS, BLOCK_ROWS, 5]
    assert samples.by_blocks("clip", rows[:0], measured).shape == (0, 4)


def test_has_embeddings__rows_of_nan_have_none():
    samples = _many(BLOCK_ROWS + 10)
    assert np.flatnonzero(~samples.has_embeddings("clip", samples.rows)).tolist() == list(
        range(0, BLOCK_ROWS + 10, 1000)
    )


def _problem():
    dataset = dataset_from_columns(
        class_names=["cat"],
        labels=[0, 0, 0, 0],
        predictions=np.array([0, 0, 0, 0]),
        sample_ids=["d", "b", "c", "a"],
    )
    embeddings = np.array([[4.0], [2.0], [np.nan], [1.0]], dtype=np.float32)
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(4),
        spaces={"clip": EmbeddingSpace(encoder_id="toy", embeddings=embeddings)},
    )
    return samples, class_problems(dataset, samples.rows, FailureCriterion())[0]


def test_with_embeddings__leaves_out_rows_without_and_orders_by_id():
    samples, problem = _problem()
    known, embeddings = with_embeddings(samples, problem, "clip")
    assert known.rows.tolist() == [3, 1, 0]
    assert embeddings.tolist() == [[1.0], [2.0], [4.0]]
    assert len(known.failed) == len(known.confidence) == 3


def test_obstacle__says_what_is_missing():
    _, problem = _problem()
    assert "0 of 4 samples failed, at least 2" in obstacle(problem, min_failures=2, min_right=2)
    assert "1 samples have no embedding" in obstacle(
        problem, min_failures=2, min_right=2, n_without=1
    )
    assert "5 right ones" in obstacle(problem, min_failures=0, min_right=5)
    assert obstacle(problem, min_failures=0, min_right=4) == ""


def test_separating_cut__lies_between_failures_and_others():
    failed = np.array([False, True, False, True, False])
    assert separating_cut(np.array([0.1, 0.8, 0.3, 0.6, 0.2]), failed) == pytest.approx(0.45)


def test_separating_cut__weighs_a_pure_top_against_one_that_holds_all():
    scores = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    failed = np.array([True, False, False, True, False, False])
    assert separating_cut(scores, failed) == pytest.approx(5.5)
    assert separating_cut(scores, failed, min_inside=2) == pytest.approx(2.5)


def test_separating_cut__never_between_equal_scores():
    scores = np.array([1.0, 1.0, 1.0, 0.0])
    assert separating_cut(scores, np.array([True, False, False, False])) == pytest.approx(0.5)


def test_separating_cut__none_without_two_scores_or_enough_inside():
    failed = np.array([True, False, True])
    assert separating_cut(np.zeros(3), failed) is None
    assert separating_cut(np.array([3.0, 2.0, 1.0]), failed, min_inside=3) is None
    assert separating_cut(np.zeros(0), np.zeros(0, dtype=np.bool_)) is None


def test_marked_attributes__none_before_and_kept_by_later_changes_of_the_table():
    dataset = dataset_from_columns(
        class_names=["cat"], labels=[0, 0], metadata={"site": ["north", "south"]}
    )
    assert marked_attributes(dataset.table) is None
    table = mark_attributes(dataset.table, ["site"])
    assert marked_attributes(table) == ("site",)
    assert marked_attributes(table.append_column("meta.more", pa.array([1, 2]))) == ("site",)
    assert marked_attributes(mark_attributes(table, [])) == ()


class _Asking:
    needs = (Need.EMBEDDINGS, Need.COLUMNS)


def test_material__counts_what_samples_have():
    samples = discovery_samples()
    whole = Material.of(samples)
    assert whole.n_columns == len(samples.dataset.metadata_names) > 0
    assert whole.has(Need.EMBEDDINGS)
    bare = Material.of(replace(samples, spaces={}))
    assert not bare.has(Need.EMBEDDINGS)
    assert bare.missing(_Asking()) == (Need.EMBEDDINGS,)
    assert Material().missing(_Asking()) == (Need.EMBEDDINGS, Need.COLUMNS)


def test_material__marked_attributes_are_the_columns_that_count():
    samples = discovery_samples()
    table = mark_attributes(samples.dataset.table, ())
    unusable = replace(samples, dataset=replace(samples.dataset, table=table))
    assert Material.of(unusable).n_columns == 0


def test_material__captions_are_a_column():
    samples = discovery_samples()
    texts = pa.array(["a red disc"] * len(samples.dataset))
    table = samples.dataset.table.append_column("meta.caption", texts)
    captioned = replace(samples, dataset=replace(samples.dataset, table=table))
    assert Material.of(captioned).has(Need.CAPTIONS)
    assert not Material.of(samples).has(Need.CAPTIONS)


def test_needs_of__a_method_that_states_none_needs_nothing():
    assert needs_of(object()) == ()


def test_material__words():
    assert Material(n_columns=1).words([Need.COLUMNS]) == ["1 column"]
    assert Material(n_columns=4).words([Need.COLUMNS, Need.CAPTIONS]) == ["4 columns", "captions"]
