"""Slices that people name in a policy, as rules that any sample can be put to."""

import difflib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.record import PackedArray
from weakspot.core.rules import ColumnRule, NearestRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.pipeline.hypotheses import matching_prompts
from weakspot.release.policy import NamedSlice

METHOD = "policy"
NOWHERE = DataUse(name="named in the policy", n_samples=0, digest="")
ABSENT_PREFIX = "no "


def column_slices(named: Sequence[NamedSlice], dataset: Dataset) -> tuple[FailureSlice, ...]:
    return tuple(
        _slice(
            one,
            dataset,
            ColumnRule(column=one.column, values=one.wanted, low=one.low, high=one.high),
        )
        for one in named
        if one.column
    )


def phrase_slices(
    named: Sequence[NamedSlice], samples: SampleSet, embed: EmbedTexts | None
) -> tuple[FailureSlice, ...]:
    """Return the named slices that are told by words: samples that are nearer to the class with them than to the class alone.

    No result is looked at, so such a slice can be measured on any sample.
    """
    wanted = [one for one in named if one.phrase]
    if wanted and embed is None:
        raise ModelError(
            "The embedder has no text side, so slices cannot be named by phrases.",
            where=f"[[slices]] {wanted[0].name}",
            fix="Name them by a column, or run weakspot lab align.",
        )
    return tuple(_phrase_slice(one, samples, embed) for one in wanted if embed is not None)


def members_of(found: FailureSlice, samples: SampleSet, rows: IntArray) -> BoolArray:
    """Return which rows belong to a named slice.

    Raises:
        ConfigError: if the column holds no numbers and low or high was given.
        DataError: if there is no such column.
    """
    try:
        return found.rule.members(samples, rows)
    except pa.ArrowInvalid as error:
        raise ConfigError(
            "The column holds no numbers, so low and high mean nothing.",
            where=f"[[slices]] {found.names[0].contrast}",
            fix="Give value or values instead.",
        ) from error


def _phrase_slice(one: NamedSlice, samples: SampleSet, embed: EmbedTexts) -> FailureSlice:
    class_name, side = _class_of(one, samples.dataset)
    nobody = np.zeros(0, dtype=np.int64)
    problem = ClassProblem(
        class_name=class_name,
        side=side,
        rows=nobody,
        failed=nobody.astype(np.bool_),
        confidence=nobody.astype(np.float32),
    )
    embeddings = unit_rows(
        np.asarray(embed(matching_prompts(one.phrase, problem)), dtype=np.float32)
    )
    rule = NearestRule(
        encoder_id=samples.space("clip").encoder_id, prototypes=PackedArray.of(embeddings), chosen=0
    )
    return _slice(one, samples.dataset, rule)


def _slice(one: NamedSlice, dataset: Dataset, rule: ColumnRule | NearestRule) -> FailureSlice:
    class_name, side = _class_of(one, dataset)
    name = SliceName(phrase=one.name, contrast=one.name, score=0.0, describer=METHOD)
    return FailureSlice(
        class_name=class_name, side=side, rule=rule, method=METHOD, found_on=NOWHERE, names=(name,)
    )


def _class_of(one: NamedSlice, dataset: Dataset) -> tuple[str, Side | None]:
    is_multi = dataset.task is Task.MULTI_LABEL
    if one.class_name in dataset.class_names:
        return one.class_name, Side.PRESENT if is_multi else None
    bare = one.class_name.removeprefix(ABSENT_PREFIX)
    if is_multi and bare in dataset.class_names:
        return bare, Side.ABSENT
    near = difflib.get_close_matches(one.class_name, dataset.class_names, n=1)
    hint = (
        f"Did you mean {near[0]!r}?" if near else f"Choose one of {list(dataset.class_names)[:20]}."
    )
    raise DataError(
        f"There is no class {one.class_name!r}.",
        where=f"[[slices]] {one.name}",
        given=one.class_name,
        fix=hint,
    )
