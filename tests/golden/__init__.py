"""Golden files: what the compiler makes of about seventy functions, as text that is reviewed.

`functions/` builds them, `sections.py` prints them, and `<name>.txt` holds the text of each.
`make golden` writes the files again; a change of the compiler then shows as a diff of these files.
"""
