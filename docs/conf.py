"""How the documentation is built."""

from __future__ import annotations

import logging
from importlib import metadata

project = "Heald"
author = "Heald contributors"
copyright = author  # noqa: A001  Sphinx's name for it
release = version = metadata.version("heald")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx_click",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

# No other project's inventory is fetched, so only a reference into our own packages can be checked.
nitpick_ignore_regex = [("py:.*", r"(?!heald).*")]
# A section may have no page yet. Sphinx gives that warning no type to suppress it by.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)

html_theme = "furo"
html_title = "Heald"
