"""Tests of the PyTensor backend: `make pymc`. Without PyTensor they are skipped."""
