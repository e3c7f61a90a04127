"""A project by the Model Context Protocol, with the client of the package itself: from what is wrong to proven to exported."""

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from mcp import Client, StdioServerParameters
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.tools.agents import ProjectTools, build_server, with_token

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def project(fruit_folder, tmp_path):
    return shutil.copytree(fruit_folder, tmp_path / "fruit")


def talk(server, conversation):
    """Run a conversation with a server and return what it returns."""

    async def whole():
        async with Client(server) as client:
            return await conversation(client)

    # In a thread of its own: a browser's loop may be running in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, whole).result()


def told(result):
    assert not result.is_error, result
    return json.loads(result.content[0].text)


def test_mcp__a_process__what_is_wrong_then_proven_then_exported(project):
    async def conversation(client):
        names = {tool.name for tool in (await client.list_tools()).tools}
        found = told(await client.call_tool("findings", {}))
        slice_id = found["slices"][0]["slice_id"]
        images = await client.call_tool("images", {"slice_id": slice_id[:8], "n_images": 2})
        measured = told(await client.call_tool("evidence", {"slice_id": slice_id}))
        asked = told(
            await client.call_tool("ask", {"phrase": "kind = green", "class_name": "apple"})
        )
        again = told(await client.call_tool("ask", {"phrase": "kind = red", "class_name": "apple"}))
        written = told(await client.call_tool("export", {"to": "label-studio", "out": "tasks"}))
        return names, found, images, measured, asked, again, written

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "weakspot", "mcp", "-p", str(project)]
    )
    names, found, images, measured, asked, again, written = talk(command, conversation)

    assert names == {"findings", "evidence", "images", "ask", "run", "check", "export"}
    assert found["slices"][0]["class"] == "apple"
    assert [part.type for part in images.content].count("image") == 4
    assert measured["verdict"] == "confirmed"
    assert measured["evidence"]["q_value"] <= 0.05
    # The run has spent most of the error rate: 16 % against none is said, and not called proven.
    assert asked["held_out"]["inside"]["value"] > asked["held_out"]["outside"]["value"] == 0
    assert asked["p_value"] < 0.05 < asked["p_over_everything_asked"]
    assert asked["answer"] == "cannot tell"
    assert "no difference is proven" in asked["advice"]
    assert again["left"] != asked["left"]
    assert (project / "tasks").is_dir()
    assert written["files"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("evidence", {"slice_id": "nothing"}, "no slice"),
        ("images", {"slice_id": ""}, "of this id"),
        ("ask", {"phrase": "green"}, "no class"),
        ("export", {"to": "excel", "out": "x"}, "Choose among"),
        ("export", {"to": "coco", "out": "../outside"}, "out of the project folder"),
        ("check", {"policy": "/etc/passwd"}, "out of the project folder"),
        ("check", {"policy": "none.toml"}, "policy"),
        ("export", {"to": "coco", "out": "a\0b"}, "out of the project folder"),
        ("export", {"to": "coco", "out": ".weakspot/runs"}, "its own files"),
        ("export", {"to": "coco", "out": "."}, "its own files"),
    ],
)
def test_mcp__bad_requests__are_told_and_nothing_breaks(project, tool, arguments, said):
    async def conversation(client):
        wrong = await client.call_tool(tool, arguments)
        return wrong, await client.call_tool("findings", {})

    wrong, right = talk(build_server(project), conversation)

    assert wrong.is_error
    assert said in wrong.content[0].text
    assert told(right)["slices"]


def test_images__of_a_rule_that_was_made_without_predictions__are_shown(project):
    tools = ProjectTools(project)
    record = Project.open(project).run_record()
    (found, *_), *_ = record.published()
    unread = found.found_on.model_copy(update={"n_samples": 0, "digest": "of no samples"})
    blind = record.model_copy(
        update={
            "slices": tuple(one.model_copy(update={"found_on": unread}) for one in record.slices)
        }
    )
    Project.open(project).store.runs.save(blind)

    shown = tools.images(found.slice_id, -3)

    assert [len(images) for images in shown.values()] == [1, 1]


def test_with_token__http__only_those_who_have_it(project):
    app = build_server(project).streamable_http_app(json_response=True)
    order = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    with TestClient(app):  # starts what the application needs
        guarded = TestClient(with_token(app, TOKEN), base_url="http://127.0.0.1:8000")
        wrong = guarded.post("/mcp", json=order, headers=accepts)
        false = guarded.post(
            "/mcp", json=order, headers={**accepts, "Authorization": f"Bearer {TOKEN}x"}
        )
        right = guarded.post(
            "/mcp", json=order, headers={**accepts, "Authorization": f"Bearer {TOKEN}"}
        )
    assert (wrong.status_code, false.status_code) == (401, 401)
    assert right.status_code == 200
    assert right.json()["result"]["serverInfo"]["name"] == "weakspot"


@pytest.mark.parametrize("token", ["", "short"])
def test_with_token__no_token__nothing_is_served(token):
    with pytest.raises(ConfigError, match="WEAKSPOT_TOKEN"):
        with_token(None, token)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"bearer {TOKEN}", 200),
        (f"Bearer  {TOKEN}", 200),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
    ],
)
def test_with_token__how_a_token_is_sent(header, status):
    app = with_token(PlainTextResponse("here"), TOKEN)
    assert TestClient(app).get("/", headers={"Authorization": header}).status_code == status
