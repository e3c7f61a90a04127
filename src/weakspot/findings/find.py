"""From what a data scientist has in memory to findings: one call."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from weakspot.core.errors import ConfigError, DataError, WeakspotError, tell_where
from weakspot.core.run import StageProgress
from weakspot.findings.columns import arrow_table, is_table
from weakspot.findings.findings import Findings
from weakspot.findings.folder import make_project
from weakspot.findings.given import GivenSamples, gather
from weakspot.findings.labels import check_names
from weakspot.findings.models import answers_of, samples_of
from weakspot.findings.progress import usual_progress
from weakspot.findings.sufficiency import check_enough
from weakspot.findings.tables import with_roles
from weakspot.pipeline.settings import Settings
from weakspot.project.new_settings import recommended_settings


def find(  # noqa: PLR0913 - one argument for everything that may be there
    data: object = None,
    *,
    model: object = None,
    labels: object = None,
    predictions: object = None,
    probabilities: object = None,
    class_names: Sequence[object] | None = None,
    images: object = None,
    embeddings: object = None,
    metadata: object = None,
    groups: object = None,
    splits: object = None,
    train: object = None,
    folder: Path | str | None = None,
    settings: Settings | None = None,
    progress: StageProgress | None = None,
) -> Findings:
    """Find, name and prove what a classifier systematically gets wrong.

    Labels, predictions and one of images, embeddings and metadata are enough. Everything is one for every sample, in one order.

    Args:
        data: a data frame, an Arrow table, a dict of columns or a list of rows, whose columns are called as in a manifest (`label`,
            `prediction`, `path` ...); or a data set of PyTorch or Hugging Face.
        model: a PyTorch module, an estimator of scikit-learn, or a function (such as a pipeline of transformers) that is asked for
            the predictions that were not given.
        labels: true labels: names or codes; lists of them for a multi-label task.
        predictions: what the classifier says.
        probabilities: [n, c], with columns in the order of `class_names`.
        class_names: the classes, if labels are codes or there are probabilities.
        images: paths, addresses, Pillow images or arrays.
        embeddings: [n, d], of any encoder.
        metadata: further columns of any kind: a data frame or a dict of columns.
        groups: what belongs together, such as the patient or the video.
        splits: `train`, `validation` or `test`; without it all samples are validation samples.
        train: what the classifier learnt from, from which causes are told: a dict with labels and some of images, embeddings,
            metadata and groups, or a table or data set as `data`.
        folder: where the project is kept; by default it is gone when the findings are.
        settings: of the project; by default those of `weakspot init`.
        progress: told how far every stage is; by default bars in a notebook, a line on a terminal, and nothing elsewhere.

    Raises:
        DataError: if what was given does not fit together, or is not enough.
    """
    parts = {
        "labels": labels,
        "predictions": predictions,
        "probabilities": probabilities,
        "class_names": class_names,
        "images": images,
        "embeddings": embeddings,
        "metadata": metadata,
        "groups": groups,
        "splits": splits,
    }
    given = {name: part for name, part in parts.items() if part is not None}
    samples = _samples(data, model, given)
    check_enough(samples)
    learnt = None if train is None else _learnt(train, samples)
    check_names(
        [*samples.labels, *([] if learnt is None else learnt.labels)],
        samples.predictions,
        samples.class_names,
    )
    if settings is not None and not isinstance(settings, Settings):
        raise ConfigError(
            "'settings' are no settings.",
            given=type(settings).__name__,
            fix="Give weakspot.Settings(...), or leave them out.",
        )
    home = Path(tempfile.mkdtemp(prefix="weakspot-") if folder is None else folder)
    try:
        project = make_project(
            home,
            samples,
            learnt,
            settings or recommended_settings(),
            progress=progress or usual_progress(),
        )
        return Findings(project, project.run(writes_report=False), is_temporary=folder is None)
    except BaseException as error:
        if folder is None:
            shutil.rmtree(home, ignore_errors=True)
            if isinstance(error, WeakspotError) and str(home) in (error.where or ""):
                tell_where(error, "what was given to weakspot.find")
        raise


def _samples(data: object, model: object, given: dict[str, object]) -> GivenSamples:
    if data is None:
        if "labels" not in given:
            raise DataError("There are no labels.", fix="Give labels, or a table that has them.")
    elif isinstance(data, Mapping) and any(hasattr(part, "features") for part in data.values()):
        raise DataError(
            "This is several data sets.",
            given=list(data),
            fix="Give one of them, and the one that the classifier learnt from as train.",
        )
    elif is_table(data):
        given = with_roles(arrow_table(data), given)
    else:
        given = samples_of(data, model, given)
    if model is not None and not {"predictions", "probabilities"} & set(given):
        given = answers_of(model, given)
    return gather(**given)  # type: ignore[arg-type]


def _learnt(train: object, samples: GivenSamples) -> GivenSamples:
    if isinstance(train, Mapping):
        given = _parts_of(train)
    elif is_table(train):
        given = with_roles(arrow_table(train), {})
        given.pop("splits", None)
    else:
        given = samples_of(train, None, {})
    return gather(**{**given, "class_names": samples.class_names or None})  # type: ignore[arg-type]


def _parts_of(train: Mapping[str, object]) -> dict[str, object]:
    known = ("labels", "predictions", "probabilities", "images", "embeddings", "metadata", "groups")
    unknown = [name for name in train if name not in known]
    if unknown or "labels" not in train:
        raise DataError(
            f"'train' has no part {unknown[0]!r}." if unknown else "'train' has no labels.",
            given=list(train),
            fix=f"Give a dict with labels and some of: {', '.join(known[1:])}.",
        )
    return dict(train)
