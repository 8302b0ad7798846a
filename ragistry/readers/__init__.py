"""Read documents: text with places from each format."""
