"""Profiles of compiled functions: what was counted, as text, data, traces and pages."""
