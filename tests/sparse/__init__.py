"""Tests of symcomp.sparse."""
