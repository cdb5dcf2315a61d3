"""The commands of ``python -m symcomp``: a module each, with SUMMARY, add_arguments and run."""
