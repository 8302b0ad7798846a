"""Routes of the tools that read texts, one for each."""

from __future__ import annotations

from typing import Any

from pydantic import create_model
from starlette.requests import Request

from ragistry.server.route import caller_of, needs, new_router, served_by
from ragistry.server.schemas import RequestModel, fields_of
from ragistry.tools.tool import Tool
from ragistry.tools.toolbox import READING

router = new_router()


def _add(tool: Tool) -> None:
    body_type: Any = create_model(f"{tool.request.__name__}Body", __base__=RequestModel, **fields_of(tool.request))

    def run(request: Request, body: Any) -> Any:
        reach = caller_of(request).reach(served_by(request).workspace.library)
        return tool.run(reach, tool.request(**dict(body)))

    run.__annotations__ = {"request": Request, "body": body_type, "return": Any}
    run.__doc__ = tool.description
    run.__name__ = tool.name
    router.post(f"/tools/{tool.name}", response_model=tool.answer, openapi_extra=needs("read", bounded=True))(run)


for _one in READING.values():
    _add(_one)
