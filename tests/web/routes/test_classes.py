import base64

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.web.conftest import entered
from weakspot.app.looks import LookLog
from weakspot.core.error_score import score_at
from weakspot.web.application import create_app
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import now
from weakspot.web.state.studies import create_study
from weakspot.web.state.tables import PersonRow


def test_probe(owner, parts):
    print(owner.get("/api/classes").json())
    print(owner.get("/api/classes/samples", params={"title": "disc"}).json().keys())
    a = owner.post("/api/classes/phrase", json={"title": "disc", "phrase": "green", "is_submitted": True}).json()
    a["similarities"] = len(a["similarities"]); print(a)
    print(owner.get("/api/classes/suggestions", params={"title": "disc"}).json())
    print(owner.post("/api/classes/check", json={"title": "disc", "phrase": "green"}).json())
    r = owner.post("/api/classes/accept", json={"title": "disc", "phrase": "green", "threshold": a["threshold"]}); print(r.text)
    print(owner.get("/api/classes/history", params={"title": "disc"}).json())
    print(owner.get("/api/samples/3", params={"tables": parts.workspace.tables_key}).json())
    p = owner.get("/api/pictures/3", params={"tables": parts.workspace.tables_key, "side": 100}); print(p.status_code, p.headers, len(p.content))
