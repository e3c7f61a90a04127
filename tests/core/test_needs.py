"""What methods need, and what there is."""

from dataclasses import replace

import pyarrow as pa

from weakspot.core.samples import Material, Need, mark_attributes, needs_of
from weakspot.testing.examples import discovery_samples


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
