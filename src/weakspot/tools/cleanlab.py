"""cleanlab: labels, probabilities and embeddings in the layout it asks for, and the issues it finds."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import DataError
from weakspot.tools.bundle import ExchangeBundle, Written, label_names
from weakspot.tools.files import replacing, write_bytes
from weakspot.tools.tables import (
    SAMPLE_ID,
    read_table_file,
    refuse_extension,
    sample_table,
    write_manifest,
    write_parquet,
)

TABLE = "samples.parquet"
ROW = "cleanlab_row"
SUSPECT = "suspect_label"
SCRIPT = "find_issues.py"
MARKED = "marked_issues.parquet"
_TRAINED_ON = (Split.TRAIN, Split.SYNTHETIC)
_FIND = '''"""Looks for issues with cleanlab and keeps them in issues.parquet, one line a sample."""

from pathlib import Path

import numpy as np
import pandas as pd
from cleanlab import Datalab

HERE = Path(__file__).resolve().parent


def load(name):
    """Return an array of the export, None if there is none."""
    return np.load(HERE / name) if (HERE / name).exists() else None


samples = pd.read_parquet(HERE / "samples.parquet").dropna(subset=["cleanlab_row"]).sort_values("cleanlab_row")
lab = Datalab(data={"label": load("labels.npy")}, label_name="label", verbosity=0)
lab.find_issues(pred_probs=load("pred_probs.npy"), features=load("features.npy"))
issues = lab.get_issues()
issues.insert(0, "sample_id", samples["sample_id"].to_numpy())
issues.to_parquet(HERE / "issues.parquet")
'''


def write_issues(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write what `cleanlab.Datalab` takes: labels, probabilities, embeddings, all samples, and a script that finds issues.

    Arrays have one row for every labelled sample that the classifier was not trained on, because cleanlab wants probabilities of
    samples outside training. `samples.parquet` has all samples; its column `cleanlab_row` says where each is in the arrays.

    Raises:
        DataError: if samples can have several labels, or there is neither a probability nor an embedding.
    """
    rows = _rows(bundle)
    arrays = _arrays(bundle, rows)
    if "pred_probs" not in arrays and "features" not in arrays:
        fix = "Give probabilities (columns prob_<class>, or a classifier that gives them), or images and run `weakspot embed`."
        raise DataError(
            "There are neither probabilities nor embeddings to give to cleanlab.", fix=fix
        )
    places = np.full(len(bundle.samples.dataset), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    table = sample_table(bundle, folder).append_column(ROW, pa.array(places, mask=places < 0))
    files = [write_parquet(folder / TABLE, table.append_column(SUSPECT, _suspects(bundle)))]
    files += [_write_array(folder / f"{name}.npy", array) for name, array in arrays.items()]
    files.append(write_bytes(folder / SCRIPT, _FIND.encode()))
    sentence = (
        f"{len(rows)} samples. Where cleanlab is installed: python {folder / SCRIPT}. "
        f"Then here: weakspot import --from cleanlab {folder / 'issues.parquet'} --out manifest.parquet"
    )
    return Written(files=tuple(files), sentence=sentence)


def write_marked_issues(bundle: ExchangeBundle, folder: Path) -> Path:
    """Write labels that people marked as wrong in the columns of `CleanLearning.find_label_issues`; the right one is `predicted_label`."""
    ids, given = bundle.samples.dataset.sample_ids(), label_names(bundle.samples.dataset)
    marked = [one for one in bundle.to_label if one.suggested]
    return write_parquet(
        folder / MARKED,
        pa.table(
            {
                SAMPLE_ID: pa.array([ids[one.row] for one in marked], pa.string()),
                "is_label_issue": pa.array([True] * len(marked), pa.bool_()),
                "given_label": pa.array(
                    ["|".join(given[one.row] or ()) for one in marked], pa.string()
                ),
                "predicted_label": pa.array(
                    ["|".join(one.suggested) for one in marked], pa.string()
                ),
            }
        ),
    )


def read_issues(source: Path, target: Path) -> Written:
    """Turn issues that cleanlab found into a manifest of all samples with one free column for every kind of issue.

    Args:
        source: table of `Datalab.get_issues()` or of `CleanLearning.find_label_issues`, or an array (.npy) of
            `find_label_issues`: a mask, or the positions of issues. `samples.parquet` of the export lies beside it.
        target: the manifest.
    """
    refuse_extension(target)
    samples = _samples_beside(source)
    issues = (
        _array_as_table(source, samples)
        if source.suffix.lower() == ".npy"
        else read_table_file(source)
    )
    places = _places(issues, samples, source)
    columns: dict[str, list[object]] = {
        name: samples.column(name).to_pylist() for name in samples.column_names if name != ROW
    }
    found = [name for name in issues.column_names if name != SAMPLE_ID and _is_issue_column(name)]
    if not found:
        raise DataError(
            "There is no column of cleanlab.",
            where=str(source),
            given=", ".join(issues.column_names[:20]),
        )
    for name in found:
        values = issues.column(name).to_pylist()
        columns[name] = [None if place < 0 else values[place] for place in places.tolist()]
    path = write_manifest(target, columns)
    n_issues = sum(any(columns[name][row] is True for name in found) for row in range(len(samples)))
    sentence = f"{n_issues} of {len(samples)} samples have an issue. As a source of samples: [data] source = {str(target)!r}."
    return Written(files=(path,), sentence=sentence)


def _rows(bundle: ExchangeBundle) -> IntArray:
    dataset = bundle.samples.dataset
    if dataset.task is Task.MULTI_LABEL:
        fix = "Export to another tool; weakspot verify itself looks for suspect labels."
        raise DataError("Samples with several labels are not handed to cleanlab.", fix=fix)
    is_meant = dataset.is_labelled.copy()
    is_meant[dataset.rows_of(*_TRAINED_ON)] = False
    if dataset.probabilities is not None:
        is_meant &= np.isfinite(np.asarray(dataset.probabilities)).all(axis=1)
    if not is_meant.any():
        raise DataError(
            "No labelled sample outside training has a prediction.",
            fix="Give predictions, or run `weakspot embed` with a classifier.",
        )
    return np.flatnonzero(is_meant)


def _arrays(bundle: ExchangeBundle, rows: IntArray) -> dict[str, AnyArray]:
    dataset, embeddings = bundle.samples.dataset, bundle.embeddings()
    arrays: dict[str, AnyArray] = {"labels": dataset.labels[rows]}
    if dataset.probabilities is not None:
        arrays["pred_probs"] = np.asarray(dataset.probabilities[rows], dtype=np.float64)
    if embeddings is not None and np.isfinite(embeddings[rows]).all():
        arrays["features"] = np.asarray(embeddings[rows], dtype=np.float32)
    return arrays


def _suspects(bundle: ExchangeBundle) -> pa.Array:
    is_suspect = np.zeros(len(bundle.samples.dataset), dtype=np.bool_)
    is_suspect[[one.row for one in bundle.to_label]] = True
    return pa.array(is_suspect & bundle.samples.dataset.is_labelled)


def _write_array(path: Path, array: AnyArray) -> Path:
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)
    return path


def _samples_beside(source: Path) -> pa.Table:
    beside = source.parent / TABLE
    if not beside.exists():
        fix = "Put the issues into the folder of `weakspot export --to cleanlab`."
        raise DataError(
            f"{TABLE} is not beside the issues, so nobody knows whose they are.",
            where=str(source),
            fix=fix,
        )
    samples = read_table_file(beside)
    if ROW not in samples.column_names:
        raise DataError(
            f"{TABLE} beside the issues is not of `weakspot export --to cleanlab`.",
            where=str(beside),
        )
    return samples


def _places(issues: pa.Table, samples: pa.Table, source: Path) -> IntArray:
    """Return the line of the issues for every sample, -1 where there is none: by sample id, else by the order of the arrays."""
    if SAMPLE_ID in issues.column_names:
        line = {name: place for place, name in enumerate(issues.column(SAMPLE_ID).to_pylist())}
        places = np.array(
            [line.get(name, -1) for name in samples.column(SAMPLE_ID).to_pylist()], dtype=np.int64
        )
        if (places >= 0).sum() == len(line):
            return places
        unknown = sorted(set(line) - set(samples.column(SAMPLE_ID).to_pylist()))[:5]
        raise DataError(
            "Issues are about samples that were not exported.", where=str(source), given=unknown
        )
    places = np.asarray(samples.column(ROW).fill_null(-1)).astype(np.int64)
    if places.max() + 1 != len(issues):
        given = f"{len(issues)} lines for {places.max() + 1} samples"
        raise DataError(
            "The issues are of other samples.",
            where=str(source),
            given=given,
            fix="Export again, then run cleanlab.",
        )
    return places


def _array_as_table(source: Path, samples: pa.Table) -> pa.Table:
    try:
        found = np.load(source, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(
            "This is no array of cleanlab.", where=str(source), fix="Save it with numpy.save."
        ) from error
    n_rows = len(samples) - samples.column(ROW).null_count
    is_issue = np.zeros(n_rows, dtype=np.bool_)
    if found.dtype == np.bool_ and found.shape == (n_rows,):
        is_issue = found
    elif (
        found.ndim == 1
        and np.issubdtype(found.dtype, np.integer)
        and (found >= 0).all()
        and (found < n_rows).all()
    ):
        is_issue[found] = True
    else:
        given = f"{found.dtype} {found.shape}"
        raise DataError(
            "This is neither a mask nor a list of positions.", where=str(source), given=given
        )
    return pa.table({"is_label_issue": is_issue})


def _is_issue_column(name: str) -> bool:
    return (
        name.startswith("is_")
        or name.endswith("_score")
        or name in ("label_quality", "given_label", "predicted_label")
    )
