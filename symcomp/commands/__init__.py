"""What ``python -m symcomp`` does: a module for each command.

A command has ``HELP``, one line; ``add_arguments(parser)``; and ``run(options)``, which returns the
exit status.
"""
