"""Configuration of the documentation: Markdown pages and the docstrings of the public modules."""

from importlib.metadata import version as version_of

project = "symcomp"
author = "symcomp developers"
copyright = f"2026, {author}"
release = version = version_of("symcomp")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
# Many ops have a field of the same name: napoleon's link from it has several targets.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autosummary_generate = True
default_role = "code"

html_theme = "furo"
html_title = "symcomp"
