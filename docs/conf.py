# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation site. `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import gc
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.search.en import SearchEnglish

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# `tools.docs` builds from a copy next to generated pages; it says where the repository is.
REPOSITORY = Path((Path(__file__).parent / "repository.txt").read_text().strip())
sys.path[:0] = [str(REPOSITORY / "plugin"), str(REPOSITORY)]

from tinyml import __version__  # noqa: E402 (found by the line above)

project = "west-tinyml"
author = "The west-tinyml contributors"
copyright = author  # the name that Sphinx reads
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
smartquotes = False  # options begin with two hyphens
html_theme = "furo"
html_title = f"west-tinyml {version}"
html_logo = html_favicon = "figures/logo.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0f766e", "color-brand-content": "#0f766e"},
    "dark_css_variables": {"color-brand-primary": "#2dd4bf", "color-brand-content": "#5eead4"},
}
html_extra_path = ["published"]  # files that are no pages
exclude_patterns = [
    "static",
    "published",
    "repository.txt",
    "external_module.rst",
]  # the latter: for Zephyr's own site
autodoc_typehints = "none"  # `types_of_parameters` writes them as the code does
suppress_warnings = ["misc.highlighting_failure"]  # consoles and Kconfig in code blocks

SOURCES = "https://github.com/<owner>/west-tinyml/blob/main"
"""Pages link to files of the repository by relative paths, as code hosts show them."""


WHOLE = re.compile(r"(\S*\w-\w\S*)")
"""A word with a hyphen."""
LONGEST_WHOLE = 24
"""Longer words, such as names of packages, may break."""


def setup(app: Sphinx) -> None:
    # A build takes a fifth less time: trees of pages live until it ends, and words of its search are few.
    gc.freeze()
    gc.set_threshold(200_000)
    SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign]
    app.connect("source-read", link_to_the_repository)
    app.connect("autodoc-process-docstring", types_of_parameters)
    app.connect("doctree-read", whole_words_in_cells)


def whole_words_in_cells(app: Sphinx, tree: nodes.document) -> None:
    """Narrow columns break between words, not inside `cortex-m4`."""
    for entry in tree.findall(nodes.entry):
        for words in list(entry.findall(nodes.Text)):
            if WHOLE.search(words) and not isinstance(words.parent, nodes.literal):
                parts = enumerate(WHOLE.split(words))
                words.parent.replace(
                    words, [_whole(part) if i % 2 else nodes.Text(part) for i, part in parts]
                )


def _whole(word: str) -> nodes.Node:
    return nodes.inline("", word, classes=["whole"]) if len(word) <= LONGEST_WHOLE else nodes.Text(word)


def types_of_parameters(
    app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """The types of parameters and of the result, with the short names that the code has for them."""
    if not inspect.isfunction(found):
        return
    signature = inspect.signature(found)
    lines += [
        f":type {parameter.name}: {parameter.annotation}"
        for parameter in signature.parameters.values()
        if parameter.name != "self" and parameter.annotation is not parameter.empty
    ]
    if signature.return_annotation not in (signature.empty, "None"):
        lines.append(f":rtype: {signature.return_annotation}")
    lines.append("")


def link_to_the_repository(app: Sphinx, name: str, source: list[Any]) -> None:
    source[0] = re.sub(r"\]\((?:\.\./)+(?!adr/|[A-Za-z_]+\.md)([^)]+)\)", rf"]({SOURCES}/\1)", source[0])
    source[0] = source[0].replace("](external_module.rst)", f"]({SOURCES}/docs/external_module.rst)")


linkcheck_ignore = [r"https://github\.com/%3Cowner%3E/"]  # wherever a copy of the repository is
