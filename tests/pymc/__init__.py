"""Tests of PyMC on symcomp: `make pymc`. Without PyMC they are skipped."""
