"""A run that others are held against, in one portable file: its record and what it said of held-out samples."""

import base64
import binascii
import json
import zlib
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.errors import StoreError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import Side
from weakspot.core.record import Record
from weakspot.core.run import RECORD_VERSION, RunRecord

KEY_BYTES = 8


class Packed(Record):
    """Something short of each of many samples: yes or no, or the first 64 bits of its content hash.

    >>> Packed.of_bits(np.array([True, False, True])).bits.tolist()
    [True, False, True]
    """

    count: int = Field(ge=0)
    data: str = Field(repr=False)

    @classmethod
    def of_bits(cls, values: AnyArray) -> "Packed":
        """Pack yes/no answers."""
        bits = np.packbits(np.asarray(values, dtype=np.bool_))
        return cls(count=len(values), data=_pack(bits.tobytes()))

    @classmethod
    def of_hashes(cls, hashes: list[str]) -> "Packed":
        """Pack the beginnings of content hashes, each a text of hexadecimal digits."""
        content = b"".join(bytes.fromhex(one[: 2 * KEY_BYTES]) for one in hashes)
        return cls(count=len(hashes), data=_pack(content))

    @property
    def bits(self) -> BoolArray:
        """Return the answers.

        Raises:
            StoreError: if they are damaged.
        """
        content = _unpack(self.data, (self.count + 7) // 8)
        bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=self.count)
        return np.asarray(bits, dtype=np.bool_)

    @property
    def keys(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return the beginnings of content hashes as numbers.

        Raises:
            StoreError: if they are damaged.
        """
        content = _unpack(self.data, self.count * KEY_BYTES)
        return np.frombuffer(content, dtype=">u8").astype(np.uint64)


def _pack(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def _unpack(data: str, size: int) -> bytes:
    """Return the content, which must have this size; never more is unpacked, whatever a file says."""
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(data, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise _damaged(str(error)) from error
    if len(content) != size or not reader.eof:
        raise _damaged("its parts do not fit together")
    return content


def _damaged(why: str) -> StoreError:
    return StoreError(
        f"The baseline is damaged: {why}.",
        fix="Write it again with `weakspot check --write-baseline`.",
    )


BASELINE_KIND: Literal["weakspot baseline"] = "weakspot baseline"
BASELINE_VERSION = 1
WRITE_AGAIN = "Write it again with `weakspot check --write-baseline`."


class ClassPredictions(Record):
    """The samples of one class and which of them failed, among the samples of a baseline.

    Args:
        class_name: the class.
        side: for multi-label tasks, whether the samples have or lack the label.
        members: which samples belong to it.
        failed: which samples failed.
    """

    class_name: str
    side: Side | None = None
    members: Packed
    failed: Packed

    @property
    def title(self) -> str:
        return f"no {self.class_name}" if self.side is Side.ABSENT else self.class_name


class HeldOutPredictions(Record):
    """What a classifier said of samples that it was not trained on, every image once.

    Args:
        keys: of the samples.
        classes: one entry a class (multi-label: two).
        discovery: by digest, the samples that slices were found on.
        slice_members: by slice id, the members of published slices.
    """

    keys: Packed
    classes: tuple[ClassPredictions, ...]
    discovery: dict[str, Packed] = Field(default_factory=dict)
    slice_members: dict[str, Packed] = Field(default_factory=dict)

    @property
    def is_consistent(self) -> bool:
        """Return whether all parts are about the same number of samples."""
        parts = [bits for one in self.classes for bits in (one.members, one.failed)]
        parts += [*self.discovery.values(), *self.slice_members.values()]
        return all(bits.count == self.keys.count for bits in parts)


class Baseline(Record):
    """A run that others are held against.

    Args:
        kind: marks the file.
        version: of the layout.
        run: its record, with published slices only and without anything that names a machine or a folder.
        class_names: the classes; empty for a mere record.
        predictions: what it said of held-out samples; None for a mere record.
    """

    kind: Literal["weakspot baseline"] = BASELINE_KIND
    version: int = BASELINE_VERSION
    run: RunRecord
    class_names: tuple[str, ...] = ()
    predictions: HeldOutPredictions | None = None


def portable_record(record: RunRecord) -> RunRecord:
    """Return the part of a record that a baseline keeps: findings, without commands, settings, platform and paths."""
    published = record.published()
    return RunRecord(
        run_id=record.run_id,
        command="",
        started=record.started,
        finished=record.finished,
        seed=record.seed,
        versions={name: value for name, value in record.versions.items() if name == "weakspot"},
        criterion=record.criterion,
        classifier=record.classifier,
        slices=tuple(found for found, _ in published),
        evidence=tuple(entry for _, entry in published),
    )


def encode_baseline(baseline: Baseline) -> bytes:
    """Return a baseline as the content of its file."""
    return (baseline.model_dump_json(indent=1) + "\n").encode()


def decode_baseline(content: bytes, *, where: str) -> Baseline:
    """Read a baseline file, or the run.json of a project, which has no predictions.

    Raises:
        StoreError: if it is neither, damaged, or written by a newer weakspot.
    """
    try:
        given: Any = json.loads(content)
    except ValueError as error:
        raise StoreError(
            f"The baseline is no JSON: {error}.", where=where, fix=WRITE_AGAIN
        ) from error
    if not isinstance(given, dict) or (
        "run_id" not in given and given.get("kind") != BASELINE_KIND
    ):
        raise StoreError("The file is no baseline.", where=where, fix=WRITE_AGAIN)
    newest = (
        (given.get("record_version"), RECORD_VERSION)
        if "run_id" in given
        else (given.get("version"), BASELINE_VERSION)
    )
    if isinstance(newest[0], int) and newest[0] > newest[1]:
        raise StoreError(
            "The baseline was written by a newer weakspot.",
            where=where,
            given=newest[0],
            fix="Upgrade weakspot.",
        )
    try:
        if "run_id" in given:
            return Baseline(run=RunRecord.model_validate_json(content))
        baseline = Baseline.model_validate_json(content)
    except ValidationError as error:
        count = error.error_count()
        raise StoreError(
            f"The baseline is damaged: {count} fields are wrong or missing.",
            where=where,
            fix=WRITE_AGAIN,
        ) from error
    _refuse_torn(baseline, where)
    return baseline


def _refuse_torn(baseline: Baseline, where: str) -> None:
    predictions = baseline.predictions
    known = {found.slice_id for found in baseline.run.slices}
    is_whole = {
        entry.slice_id for entry in baseline.run.evidence if entry.verdict is Verdict.CONFIRMED
    } <= known
    if predictions is not None:
        is_whole = (
            is_whole
            and predictions.is_consistent
            and len(np.unique(predictions.keys.keys)) == predictions.keys.count
        )
    if not is_whole:
        raise StoreError(
            "The baseline is damaged: its parts do not fit together.", where=where, fix=WRITE_AGAIN
        )
