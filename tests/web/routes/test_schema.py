"""Every route of the schema under generated requests: documented answers only, whatever is sent and whoever sends it.

`WEAKSPOT_FUZZ_EXAMPLES=500` looks longer and with other requests every time.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.python.asgi import get_client
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sqlalchemy import insert
from starlette.testclient import TestClient

from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.auth import login as entering
from weakspot.web.auth import middleware
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import INVITES, StateStore, now, token_hash
from weakspot.web.state.studies import create_study

TOKEN = "the-token-of-the-fuzzing-owner"
HOST = "http://127.0.0.1:8765"
N_EXAMPLES = int(os.environ.get("WEAKSPOT_FUZZ_EXAMPLES", "24"))
UNLIMITED = (1e9, 1e9)
OPEN_TO_ANYONE = {
    "GET /api/health",
    "GET /api/session/present",
    "POST /api/session",
    "POST /api/session/invitation",
}
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def _labels() -> list[str]:
    parts = ServerParts(workspace=None, state=None, jobs=None, owner_token="")  # type: ignore[arg-type]
    schema = schemathesis.openapi.from_dict(create_app(parts).openapi())
    return [found.ok().label for found in schema.get_all_operations()]


LABELS = _labels()


class FuzzedServer:
    """A server, and people with their browsers."""

    def __init__(self, parts: ServerParts) -> None:
        self.app = create_app(parts)
        self.schema = schemathesis.openapi.from_dict(self.app.openapi())
        self.schema.app = self.app
        self.study = create_study(parts.state, title="Shapes", classes=["disc"], instructions="")
        self.invite = secrets.token_urlsafe(16)
        with parts.state.writing() as rows:
            rows.execute(
                insert(INVITES).values(
                    invite_id="fuzz",
                    token_hash=token_hash(self.invite),
                    study_id=self.study.study_id,
                    role="annotator",
                    uses=10**6,
                    uses_left=10**6,
                    created=now(),
                    expires=now() + timedelta(days=1),
                )
            )
        record = parts.workspace.record()
        assert record is not None
        self.known = {
            "slice_id": [found.slice_id for found in record.slices[:2]],
            "run_id": [record.run_id],
            "study_id": [self.study.study_id],
            "title": ["disc"],
            "class_title": ["disc"],
            "class_name": ["disc"],
            "phrase": ["green"],
            "tables": [parts.workspace.tables_key],
            "row": [int(row) for row in parts.workspace.discovery.rows[:3]],
            "rows": [[int(row) for row in parts.workspace.discovery.rows[:3]]],
        }

    def headers(self, entry: Mapping[str, str] | None) -> dict[str, str]:
        """Return the headers of a browser with which somebody came in, or of one with which nobody did."""
        if entry is None:
            return {}
        client = TestClient(self.app, base_url=HOST)
        answer = client.post("/api/session", json=entry)
        assert answer.status_code == 200, answer.text
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        return {"Cookie": cookies, "X-CSRF-Token": answer.json()["csrf_token"]}

    def check(
        self,
        label: str,
        entry: Mapping[str, str] | None,
        *,
        n_examples: int,
        statuses: set[int] | None = None,
    ) -> None:
        """Send generated requests of one route as one person."""
        operation = self.schema.find_operation_by_label(label)
        assert operation is not None
        headers = self.headers(entry)

        @settings(
            max_examples=n_examples,
            derandomize="WEAKSPOT_FUZZ_EXAMPLES" not in os.environ,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(case=self._requests(operation))
        def send(case):
            nonlocal headers
            with get_client(self.app) as client:
                answer = case.call(base_url=HOST, session=client, headers=headers)
            case.validate_response(answer, checks=CHECKS)
            assert statuses is None or answer.status_code in statuses, (
                f"{answer.status_code}: {answer.text}"
            )
            if label == "DELETE /api/session" and answer.status_code == 200:
                headers = self.headers(entry)

        send()

    def _requests(self, operation):
        wild = st.one_of(
            operation.as_strategy(GenerationMode.POSITIVE),
            operation.as_strategy(GenerationMode.NEGATIVE),
        )
        tame = operation.as_strategy(GenerationMode.POSITIVE)
        return st.one_of(wild, st.builds(self._with_known, tame, st.randoms(use_true_random=False)))

    def _with_known(self, case, random):
        """Return a request about things that exist, so that more than the refusal of unknown things is reached."""
        for name in ("path_parameters", "query", "body"):
            setattr(case, name, self._replaced(getattr(case, name), random))
        return case

    def _replaced(self, value, random):
        if isinstance(value, dict):
            return {
                key: random.choice(self.known[key])
                if key in self.known and found is not None
                else self._replaced(found, random)
                for key, found in value.items()
            }
        return [self._replaced(one, random) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def server(planted_folder, tmp_path_factory) -> Iterator[FuzzedServer]:
    folder = shutil.copytree(planted_folder, tmp_path_factory.mktemp("fuzzed") / "shapes")
    project = Project.open(folder)
    state = StateStore.beside(project.store.data)
    # Work is accepted and queued as ever, but what is started for it ends at once.
    jobs = JobRunner(folder, state, command=("true",))
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((middleware, "REQUESTS"), (middleware, "IMAGES"), (entering, "TRIES")):
            patch.setattr(module, name, UNLIMITED)
        yield FuzzedServer(
            ServerParts(workspace=Workspace(project), state=state, jobs=jobs, owner_token=TOKEN)
        )
    jobs.close()
    state.close()


@pytest.mark.parametrize("label", LABELS)
def test_schema__owner_sends_anything__documented_answers_only(server, label):
    server.check(label, {"token": TOKEN}, n_examples=N_EXAMPLES)


@pytest.mark.parametrize("label", LABELS)
def test_schema__annotator_sends_anything__documented_answers_only(server, label):
    server.check(
        label, {"invite": server.invite, "name": "Ada"}, n_examples=max(4, N_EXAMPLES // 4)
    )


@pytest.mark.parametrize("label", [label for label in LABELS if label not in OPEN_TO_ANYONE])
def test_schema__nobody_came_in__refused(server, label):
    server.check(label, None, n_examples=max(3, N_EXAMPLES // 8), statuses={401, 403})
