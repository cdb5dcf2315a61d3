"""Configuration of the documentation: Markdown pages and the docstrings of the public modules."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))  # the extensions of this folder

project = "symcomp"
author = "symcomp developers"
copyright = f"2026, {author}"
release = version = version_of("symcomp")

extensions = [
    "file_tables",
    "function_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
# Many ops have a field of the same name: napoleon's link from it has several targets.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"
# Methods stay out of the sidebar, which every page repeats.
toc_object_entries = False

html_theme = "furo"
pygments_style, pygments_dark_style = "friendly", "monokai"
html_title = "symcomp"
html_static_path = ["_static"]
html_css_files = ["site.css"]


def without_last_line(app: Sphinx, page: nodes.document) -> None:
    """Drop the empty line that ends each session: the tests need it, readers do not."""
    for block in page.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")
        block.children[:] = [nodes.Text(text)]
        block.rawsource = text  # Sphinx highlights a block only if this is its text


def setup(app: Sphinx) -> None:
    """Register the function above."""
    app.connect("doctree-read", without_last_line)
