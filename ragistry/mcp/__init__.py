"""The library for agents, over the Model Context Protocol: ``ragistry mcp``. Needs the extra ``mcp``."""
