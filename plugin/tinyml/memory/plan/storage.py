# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which tensors share memory: views of one another, outputs written over an input, updates of states.

Tensors that share form a rigid group. Two tensors of a group may overlap if they are never live at the same
time, if the bytes have the same content (see ``content``), or if one is computed over the other, at a
distance that the kernel allows, at the step where the other is read for the last time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import Graph, Layer, Tensor, View
from tinyml.memory.plan.content import Content, contents, part
from tinyml.memory.plan.moving import Moves
from tinyml.memory.plan.regions import Home, Region
from tinyml.ops.framework.kernel import Overlay


@dataclass(frozen=True, eq=False)
class Member:
    """A tensor with the steps at which it is live and the content of its bytes."""

    tensor: Tensor
    first: int
    last: int
    content: Content
    alignment: int = 1  # in bytes, if a kernel requires more than that of an element


@dataclass(eq=False)
class Group:
    """Tensors at fixed distances: members by name with their offsets, which may be negative for a while."""

    offsets: dict[str, int]
    start: int  # of the first byte
    end: int  # after the last byte
    alignment: int  # the largest of all members; each is aligned to its own, counted from the start
    by_last: list[tuple[int, str]]  # the members, ordered by the step at which they are needed last
    home: Home | None = None  # memory outside the arena that the group must be in

    @staticmethod
    def of(name: str, member: Member) -> Group:
        tensor = member.tensor
        alignment = max(tensor.dtype.bytes, member.alignment)
        return Group({name: 0}, 0, tensor.bytes, alignment, [(member.last, name)])

    def copy(self) -> Group:
        return Group(dict(self.offsets), self.start, self.end, self.alignment, [*self.by_last], self.home)

    def needed_from(self, step: int) -> list[str]:
        """Members that are needed at a step or later."""
        return [name for _, name in self.by_last[bisect_left(self.by_last, (step, "")) :]]


@dataclass
class Storage:
    """All groups, and for each tensor its group. Constants are not in it."""

    members: dict[str, Member]
    over: Mapping[tuple[str, str], tuple[Overlay, ...]] = field(default_factory=dict)  # input and output
    groups: dict[str, Group] = field(default_factory=dict)
    copied: frozenset[tuple[str, str]] = frozenset()  # operands that a layer copies into its output, and that
    moves: Moves = field(default_factory=lambda: Moves(()))

    def position(self, name: str) -> int:
        return self.groups[name].offsets[name]

    def overlaid(self) -> dict[tuple[str, str], Overlay]:
        """Inputs and outputs that do overlap, and how."""
        together = (pair for pair in self.over if self.groups[pair[0]] is self.groups[pair[1]])
        found = {(x, y): self.allowed(x, y, self.position(y) - self.position(x)) for x, y in together}
        return {pair: overlay for pair, overlay in found.items() if overlay is not None}

    def allowed(self, x: str, y: str, distance: int) -> Overlay | None:
        """The way in which y may be computed over x at a distance, if there is one."""
        overlays = self.over.get((x, y), ())
        return next((overlay for overlay in overlays if overlay.distance == distance), None)

    def copy(self) -> Storage:
        """The same sharing, to go on from."""
        copies = {id(group): group.copy() for group in self.unique_groups()}
        groups = {name: copies[id(group)] for name, group in self.groups.items()}
        return replace(self, groups=groups)

    def unique_groups(self) -> list[Group]:
        return list({id(group): group for group in self.groups.values()}.values())


def share(
    graph: Graph,
    layers: Sequence[Layer],
    members: dict[str, Member],
    pairs: Mapping[tuple[str, str], tuple[Overlay, ...]],
    homes: Sequence[Home] = (),
) -> Storage:
    """Decide sharing that saves a copy: states, then views. ``computed_in_place`` goes on from there.

    The next value of a state is written directly into the state if the old one is no longer read; even a
    copy of a part of another tensor costs no more there than a copy at the end of the run. ``pairs`` are the
    inputs that an output may overwrite, and how (see ``overlay_pairs``).
    """
    storage = Storage(members, pairs, copied=_copied(layers), moves=Moves(layers))
    for name in storage.members:
        storage.groups[name] = Group.of(name, members[name])
    for home in homes:
        storage.groups[home.tensor].home = home
    for state in graph.states:
        if state.update != state.tensor and state.update not in graph.outputs:
            _join(storage, state.tensor, state.update, 0)
    for layer in layers:
        for view in _views(storage, layer):
            _join(storage, view.outer, view.inner, view.offset_bytes)
    return storage


def computed_in_place(shared: Storage, apart: frozenset[tuple[str, str]]) -> Storage:
    """Let outputs overwrite inputs too, except for the pairs in ``apart``. Leaves ``shared`` as it is."""
    storage = shared.copy()
    for (x, y), possible in storage.over.items():
        if (x, y) in apart:
            continue
        for overlay in sorted(possible, key=lambda way: _joined_bytes(storage, x, y, way.distance)):
            if _join(storage, x, y, overlay.distance):
                break
    return storage


def members_of(graph: Graph, layers: Sequence[Layer], alignments: Mapping[str, int]) -> dict[str, Member]:
    """Every tensor that needs RAM. Step 0 is the first layer; after the last one comes one more step.

    ``alignments``: of tensors for which kernels require more than that of an element.
    """
    end = len(layers)
    last_use: dict[str, int] = {}
    for step, layer in enumerate(layers):
        last_use.update({t.name: step for t in layer.inputs if t is not None})
    last_use.update(dict.fromkeys(graph.kept(), end))
    sources = [graph.tensors[name] for name in (*graph.inputs, *(state.tensor for state in graph.states))]
    meaning = contents(sources, layers)
    firsts = dict.fromkeys((t.name for t in sources), 0)
    firsts |= {t.name: step for step, layer in enumerate(layers) for t in layer.outputs}
    tensors = (*sources, *(t for layer in layers for t in layer.outputs))
    return {
        t.name: Member(
            t,
            firsts[t.name],
            last_use.get(t.name, firsts[t.name]),
            meaning[t.name],
            alignments.get(t.name, 1),
        )
        for t in tensors
    }


def overlay_pairs(
    layers: Sequence[Layer], overlays: Sequence[tuple[Overlay, ...]]
) -> dict[tuple[str, str], tuple[Overlay, ...]]:
    """Inputs that output 0 may be computed over, in order of execution."""
    pairs: dict[tuple[str, str], tuple[Overlay, ...]] = {}
    for layer, ways in zip(layers, overlays, strict=True):
        operands = [t.name for t in layer.inputs if t is not None]
        for overlay in ways:
            x = layer.input(overlay.input)
            if not x.is_constant and operands.count(x.name) == 1:
                pair = (x.name, layer.outputs[0].name)
                pairs[pair] = (*pairs.get(pair, ()), overlay)
    return pairs


def _copied(layers: Sequence[Layer]) -> frozenset[tuple[str, str]]:
    """Operands that a layer has twice, which cannot be in two places of its output, with that output."""
    found = set()
    for layer in layers:
        operands = [t.name for t in layer.inputs if t is not None and not t.is_constant]
        twice = {name for name in operands if operands.count(name) > 1}
        found |= {(name, y.name) for name in twice for y in layer.outputs if layer.op.views(layer)}
    return frozenset(found)


def _joined_bytes(storage: Storage, anchor: str, other: str, distance: int) -> int:
    """From the first to the last byte of two groups, with ``other`` ``distance`` bytes after ``anchor``."""
    a, b = storage.groups[anchor], storage.groups[other]
    shift = a.offsets[anchor] + distance - b.offsets[other]
    return max(a.end, b.end + shift) - min(a.start, b.start + shift)


def _join(storage: Storage, anchor: str, other: str, distance: int) -> bool:
    """Place ``other`` ``distance`` bytes after ``anchor``, unless there is a conflict."""
    a, b = storage.groups[anchor], storage.groups[other]
    if a is b:
        return False
    shift = a.offsets[anchor] + distance - b.offsets[other]
    if not _aligned(a, b, shift):
        return False
    moved = {name: offset + shift for name, offset in b.offsets.items()}
    if not _home_allows(storage, a, b, moved):
        return False
    if _groups_conflict(storage, a, b, shift) or _moves_conflict(storage, a, b, moved):
        return False
    a.offsets.update(moved)
    a.start, a.end = min(a.start, b.start + shift), max(a.end, b.end + shift)
    a.alignment = max(a.alignment, b.alignment)
    for item in b.by_last:
        insort(a.by_last, item)
    if b.home is not None:  # coordinates count from the start of the home
        base = a.offsets[b.home.tensor]
        a.offsets = {name: offset - base for name, offset in a.offsets.items()}
        a.start, a.end = a.start - base, a.end - base
        a.home = b.home
    for name in moved:
        storage.groups[name] = a
    return True


def _home_allows(storage: Storage, a: Group, b: Group, moved: dict[str, int]) -> bool:
    """Whether the joined group fits into the memory that one of its tensors is bound to."""
    if a.home is None and b.home is None:
        return True
    if a.home is not None and b.home is not None:
        return False
    home = a.home or b.home
    assert home is not None
    bound = storage.members[home.tensor]
    together = {**a.offsets, **moved}
    newcomers = moved if a.home is not None else a.offsets
    base = together[home.tensor]
    for name in newcomers:
        member = storage.members[name]
        if member.alignment > member.tensor.dtype.bytes:
            return False  # outside the arena memory is aligned as its elements are
        if member.tensor.dtype is not bound.tensor.dtype:
            return False  # outside the arena memory is declared with its type
        if not 0 <= together[name] - base <= bound.tensor.bytes - member.tensor.bytes:
            return False
        if home.region is Region.INPUT and not _part_of(member, bound, together[name] - base):
            return False  # the caller's input is never written, so only copies of its bytes live there
        if home.region is Region.STATE and name not in home.may_stay and member.last > home.last_step:
            return False  # the next value of the state would overwrite it
    return True


def _part_of(inner: Member, outer: Member, offset: int) -> bool:
    """Whether all bytes of ``inner`` are those that ``outer`` has at ``offset``."""
    size = inner.tensor.bytes
    return part(outer.content, offset, offset + size) == part(inner.content, 0, size)


def _aligned(a: Group, b: Group, shift: int) -> bool:
    """Elements stay aligned to their size, counted from the first byte of the joined group."""
    start = min(a.start, b.start + shift)
    return (a.start - start) % a.alignment == 0 and (b.start + shift - start) % b.alignment == 0


def _groups_conflict(storage: Storage, a: Group, b: Group, shift: int) -> bool:
    """Whether members of two groups would destroy each other, with ``b`` moved by ``shift`` bytes."""
    if len(b.offsets) > len(a.offsets):  # each member of the smaller group is looked up in the larger
        a, b, shift = b, a, -shift
    return any(_conflicts(storage, a, y, at + shift) for y, at in b.offsets.items())


def _moves_conflict(storage: Storage, a: Group, b: Group, moved: Mapping[str, int]) -> bool:
    """Whether a layer that moves bytes would write where one of its operands is."""
    smaller = a.offsets if len(a.offsets) < len(b.offsets) else b.offsets
    at = ChainMap(dict(moved), a.offsets)
    return any(
        storage.allowed(x, move.output, at[move.output] - at[x]) is None
        for move in storage.moves.of(smaller)
        if move.output in at
        for x in move.overwrites(at)
    )


def _conflicts(storage: Storage, group: Group, y: str, y_at: int) -> bool:
    """Whether a tensor at this place would destroy a member of the group, or the other way round."""
    members, offsets = storage.members, group.offsets
    last, y_end = members[y].last, y_at + members[y].tensor.bytes
    return any(
        members[x].first <= last and offsets[x] < y_end and _conflict(storage, x, y, offsets[x], y_at)
        for x in group.needed_from(members[y].first)
    )


def _conflict(storage: Storage, x: str, y: str, x_at: int, y_at: int) -> bool:
    """Whether two tensors at these places would overwrite each other."""
    a, b = storage.members[x], storage.members[y]
    first, last = max(a.first, b.first), min(a.last, b.last)
    low, high = max(x_at, y_at), min(x_at + a.tensor.bytes, y_at + b.tensor.bytes)
    if first > last or low >= high:
        return False
    if (x, y) in storage.copied or (y, x) in storage.copied:
        return True  # its code reads the one while it writes the other, even if the bytes are the same
    if (a.last == b.first and storage.allowed(x, y, y_at - x_at) is not None) or (
        b.last == a.first and storage.allowed(y, x, x_at - y_at) is not None
    ):
        return False
    return part(a.content, low - x_at, high - x_at) != part(b.content, low - y_at, high - y_at)


def honoured(storage: Storage, layer: Layer) -> Iterator[View]:
    """The views of a layer that the groups implement."""
    for view in _views(storage, layer):
        group = storage.groups[view.inner]
        if (
            storage.groups[view.outer] is group
            and group.offsets[view.inner] == group.offsets[view.outer] + view.offset_bytes
        ):
            yield view


def _views(storage: Storage, layer: Layer) -> Iterator[View]:
    """Views between tensors in RAM. An operand used twice cannot be in two places: it is copied."""
    operands = [t.name for t in layer.inputs if t is not None]
    for view in layer.op.views(layer):
        if view.inner in storage.groups and view.outer in storage.groups and operands.count(view.inner) < 2:
            yield view
