# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML as people mean it: a key that occurs twice is a mistake, ``-1:1`` and ``2026-01-31`` are texts.

YAML 1.1, which PyYAML follows, reads ``-1:1`` as a number with base 60 (-61), and the shape ``0x10`` as 16.
PyYAML takes the last one of several equal keys without a word, so that after a careless merge models would
silently be missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

_INT, _FLOAT, _TIMESTAMP = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))
_MERGE = "tag:yaml.org,2002:merge"
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][\d_]*)$")
_NUMBER = re.compile(
    r"(?:[-+]?\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|[-+]?\.[\d_]+(?:[eE][-+]\d+)?|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN))$"
)


class RepeatedKeyError(yaml.MarkedYAMLError):
    """A mapping has a key twice."""


class _Loader(yaml.SafeLoader):
    pass


_Loader.yaml_implicit_resolvers = {
    first: [item for item in resolvers if item[0] not in (_INT, _FLOAT, _TIMESTAMP)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_FLOAT, _NUMBER, list("-+0123456789."))
_Loader.add_implicit_resolver(_INT, _INTEGER, list("-+0123456789"))


def read(text: str) -> Any:
    """The document; raises YAMLError, ValueError or RecursionError."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _refuse_repeated_keys(root)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def position(text: str, path: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column, from 1, of the key or list item that ``path`` leads to, or of the last part of it."""
    node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    mark = None
    for part in path:
        following = None
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            following = node.value[part]
            mark = following.start_mark
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    following, mark = value, key.start_mark
        if following is None:
            break
        node = following
    return (mark.line + 1, mark.column + 1) if mark else None


def _refuse_repeated_keys(root: yaml.Node) -> None:
    waiting, visited = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited:  # an alias
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        if isinstance(node, yaml.MappingNode):
            found: set[tuple[str, str]] = set()
            for key, value in node.value:
                waiting += [key, value]
                if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                    continue
                if (key.tag, key.value) in found:
                    problem = f"the key {key.value!r} occurs twice"
                    raise RepeatedKeyError(problem=problem, problem_mark=key.start_mark)
                found.add((key.tag, key.value))
