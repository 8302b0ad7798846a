"""The tools, one table for all doors: MCP, HTTP, OpenAI, LangChain and the command line."""

from __future__ import annotations

from ragistry.tools.fetch import FETCH
from ragistry.tools.find import SEARCH
from ragistry.tools.grep import GREP
from ragistry.tools.outline import OUTLINE
from ragistry.tools.quotes import CHECK_QUOTES
from ragistry.tools.read import READ
from ragistry.tools.search import SEARCH_LIBRARY
from ragistry.tools.sources import SOURCES

READING = {one.name: one for one in (GREP, READ, OUTLINE, SOURCES, CHECK_QUOTES)}
"""The tools that read texts. Every door has them."""
TOOLS = {one.name: one for one in (SEARCH_LIBRARY, SEARCH, FETCH)} | READING
"""All tools, as MCP lists them."""
