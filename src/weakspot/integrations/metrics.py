"""What trackers of experiments are told about a run: metrics, parameters, tags and files, with names that stay the same."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from weakspot.core.errors import StoreError
from weakspot.core.repairs import GroupChange, RepairResult
from weakspot.core.run import RunRecord
from weakspot.integrations.bundle import ExchangeBundle, MarkedSlice
from weakspot.integrations.image_files import write_bytes
from weakspot.integrations.manifest_files import write_manifest
from weakspot.integrations.sample_words import slice_facts
from weakspot.media.locations import shown_location

MOST_METRICS = 1_000
MOST_PARAMETERS = 500
LONGEST_NAME = 200
LONGEST_VALUE = 500
_SECRET = re.compile(r"(^|_)(key|token|secret|password|credentials|authorization)$", re.IGNORECASE)


def exported_run(bundle: ExchangeBundle) -> RunRecord:
    """Return the run of an export.

    Raises:
        StoreError: if there is none yet.
    """
    if bundle.record is None:
        raise StoreError("There is no run to tell a tracker about.", fix="Run weakspot run first.")
    return bundle.record


def run_metrics(bundle: ExchangeBundle) -> dict[str, float]:
    """Return the metrics of a run, at most `MOST_METRICS`.

    Overall figures come first, then slices, repairs, and classes, those with most failures first: what is too much is left out at
    the end. `slice/<tag>/...` is measured on the confirmation half.
    """
    record = exported_run(bundle)
    found: dict[str, float] = {}
    for name, value in _all_metrics(record, bundle.slices):
        if len(found) == MOST_METRICS:
            break
        if value == value:  # noqa: PLR0124 - NaN is not equal to itself; an empty group has no accuracy
            found.setdefault(name[:LONGEST_NAME], float(value))
    return found


def run_parameters(bundle: ExchangeBundle) -> dict[str, str]:
    """Return all settings under dotted names, as text of bounded length; what may be a secret is left out."""
    record = exported_run(bundle)
    settings = record.settings or bundle.settings
    pairs = [("seed", str(record.seed)), ("criterion", record.criterion), *_flat(settings, "")]
    return {
        name[:LONGEST_NAME]: value[:LONGEST_VALUE]
        for name, value in pairs[:MOST_PARAMETERS]
        if value
    }


def run_tags(bundle: ExchangeBundle) -> dict[str, str]:
    """Return what tells one run from another: its id, the version of weakspot and the hashes of its inputs."""
    record = exported_run(bundle)
    tags = {
        "weakspot.run_id": record.run_id,
        "weakspot.project": bundle.name,
        "weakspot.version": record.versions.get("weakspot", ""),
        "weakspot.started": record.started,
        **{f"weakspot.input.{plain(name)}": value for name, value in record.inputs.items()},
    }
    return {name: value[:LONGEST_VALUE] for name, value in tags.items() if value}


def run_files(bundle: ExchangeBundle, folder: Path) -> tuple[Path, ...]:
    """Write the report, the model card and the table of slices into a folder and return their paths."""
    files = [write_bytes(folder / path.name, path.read_bytes()) for path in bundle.report_files]
    if bundle.model_card:
        files.append(write_bytes(folder / "model-card.md", bundle.model_card.encode()))
    facts = [slice_facts(marked) for marked in bundle.slices]
    if facts:
        columns = {name: [one[name] for one in facts] for name in facts[0]}
        files.append(write_manifest(folder / "slices.csv", columns))
    return tuple(files)


def plain(name: str) -> str:
    """Return a name of letters, digits, `-`, `_` and `.` only.

    >>> plain("apple: green & wet")
    'apple-green-wet'
    """
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII).strip("-") or "unnamed"


def _all_metrics(record: RunRecord, slices: tuple[MarkedSlice, ...]) -> Iterator[tuple[str, float]]:
    facts = record.classifier
    if facts is not None and facts.n_samples:
        yield "accuracy", 1 - facts.n_failed / facts.n_samples
        yield "samples", facts.n_samples
        yield "failures", facts.n_failed
    yield "slices_confirmed", len(slices)
    yield "slices_tested", len(record.evidence)
    if slices:
        yield "worst_slice_accuracy", min(1 - marked.evidence.rate_inside for marked in slices)
        yield "largest_gap", max(marked.evidence.headline_gap for marked in slices)
    for marked in slices:
        yield from _slice_metrics(marked)
    for repair in record.repairs:
        yield from _repair_metrics(repair)
    if facts is not None:
        ordered = sorted(facts.per_class.items(), key=lambda item: (-item[1][1], item[0]))
        yield from (
            (f"class/{plain(name)}/accuracy", 1 - failed / total)
            for name, (total, failed) in ordered
            if total
        )


def _slice_metrics(marked: MarkedSlice) -> Iterator[tuple[str, float]]:
    evidence, head = marked.evidence, f"slice/{plain(marked.tag)}"
    yield f"{head}/accuracy", 1 - evidence.rate_inside
    yield f"{head}/accuracy_rest_of_class", 1 - evidence.rate_outside
    yield f"{head}/gap", evidence.headline_gap
    yield f"{head}/q_value", evidence.q_value
    yield f"{head}/samples", evidence.n_inside


def _repair_metrics(repair: RepairResult) -> Iterator[tuple[str, float]]:
    for arm in repair.arms:
        for change in arm.changes:
            head = f"repair/{plain(arm.arm)}/{_group_name(change)}"
            yield f"{head}/accuracy_before", change.accuracy_before
            yield f"{head}/accuracy_after", change.accuracy_after


def _group_name(change: GroupChange) -> str:
    kind = plain(change.kind.value)
    return kind if plain(change.group) == kind else f"{kind}/{plain(change.group)}"


def _flat(values: Mapping[str, object], head: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if _SECRET.search(name):
            continue
        full = f"{head}{plain(name)}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{full}.")
        elif value is not None:
            yield full, shown_location(value) if isinstance(value, str) else json.dumps(value)
