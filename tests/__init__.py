"""The tests, one folder per layer; `tiny` is the smoke test that takes seconds."""
