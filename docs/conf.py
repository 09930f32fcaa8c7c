"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import re
from typing import Any

import dualgap

project = "dualgap"
author = "The dualgap developers"
copyright = "the dualgap developers"
version = release = dualgap.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "examples/*"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r".*")]  # types of other projects: nothing is fetched to resolve them
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "dualgap"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Examples in the guide: run by `make docs`. Warnings are errors, so that no example teaches a bad habit.
doctest_global_setup = """
import numpy as np
import dualgap
np.set_printoptions(precision=4, suppress=True)
"""

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": "True",
    "min_reported_time": 60,
}


def without_references(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """scikit-learn writes the docstrings of ``set_fit_request`` and its kin; they refer to its own pages."""
    if name.endswith(("_request", "get_metadata_routing")):
        lines[:] = [re.sub(r":(?:ref|term):`([^`<]*?)(?:\s*<[^`>]*>)?`", r"\1", line) for line in lines]


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", without_references)
