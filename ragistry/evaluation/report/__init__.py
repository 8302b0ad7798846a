"""Reports: one content, shown in a terminal, as Markdown and as HTML."""
