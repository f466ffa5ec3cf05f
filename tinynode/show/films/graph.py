"""The film's nodes for the nodes of the graph, and the names.

Requirement: the recorder meets the same Variable many times, and must not keep the Variable alive.
So weak references recognise nodes, until the film ends. The name of a node is the Variable's name,
the name in a model, or the name in the script.
"""

from __future__ import annotations

import weakref
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.errors import short_name
from tinynode.nn.module import Module
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.show.films.nodes import GONE, FilmNode, Recording
from tinynode.show.films.sources import Place, script_names, user_frame, user_places

if TYPE_CHECKING:
    from tinynode.core.function_node import FunctionNode


_NAMELESS = frozenset({FunctionType, type, int, float, str, tuple, list, dict, set})
"""The values of these types are in no film: a script has many of them."""


class _NodeReference(weakref.ref[Any]):
    """A weak reference to an object, with the film's node for the object.

    Attributes:
        node: the film's node.
        owner: for an array the VariableNode, or None.
    """

    __slots__ = ("node", "owner")
    node: FilmNode
    owner: weakref.ref[VariableNode] | None


class _VariableReference(weakref.ref[Variable]):
    """A weak reference to a Variable without a VariableNode.

    Attributes:
        array: the reference to the array; the film's node holds for this array only.
    """

    __slots__ = ("array",)
    array: _NodeReference


class FilmGraph:
    """The graph of a film during the recording.

    Args:
        film: gets the nodes.
        model: gives names to the parameters.

    Attributes:
        outputs: for the id of each function's node, the nodes of the function's outputs.
    """

    def __init__(self, film: Recording, model: Module | None) -> None:
        self.film = film
        self.outputs: dict[str, list[FilmNode]] = {}
        self._model = model
        self._has_new_state = False
        self._labels: dict[Any, str] = {}
        self._known: dict[int, _NodeReference] = {}
        self._arrays_without_node: dict[int, _NodeReference] = {}
        self._variables_without_node: dict[int, _VariableReference] = {}
        self._leaf_arrays: dict[int, _NodeReference] = {}
        self._watched: dict[int, _NodeReference] = {}
        self._freed: list[_NodeReference] = []

    def forget(self) -> None:
        """Take the last names, and drop all references; the film is over."""
        self.places()
        for known in self._known.values():
            self._name_after(known(), known.node)
        self._model = None
        self.outputs.clear()
        for store in (
            self._known,
            self._arrays_without_node,
            self._variables_without_node,
            self._leaf_arrays,
            self._watched,
        ):
            store.clear()

    def pop_freed(self) -> list[str]:
        """The ids of the nodes with arrays freed since the last call.

        A live Variable may have a new array, for instance from an optimizer. Then the node still
        has an array, and the new array is watched.
        """
        references, self._freed = self._freed, []
        freed = []
        for known in references:
            node = None if known.owner is None else known.owner()
            x = None if node is None else node.get_variable_or_none()
            if x is None or x.raw is None:
                freed.append(known.node.id)
            else:
                self._watch(x.raw, known.node, node)
        return freed

    def remember(self, thing: Any, shown: FilmNode) -> None:
        """Remember the film's node for a VariableNode or FunctionNode."""
        known = _NodeReference(thing)
        known.node = shown
        self._known[id(thing)] = known

    def known(self, node: VariableNode | FunctionNode) -> FilmNode | None:
        """The film's node of a VariableNode or FunctionNode, if the film has one."""
        return self._find(self._known, node)

    def _find(self, store: dict[int, _NodeReference], thing: Any) -> FilmNode | None:
        known = store.get(id(thing))
        return known.node if known is not None and known() is thing else None

    def node_of(self, x: Variable, rank: int, phase: str, *, is_output: bool = False) -> FilmNode:
        """The film's node of an input or output of a function.

        A Variable outside of a recorded graph has no VariableNode, and is known by itself and by
        the array. The result of ``x += v`` leaves only an array. An output gets a new node, even
        if its array is the array of an input.
        """
        if x.node_or_none is not None:
            return self.variable(x.node_or_none, x, phase)
        shown = None if is_output else self._find_without_node(x)
        if shown is None:
            shown = self._add_variable(VariableNode(x), x, rank, phase)  # x.node stays None
            known = self._watch(x.raw, shown)
            if known is not None:
                self._arrays_without_node[id(x.raw)] = known
                reference = _VariableReference(x)
                reference.array = known
                self._variables_without_node[id(x)] = reference
        self._name_after(x, shown)
        return shown

    def _find_without_node(self, x: Variable) -> FilmNode | None:
        """The film's node of a Variable used without a graph: by the Variable, or by the array."""
        known = self._variables_without_node.get(id(x))
        if known is not None and known() is x and known.array() is x.raw:
            return known.array.node
        return self._find(self._arrays_without_node, x.raw)

    def variable(
        self, node: VariableNode, x: Variable | None = None, phase: str = "forward"
    ) -> FilmNode:
        """The film's node of a VariableNode."""
        shown = self._find(self._known, node)
        if shown is None:
            if x is None:
                x = node.get_variable_or_none()
            array = None if x is None else x.raw
            if node.creator_node is not None:
                shown = self._output_of(node.creator_node, node)
            elif x is not None and array is not None:
                shown = self._find_without_node(x)  # used before without a graph
            if shown is None:
                shown = self._add_variable(node, x, node.rank, phase)
                known = self._watch(array, shown, node)
                if known is not None and node.creator_node is None:
                    self._leaf_arrays[id(array)] = known
            self.remember(node, shown)
        self._name_after(node, shown)
        return shown

    def _add_variable(
        self, node: VariableNode, x: Variable | None, rank: int, phase: str
    ) -> FilmNode:
        form = type(node.dtype), node.shape, node.dtype  # dtypes of two libraries do not compare
        if form not in self._labels:
            self._labels[form] = node.label
        facts = [self._labels[form]]
        device = str(node.device)
        self.film.devices.setdefault(device)
        if device != "numpy":
            facts.append(device)
        if not node.requires_grad:
            facts.append("no gradient")
        shown = self.film.add_variable(node.name, tuple(facts), rank, phase)
        if isinstance(x, Parameter | Buffer):
            shown.is_state = self._has_new_state = True
        return shown

    def _name_after(self, thing: Any, shown: FilmNode) -> None:
        """Take over a variable's name; users may set the name after the first use."""
        if shown.kind == "variable" and getattr(thing, "name", None):
            self._set_name(shown, thing.name)

    def places(self) -> tuple[Place, ...]:
        """The present places in the user's code. Names in the code become names of nodes."""
        frame = user_frame()
        if frame is None:
            return ()
        models = [] if self._model is None else [("", self._model)]
        for name, value in script_names(frame):
            if type(value) in _NAMELESS:
                continue
            if isinstance(value, Variable):
                self._name_variable(value, name)
            elif isinstance(value, Module) and value is not self._model:
                models.append((f"{name}.", value))
            elif isinstance(value, ModuleType):
                self.film.modules.add(name)
            elif id(value) in self._leaf_arrays:
                self._set_name(self._find(self._leaf_arrays, value), name)
        if self._has_new_state:  # a walk through a model takes longer than a step
            self._has_new_state = False
            for start, model in models:
                for name, value in (*model.named_parameters(), *model.named_buffers()):
                    if value.node_or_none is not None:  # its dotted name, not its own
                        self._set_name(self._find(self._known, value.node_or_none), start + name)
        return user_places()

    def _name_variable(self, x: Variable, name: str) -> None:
        """Give a Variable's node the name in the code."""
        if x.node_or_none is None:
            self._set_name(self._find_without_node(x), x.name or name)
        else:
            self._set_name(self._find(self._known, x.node_or_none), x.name or name)

    def _set_name(self, shown: FilmNode | None, name: str) -> None:
        """Name a node without a name; a longer name replaces a parameter's own name."""
        if shown is None:
            return
        is_longer = shown.is_state and name.endswith(f".{shown.label}")
        if is_longer or not shown.is_named:
            shown.label, shown.is_named = short_name(name), True

    def _watch(
        self, array: Any, shown: FilmNode, owner: VariableNode | None = None
    ) -> _NodeReference | None:
        """Watch an array until the array is freed; None if a library has no weak references."""
        try:
            known = _NodeReference(array, self._array_freed)
        except TypeError:
            return None
        known.node = shown
        known.owner = None if owner is None else weakref.ref(owner)
        self._watched[id(known)] = known
        return known

    def _array_freed(self, known: _NodeReference) -> None:
        if self._watched.pop(id(known), None) is not None:
            self._freed.append(known)

    def function(self, function: FunctionNode) -> FilmNode:
        """The film's node of a function; a function applied before the recording is added."""
        shown = self._find(self._known, function)
        if shown is None:
            shown = self.film.add_function(function.label, function.rank, "forward", ())
            outs = []
            for reference in function.outputs or ():
                node = reference()
                outs.append(self._gone_output(function) if node is None else self.variable(node))
            self.connect(shown, [self.variable(node) for node in function.inputs or ()], outs)
            self.remember(function, shown)
        return shown

    def _output_of(self, function: FunctionNode, node: VariableNode) -> FilmNode | None:
        """The film's node of a freed output, if the function has a new node for the output."""
        shown = self._find(self._known, function)
        if shown is not None:
            for reference, output in zip(
                function.outputs or (), self.outputs[shown.id], strict=True
            ):
                if reference() is node:
                    return output
        return None

    def _gone_output(self, function: FunctionNode) -> FilmNode:
        return self.film.add_variable(GONE, (), function.rank + 1, "forward")

    def connect(self, shown: FilmNode, ins: list[FilmNode], outs: list[FilmNode]) -> None:
        """Put a function between the inputs and the outputs."""
        self.outputs[shown.id] = outs
        for node in ins:
            self.film.connect(node, shown, shown.phase)
        for node in outs:
            self.film.connect(shown, node, shown.phase)

    def add_behind(self, functions: list[FunctionNode], limit: int) -> None:
        """Add the missing functions behind some functions, up to a limit."""
        waiting = list(functions)
        while waiting and limit:
            function = waiting.pop()
            if self._find(self._known, function) is None:
                limit -= 1
                self.function(function)
                for node in function.inputs or ():
                    if node.creator_node is not None:
                        waiting.append(node.creator_node)
