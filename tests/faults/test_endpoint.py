"""An endpoint that goes away, drops, trickles, refuses or talks nonsense half-way: what is said; nothing is asked twice."""

import pytest
from tests.build import planted_project
from tests.faults.moody_server import MOODS, MoodyServer

from weakspot.core.errors import ModelError, UnavailableError
from weakspot.models.endpoint.predictions import EndpointClassifier
from weakspot.project.project import Project

N_SAMPLES = 60
SENTENCES = {
    "down": "did not answer in 2 attempts",
    "drops": "did not answer in 2 attempts",
    "trickles headers": "the answer was not complete after",
    "trickles the body": "the answer was not complete after",
    "429": "status 429",
    "500": "status 500",
    "503": "status 503",
    "nonsense": "JSON",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return planted_project(tmp_path_factory.mktemp("endpoint"), N_SAMPLES).folder


@pytest.fixture
def project_at(folder):
    made = []

    def build(server, version):
        url = f"http://127.0.0.1:{server.port}/predict"
        options = {
            "version": version,
            "batch_size": 4,
            "concurrency": 1,
            "n_retries": 1,
            "first_wait_seconds": 0.0,
        }
        made.append(
            EndpointClassifier(
                url=url,
                class_names=("disc", "square", "star", "triangle"),
                timeout_seconds=0.6,
                **options,
            )
        )
        return Project.open(folder, classifier=made[-1])

    yield build
    for classifier in made:
        classifier.close()


@pytest.mark.parametrize("mood", MOODS)
def test_classify__endpoint_in_a_bad_mood__says_so_and_goes_on_where_it_was(project_at, mood):
    server = MoodyServer(24, mood)
    try:
        with pytest.raises((UnavailableError, ModelError)) as refused:
            project_at(server, mood).embed()
        assert SENTENCES[mood] in str(refused.value)
        assert refused.value.exit_code == 2
        assert f"127.0.0.1:{server.port}" in str(refused.value.where)
        server.recover()
        summary = project_at(server, mood).embed()
        assert summary.n_predictions == N_SAMPLES
        assert server.n_answered - 24 == summary.n_new_predictions
    finally:
        server.close()
