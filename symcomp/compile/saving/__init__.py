"""Save graphs and functions in files that run no code when they are loaded."""
