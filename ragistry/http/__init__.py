"""Parts that the server, the page and MCP over HTTP share: middleware, background jobs, error responses."""
