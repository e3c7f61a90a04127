"""Samples and assistants that no method can make much of: every method says so, and the run goes on."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.errors import ModelError
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.project.project import Project
from weakspot.run import loop
from weakspot.run.naming import describe_slices
from weakspot.run.settings import DiscoverSettings, PartSettings, Settings, VerifySettings
from weakspot.run.stage_clock import new_record
from weakspot.testing.planted import phrase_embeddings, plant, rare

CRITERION = FailureCriterion()
METHODS = (
    "directions",
    "attributes",
    "keywords",
    "hypothesis",
    "uncommon-attributes",
    "mixture",
    "spotlight",
    "confidence",
    "loss",
)
SETTINGS = Settings(
    discover=DiscoverSettings(
        methods=METHODS, parameters={"hypothesis": {"phrases": {"disc": ["green"]}}}
    ),
    verify=VerifySettings(splits=("validation", "test")),
)


def _refusing(_prompt, _schema):
    raise ModelError("The language model did not answer in time.")


ASKING = Assistants(embed_texts=phrase_embeddings)
SILENT = Assistants(
    embed_texts=phrase_embeddings, captions=lambda rows: [""] * len(rows), propose=_refusing
)


@pytest.fixture(scope="module")
def samples() -> SampleSet:
    world = plant(rare(0.02), 900, seed=2)
    return world.samples().only(np.arange(len(world)))


def _run(samples, assistants=ASKING):
    record = new_record(SETTINGS, inputs={}, criterion="wrong")
    record = loop.discover_slices(record, samples, SETTINGS, CRITERION, assistants)
    record = describe_slices(record, samples, SETTINGS, CRITERION, assistants)
    return loop.verify_slices(record, samples, SETTINGS, CRITERION)


def _predicting(samples, predictions):
    n_classes = samples.dataset.n_classes
    probabilities = np.full((len(predictions), n_classes), 0.1 / (n_classes - 1), dtype=np.float32)
    probabilities[np.arange(len(predictions)), predictions] = 0.9
    return replace(
        samples,
        dataset=samples.dataset.with_predictions(
            predictions=predictions, probabilities=probabilities
        ),
    )


def _with_embeddings(samples, embeddings):
    return replace(
        samples,
        spaces={**samples.spaces, "clip": replace(samples.space("clip"), embeddings=embeddings)},
    )


def _spoken_of(record):
    return {note.class_name for note in record.notes} | {
        found.class_name for found in record.slices
    }


def test_discover__a_class_with_one_sample(samples):
    labels = samples.dataset.labels
    rows = np.array(
        [
            row
            for row in samples.rows
            if labels[row] != 1 or row == int(np.flatnonzero(labels == 1)[0])
        ]
    )
    record = _run(replace(samples, rows=rows, dataset=samples.dataset))
    assert "disc" in _spoken_of(record)


def test_discover__all_right(samples):
    record = _run(_predicting(samples, samples.dataset.labels.copy()))
    assert record.published() == ()
    assert set(samples.dataset.class_names) <= _spoken_of(record)
    assert record.slices == ()


def test_discover__all_wrong(samples):
    record = _run(_predicting(samples, (samples.dataset.labels + 1) % 4))
    assert record.published() == ()
    assert set(samples.dataset.class_names) <= _spoken_of(record)


def test_discover__constant_embeddings(samples):
    constant = np.tile(samples.space("clip").embeddings[:1], (len(samples.dataset), 1))
    record = _run(_with_embeddings(samples, constant))
    assert set(samples.dataset.class_names) <= _spoken_of(record)
    assert all(found.method == "attributes" for found, _ in record.published())


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_discover__samples_without_embeddings(samples, share):
    embeddings = samples.space("clip").embeddings.copy()
    embeddings[np.random.default_rng(0).random(len(embeddings)) < share] = np.nan
    record = _run(_with_embeddings(samples, embeddings))
    assert set(samples.dataset.class_names) <= _spoken_of(record)
    used = {found.method for found in record.slices}
    assert ("directions" in used) == (share < 1.0)


@pytest.mark.parametrize("n_values", [1, 10_000])
def test_discover__attributes_with_one_value_or_far_too_many(samples, n_values):
    values = [f"value {row % n_values}" for row in range(len(samples.dataset))]
    bare = samples.dataset.with_metadata({"odd": values})
    record = _run(replace(samples, dataset=bare))
    assert not any("odd" in found.rule.columns for found in record.slices)
    assert any("odd" in note.note for note in record.notes)


def test_discover__assistants_that_are_of_no_use(samples):
    record = _run(samples, SILENT)
    assert set(samples.dataset.class_names) <= _spoken_of(record)
    assert any("disc" in found.class_name for found, _ in record.published())


class _Chatter(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        content = (
            b'{"choices": [{"message": {"content": "Sure! Here are some ideas: colours, maybe?"}}]}'
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def chatter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chatter)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("is_there", [True, False])
def test_project__a_language_model_that_talks_nonsense_or_is_gone(
    samples, chatter, tmp_path, is_there
):
    world = plant(rare(0.02), 240, seed=2)
    manifest = world.write_images(tmp_path / "world").manifest
    url = chatter if is_there else "http://127.0.0.1:9/v1"
    options = {"url": url, "model": "chatty", "n_retries": 0, "timeout_seconds": 2.0}
    settings = SETTINGS.model_copy(
        update={"language": PartSettings(name="endpoint", options=options)}
    )
    settings = settings.model_copy(
        update={"attributes": settings.attributes.model_copy(update={"task": "sort shapes"})}
    )
    project = Project.create(tmp_path / "project", data=str(manifest), settings=settings)
    project = Project(
        project.folder, project.settings, embedder=_embedder(), classifier=_classifier(world)
    )
    project.ingest()
    record = project.discover()
    assert project.verify().evidence is not None
    told = " ".join(
        [stage.summary for stage in record.stages] + [note.note for note in record.notes]
    )
    assert "language model" in told


def _embedder():
    from weakspot.testing.fakes import PlantedEmbedder

    return PlantedEmbedder()


def _classifier(world):
    from weakspot.testing.fakes import planted_classifier

    return planted_classifier(world)
