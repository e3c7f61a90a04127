"""A classifier in an ONNX file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from PIL import Image

from weakspot.backends.class_scores import parsed_class_names, parsed_score_kind, parsed_task, score_kinds
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.backends.model_hash import file_hash, model_id
from weakspot.backends.network_answer import AnswerReader, Probe, settle
from weakspot.backends.onnx_graph import GraphEnd, InputFacts, OnnxGraph
from weakspot.backends.preprocessing import PictureSettings, Preprocessing, preprocessing_from
from weakspot.backends.probe import probe_pictures
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, ModelError, raise_all
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput

CPU = "CPUExecutionProvider"
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runner:
    """A session, what it takes and which of its outputs are meant."""

    session: Any
    facts: InputFacts
    outputs: tuple[str, ...]
    where: str

    def run(self, prepared: Sequence[AnyArray]) -> tuple[AnyArray, AnyArray | None]:
        """Return raw scores and features of prepared pictures, whatever batch size the graph insists on."""
        size = self.facts.batch or max(len(prepared), 1)
        parts = [self._chunk(prepared[start : start + size], size) for start in range(0, len(prepared), size)]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return columns[0], columns[1] if len(columns) > 1 else None

    def _chunk(self, chunk: Sequence[AnyArray], size: int) -> list[AnyArray]:
        batch = np.stack([*chunk, *[chunk[-1]] * (size - len(chunk))])
        try:
            answers = self.session.run(list(self.outputs), {self.facts.name: batch})
        except Exception as error:
            raise ModelError(f"onnxruntime refused a batch: {_first_line(error)}", where=self.where, given=batch.shape) from error
        rows = [np.asarray(answer) for answer in answers]
        return [answer.reshape(len(answer), -1)[: len(chunk)] for answer in rows if answer.ndim > 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Loaded:
    runner: _Runner
    preprocessing: Preprocessing
    identifier: str
    reader: AnswerReader


class OnnxClassifier:
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
        providers: execution providers of onnxruntime, best first.
        threads: threads inside one call; 0 leaves it to onnxruntime.
        pictures: how pictures are prepared, see `PictureSettings`; pixels are scaled to 0 to 1 and not normalised by default.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
        self,
        *,
        path: str | Path,
        class_names: Sequence[str] | None = None,
        task: str = "single-label",
        output: str | None = None,
        feature_output: str | None = None,
        scores: str = "auto",
        providers: Sequence[str] = (CPU,),
        threads: int = 0,
        **pictures: Unpack[PictureSettings],
    ) -> None:
        self._path = Path(path)
        self._class_names = parsed_class_names(class_names)
        self.task = parsed_task(task)
        self._output = output
        self._feature_output = feature_output
        self._scores = parsed_score_kind(scores)
        self._providers = tuple(providers)
        self._threads = threads
        self._pictures = pictures

    @property
    def classifier_id(self) -> str:
        """File name and hash of graph, weights and pre-processing."""
        return self._loaded.identifier

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes as given or as the file's metadata names them."""
        return self._loaded.reader.class_names

    @property
    def picture_side(self) -> int | None:
        """Shortest picture side that `prepare` needs."""
        return self._loaded.preprocessing.needed_side

    @property
    def head(self) -> Head | None:
        """The last linear layer, checked against the graph's own answer; None where there is none."""
        return self._loaded.reader.head

    @property
    def features_note(self) -> str | None:
        """Why there is no head, or None."""
        return self._loaded.reader.note

    def prepare(self, picture: Image.Image) -> AnyArray:
        """Turn one RGB picture into an input of the graph."""
        return self._loaded.preprocessing.apply(picture)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return probabilities, and features where the graph has them."""
        if not prepared:
            return self._loaded.reader.empty()
        scores, features = self._loaded.runner.run(prepared)
        return self._loaded.reader.output(scores, features, n_rows=len(prepared))

    @LoadedOnce
    def _loaded(self) -> _Loaded:
        graph = OnnxGraph(self._path)
        files = [self._path, *graph.external_files()]
        facts = graph.input_facts()
        preprocessing = _preprocessing(facts, self._pictures)
        output = graph.score_output(self._output, self._feature_output)
        end = graph.end(output)
        tap = self._feature_output or (end.layer.feature_name if end.layer is not None else None)
        runner = _Runner(
            session=self._session(graph, tap),
            facts=facts,
            outputs=(output,) if tap is None else (output, tap),
            where=str(self._path),
        )
        reader = self._reader(runner, end, preprocessing, graph.metadata_labels())
        if reader.head is None and self._feature_output is None:
            runner, reader = replace(runner, outputs=(output,)), replace(reader, n_features=None)
        hashes = [file_hash(file) for file in files]
        identifier = model_id("onnx", self._path.name, hashes, preprocessing.as_settings(), runner.outputs, reader.kind, self.task)
        return _Loaded(runner=runner, preprocessing=preprocessing, identifier=identifier, reader=reader)

    def _reader(self, runner: _Runner, end: GraphEnd, preprocessing: Preprocessing, labels: tuple[str, ...] | None) -> AnswerReader:
        pictures = probe_pictures(preprocessing.height, preprocessing.width)
        scores, features = runner.run([preprocessing.apply(picture) for picture in pictures])
        is_tapped = end.layer is not None and end.layer.feature_name == runner.outputs[-1]
        head = Head(weights=end.layer.weights, bias=end.layer.bias, task=self.task) if end.layer and is_tapped else None
        note = end.reason or (None if is_tapped else "feature_output is not the input of the last linear layer")
        return settle(
            Probe(scores=scores, features=features, head=head, note=note),
            kinds=score_kinds(self._scores, end.scores),
            task=self.task,
            class_names=self._class_names or parsed_class_names(labels),
            where=str(self._path),
        )

    def _session(self, graph: OnnxGraph, tap: str | None) -> Any:
        import onnxruntime

        present = onnxruntime.get_available_providers()
        missing = [name for name in self._providers if name not in present]
        if missing:
            raise ConfigError(
                "This onnxruntime lacks a provider.", where="providers", given=missing, fix=f"Choose among {present}."
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        options.add_session_config_entry(EXTERNAL_FOLDER, str(self._path.parent.resolve()))
        try:
            return onnxruntime.InferenceSession(graph.tapped(tap), options, providers=list(self._providers))
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"onnxruntime cannot open the graph: {_first_line(error)}",
                where=str(self._path),
                fix="Export it again, or update onnxruntime.",
            ) from error


def _preprocessing(facts: InputFacts, pictures: PictureSettings) -> Preprocessing:
    wanted = preprocessing_from(
        pictures,
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
    raise_all(problems, error=ConfigError, what="The settings do not fit the graph:", where="classifier settings")
    return wanted


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0][:300]
