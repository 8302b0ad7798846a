"""The tools that read texts over HTTP, within the collections of a token, and through the client."""

from __future__ import annotations

from pathlib import Path

from ragistry import Workspace
from ragistry.server.access import Tokens
from ragistry.tools.toolbox import READING
from tests.server.conftest import serving


def test_each_tool_is_a_route_within_the_collections_of_the_token(workspace: Workspace, filled_copy: Path) -> None:
    tokens = Tokens(filled_copy)
    secret = tokens.add("agent", ["read"], ["tea"])
    with serving(workspace) as client:
        headers = {"Authorization": f"Bearer {secret}"}

        def call(name: str, **arguments: object) -> tuple[int, str]:
            answer = client.post(f"/v1/tools/{name}", json=arguments, headers=headers)
            return answer.status_code, answer.text

        assert "green.txt" in call("grep", pattern="green tea")[1]
        assert call("grep", pattern="cold front")[1].count("source") == 1
        assert call("read", source="leaves/green.txt")[0] == 200
        assert call("read", source="fronts.txt")[0] == 400
        assert call("outline", source="green.txt")[0] == 200
        assert "fronts" not in call("sources")[1]
        assert call("grep", pattern="x", collection="weather")[0] == 400
        assert call("shell", pattern="x")[0] == 404
        assert client.post("/v1/tools/grep", json={"pattern": "x"}).status_code == 401
        paths = client.get("/openapi.json", headers=headers).json()["paths"]
        assert {f"/v1/tools/{name}" for name in READING} <= set(paths)
