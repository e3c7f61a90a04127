"""A classifier in an ONNX file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, ModelError, raise_all
from weakspot.core.heads import Head
from weakspot.core.registry import Sendable
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import (
    AnswerReader,
    check_repaired,
    fitted_head,
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
    probe_images,
    score_kinds,
    settle,
)
from weakspot.models.files import PlainModel, files_in, main_first, new_files
from weakspot.models.loading import LoadedOnce, file_hash, first_line, model_id, reloaded
from weakspot.models.onnx.graph import InputFacts, LinearLayer, OnnxGraph, check_graph, write_graph
from weakspot.models.onnx.session import (
    CPU,
    PROCESSOR,
    choose_provider,
    fitting_batch,
    make_session,
)
from weakspot.models.preprocessing import Preprocessing, preprocessing_from

NOT_TAPPED = "feature_output is not the input of the last linear layer"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runner:
    """A session, what it takes and which of its outputs are meant."""

    session: Any
    facts: InputFacts
    outputs: tuple[str, ...]
    where: str

    def run(self, prepared: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
        parts = [self._answers(batch) for batch in self.batches(prepared)]
        columns = [np.concatenate(column)[: len(prepared)] for column in zip(*parts, strict=True)]
        return columns[0], columns[1] if len(columns) > 1 else None

    def batches(self, prepared: Sequence[AnyArray]) -> Iterator[AnyArray]:
        size = self.facts.batch or max(len(prepared), 1)
        for start in range(0, len(prepared), size):
            chunk = prepared[start : start + size]
            yield np.stack([*chunk, *[chunk[-1]] * (size - len(chunk))])

    def _answers(self, batch: AnyArray) -> list[AnyArray]:
        try:
            answers = self.session.run(list(self.outputs), {self.facts.name: batch})
        except Exception as error:
            raise ModelError(
                f"onnxruntime refused a batch: {first_line(error)}",
                where=self.where,
                given=batch.shape,
            ) from error
        rows = [np.asarray(answer) for answer in answers]
        return [answer.reshape(len(answer), -1) for answer in rows if answer.ndim > 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Loaded:
    runner: _Runner
    preprocessing: Preprocessing
    identifier: str
    reader: AnswerReader
    layer_kind: str | None
    hashes: list[str]


class OnnxClassifier(Sendable):
    """A classifier in an ONNX file, run by onnxruntime.

    The input of the last linear layer is made a further output of the graph: those are the features. Size, layout, kind of number
    and batch come from the graph.

    Args:
        path: the .onnx file; weights in other files must stand beside it.
        class_names: one name an output; by default those in the file's metadata.
        task: `single-label` or `multi-label`.
        output: which output holds the scores, needed when there are several.
        feature_output: a tensor to take as features instead of the input of the last linear layer.
        scores: whether the graph gives `logits` or `probabilities`; `auto` sees for itself.
        providers: execution providers of onnxruntime, best first; by default the best that starts and computes as the file says.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        images: how images are prepared, see `IMAGE_OPTIONS`; pixels are scaled to 0 to 1 and not normalised by default.
    """

    def __init__(
        self,
        *,
        path: str | Path,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        output: str | None = None,
        feature_output: str | None = None,
        scores: str = "auto",
        providers: Sequence[str] | None = None,
        threads: int = 0,
        **images: Any,
    ) -> None:
        self._path = Path(path)
        self._class_names = parsed_class_names(class_names)
        self.task = parsed_task(task)
        self._output = output
        self._feature_output = feature_output
        self._scores = parsed_score_kind(scores)
        self._providers = providers
        self._threads = threads
        self._images = images

    @property
    def classifier_id(self) -> str:
        return self._loaded.identifier

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return self._loaded.reader.class_names

    @property
    def image_side(self) -> int | None:
        return self._loaded.preprocessing.needed_side

    @property
    def preprocessing(self) -> Preprocessing:
        """How images become what the graph takes."""
        return self._loaded.preprocessing

    @property
    def head(self) -> Head | None:
        """The last linear layer, checked against the graph's own answer; None where there is none."""
        return self._loaded.reader.head

    @property
    def computed_by(self) -> str:
        """Which provider computes; in the precision of the file, always."""
        return choose_provider(self._providers).name

    @property
    def images_per_call(self) -> int:
        """How many images fit into the memory of what computes."""
        return fitting_batch(choose_provider(self._providers), side=self.image_side)

    @property
    def features_note(self) -> str | None:
        return self._loaded.reader.note

    def prepare(self, image: Image.Image) -> AnyArray:
        return self._loaded.preprocessing.apply(image)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        if not prepared:
            return self._loaded.reader.empty()
        scores, features = self._loaded.runner.run(prepared)
        return self._loaded.reader.output(scores, features, n_rows=len(prepared))

    def write_repaired(self, head: Head, folder: Path) -> tuple[Path, ...]:
        """Write the graph with this last layer, and the weight files it needs, into a folder; everything else stays bit for bit.

        Raises:
            ModelError: if a file is there already, the layer does not fit, or what was written does not hold when read back.
        """
        where = str(self._path)
        rows = fitted_head(
            head,
            self.head,
            self.features_note,
            is_single=self._loaded.reader.is_single,
            where=where,
        )
        if self._loaded.hashes != _hashes(OnnxGraph(self._path)):
            raise ModelError(
                "The file changed since it was loaded.",
                where=where,
                fix="Start again with the file as it is.",
            )
        prepared = self._probes()
        is_exact = choose_provider(self._providers) is PROCESSOR
        before = self if is_exact else reloaded(self, _providers=(CPU,))
        with new_files(folder) as staging:
            path, epsilon = self._write_checked(
                rows, staging, list(self._loaded.runner.batches(prepared))
            )
            check_repaired(before, reloaded(before, _path=path), head, prepared, epsilon=epsilon)
            names = files_in(staging)
        return main_first(folder, names, Path(path.name))

    def _write_checked(
        self, rows: Head, folder: Path, batches: Sequence[AnyArray]
    ) -> tuple[Path, float]:
        graph = OnnxGraph(self._path)
        layer = graph.end(graph.score_output(self._output, self._feature_output))[0]
        if layer is None:
            raise ModelError("The last linear layer is gone.", where=str(self._path))
        written = write_graph(graph, layer, rows, folder)
        check_graph(graph, layer, rows, written, batches)
        return written[0], layer.epsilon

    def plain_model(self) -> PlainModel | None:
        loaded = self._loaded
        return PlainModel(
            kind="onnx",
            path=self._path,
            preprocessing=loaded.preprocessing,
            class_names=loaded.reader.class_names,
            has_one_score=loaded.reader.is_single,
            input_name=loaded.runner.facts.name,
            output_name=loaded.runner.outputs[0],
            batch=loaded.runner.facts.batch,
        )

    @property
    def layer_kind(self) -> str | None:
        """The kind of number that the last layer is kept in, for example `float16`; None without a head."""
        return self._loaded.layer_kind if self.head is not None else None

    def _probes(self) -> list[AnyArray]:
        preprocessing = self._loaded.preprocessing
        return [
            preprocessing.apply(image)
            for image in probe_images(preprocessing.height, preprocessing.width)
        ]

    @LoadedOnce
    def _loaded(self) -> _Loaded:
        graph = OnnxGraph(self._path)
        hashes = _hashes(graph)
        facts = graph.input_facts()
        preprocessing = _preprocessing(facts, self._images)
        output = graph.score_output(self._output, self._feature_output)
        layer, kind_of_scores, reason = graph.end(output)
        tap = self._feature_output or (None if layer is None else layer.feature_name)
        runner = _Runner(
            session=self._session(graph, tap),
            facts=facts,
            outputs=(output,) if tap is None else (output, tap),
            where=str(self._path),
        )
        is_tapped = layer is not None and layer.feature_name == tap
        reader = self._reader(
            runner,
            layer if is_tapped else None,
            reason or (None if is_tapped else NOT_TAPPED),
            kind_of_scores,
            preprocessing,
            graph.metadata_labels(),
        )
        if reader.head is None and self._feature_output is None:
            runner, reader = replace(runner, outputs=(output,)), replace(reader, n_features=None)
        identifier = model_id(
            "onnx",
            self._path.name,
            hashes,
            preprocessing.as_settings(),
            runner.outputs,
            reader.kind,
            self.task,
        )
        return _Loaded(
            runner=runner,
            preprocessing=preprocessing,
            identifier=identifier,
            reader=reader,
            layer_kind=None if layer is None else layer.kind,
            hashes=hashes,
        )

    def _reader(
        self,
        runner: _Runner,
        layer: LinearLayer | None,
        note: str | None,
        kind_of_scores: str | None,
        preprocessing: Preprocessing,
        labels: tuple[str, ...] | None,
    ) -> AnswerReader:
        images = probe_images(preprocessing.height, preprocessing.width)
        scores, features = runner.run([preprocessing.apply(image) for image in images])
        head = (
            None if layer is None else Head(weights=layer.weights, bias=layer.bias, task=self.task)
        )
        return settle(
            scores,
            features,
            head,
            note,
            kinds=score_kinds(self._scores, kind_of_scores),
            task=self.task,
            class_names=self._class_names or parsed_class_names(labels),
            where=str(self._path),
        )

    def _session(self, graph: OnnxGraph, tap: str | None) -> Any:
        return make_session(
            self._path,
            threads=self._threads,
            providers=self._providers,
            graph=graph.tapped(*filter(None, [tap])),
        )


def _preprocessing(facts: InputFacts, images: Mapping[str, Any]) -> Preprocessing:
    wanted = preprocessing_from(
        images,
        height=facts.height,
        width=facts.width,
        layout=facts.layout,
        dtype=facts.dtype,
        colour="grey" if facts.channels == 1 else None,
    )
    sizes = {
        "height": (facts.height, wanted.height),
        "width": (facts.width, wanted.width),
        "channels": (facts.channels, wanted.n_channels),
    }
    problems = [
        f"{name}: the graph takes {fixed}, the settings say {asked}"
        for name, (fixed, asked) in sizes.items()
        if fixed is not None and fixed != asked
    ]
    raise_all(
        problems,
        error=ConfigError,
        what="The settings do not fit the graph:",
        where="classifier settings",
    )
    return wanted


def _hashes(graph: OnnxGraph) -> list[str]:
    return [file_hash(file) for file in (graph.path, *graph.external_files())]
