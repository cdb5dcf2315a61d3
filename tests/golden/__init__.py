"""Golden files: graphs, programs and kernels of about a hundred functions, as reviewed text.

`functions/` builds them, `sections.py` prints them, and `<name>.txt` holds the text of each.
`make golden` writes the files again; a change of the compiler then shows as a diff of these files.
"""
