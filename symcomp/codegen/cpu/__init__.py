"""Schedules for processors: from the nest of a formula to LoopIR."""
