"""Tests of the No-U-Turn sampler."""
