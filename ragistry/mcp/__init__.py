"""The library over the Model Context Protocol (``ragistry mcp``). It needs the extra ``mcp``."""
