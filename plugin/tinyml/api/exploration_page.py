# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An exploration as one self-contained page: plots, the suggestion, and a table of all points."""

from __future__ import annotations

from markupsafe import Markup

from tinyml.api.exploration import Exploration
from tinyml.base.templates import environment


def page(explored: Exploration) -> str:
    templates = environment("api", escaped=True)
    templates.filters["number"] = lambda value: f"{value:,}"
    shown = sorted(explored.points, key=lambda point: (point.precision, not point.best, point.costs()))
    return templates.get_template("exploration.html.j2").render(
        explored=explored,
        suggested=explored.suggested,
        points=shown,
        ram=Markup(explored.plot("ram")),  # escaped where it is drawn
        flash=Markup(explored.plot("flash")),
    )
