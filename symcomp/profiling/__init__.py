"""Profiles of compiled functions: counts, reported as text, data, traces and pages."""
