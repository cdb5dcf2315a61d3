"""The smoke test: seconds, and it tells whether the rest is worth running."""
