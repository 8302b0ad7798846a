"""Reports: one content (`tables`), laid out for a terminal, as Markdown and as HTML."""
