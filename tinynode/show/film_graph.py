"""Which node of a film stands for which node of the graph, and what to call it.

Requirement: the recorder meets the same Variable many times, and must not keep it alive. So nodes
are recognised by weak references; when the film ends, those go too. A node is called by its
Variable's name, by its place in a model, by the name that a script has for it, or by a number.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.nn.module import Module
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.show.film import GONE, Film, FilmNode
from tinynode.show.film_sources import Place, script_names, user_frame

if TYPE_CHECKING:
    from tinynode.core.function_node import FunctionNode


class _Known(weakref.ref[Any]):
    """A weak reference that knows the film's node for its object.

    Attributes:
        node: the film's node.
        owner: for an array the VariableNode that has it, if there is one.
    """

    __slots__ = ("node", "owner")
    node: FilmNode
    owner: weakref.ref[VariableNode] | None


class FilmGraph:
    """The graph of a film while it is recorded.

    Args:
        film: what nodes are added to.
        model: names its parameters.

    Attributes:
        outputs: for the id of each function's node the nodes of its outputs.
    """

    def __init__(self, film: Film, model: Module | None) -> None:
        self.film = film
        self.outputs: dict[str, list[FilmNode]] = {}
        self._model = model
        self._has_new_state = False
        self._known: dict[int, _Known] = {}
        self._without_node: dict[int, _Known] = {}
        self._leaf_arrays: dict[int, _Known] = {}
        self._watched: dict[int, _Known] = {}
        self._gone: list[_Known] = []

    def forget(self) -> None:
        """The film is over: take the last names, and let go of all that was recognised."""
        self.place()
        for known in self._known.values():
            self._take_name(known(), known.node)
        self._model = None
        self.outputs.clear()
        for store in (self._known, self._without_node, self._leaf_arrays, self._watched):
            store.clear()

    def take_gone(self) -> list[str]:
        """The nodes whose arrays were freed since the last call.

        Where a live Variable has another array now (an optimizer has given it one), the node is
        not without array, and the new one is watched.
        """
        gone, self._gone = self._gone, []
        freed = []
        for known in gone:
            node = None if known.owner is None else known.owner()
            x = None if node is None else node.get_variable_or_none()
            if x is None or x.raw is None:
                freed.append(known.node.id)
            else:
                self._watch(x.raw, known.node, node)
        return freed

    def know(self, thing: Any, shown: FilmNode) -> None:
        """From now on, this VariableNode or FunctionNode is that node of the film."""
        known = _Known(thing)
        known.node = shown
        self._known[id(thing)] = known

    def _find(self, store: dict[int, _Known], thing: Any) -> FilmNode | None:
        known = store.get(id(thing))
        return known.node if known is not None and known() is thing else None

    def node_of(self, x: Variable, rank: int, phase: str) -> FilmNode:
        """The film's node of a Variable that a function has used or made.

        Where no graph is recorded, a Variable has no node of its own, and is known by its array:
        that is what is left of the result of ``x += v``.
        """
        if x.node_or_none is not None:
            return self.variable(x.node_or_none, x, phase)
        shown = self._find(self._without_node, x.raw)
        if shown is None:
            shown = self._add_variable(VariableNode(x), x, rank, phase)  # x itself gets none
            known = self._watch(x.raw, shown)
            if known is not None:
                self._without_node[id(x.raw)] = known
        self._take_name(x, shown)
        return shown

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
            elif array is not None:
                shown = self._find(self._without_node, array)  # used without a graph before
            if shown is None:
                shown = self._add_variable(node, x, node.rank, phase)
                known = self._watch(array, shown, node)
                if known is not None and node.creator_node is None:
                    self._leaf_arrays[id(array)] = known
            self.know(node, shown)
        self._take_name(node, shown)
        return shown

    def _add_variable(
        self, node: VariableNode, x: Variable | None, rank: int, phase: str
    ) -> FilmNode:
        facts = [node.label]
        if str(node.device) not in self.film.devices:
            self.film.devices[str(node.device)] = None
        if str(node.device) != "numpy":
            facts.append(str(node.device))
        if not node.requires_grad:
            facts.append("no gradient")
        shown = self.film.add_variable(node.name, tuple(facts), rank, phase)
        if isinstance(x, Parameter | Buffer):
            shown.is_state = self._has_new_state = True
        return shown

    def _take_name(self, thing: Any, shown: FilmNode) -> None:
        """A variable may be given its name after it was used."""
        if shown.kind == "variable" and getattr(thing, "name", None):
            self._name(shown, thing.name)

    def place(self) -> Place | None:
        """Where the user's code is; on the way, what it calls its Variables."""
        frame = user_frame()
        if frame is None:
            return None
        models = [] if self._model is None else [("", self._model)]
        for name, value in script_names(frame):
            if isinstance(value, Variable):
                self._call(value, name)
            elif isinstance(value, Module) and value is not self._model:
                models.append((f"{name}.", value))
            elif id(value) in self._leaf_arrays:
                self._name(self._find(self._leaf_arrays, value), name)
        if self._has_new_state:  # to go through a model takes longer than a step
            self._has_new_state = False
            for start, model in models:
                for name, parameter in model._state():
                    if parameter.node_or_none is not None:
                        self._name(self._find(self._known, parameter.node_or_none), start + name)
        return frame.f_code.co_filename, frame.f_lineno

    def _call(self, x: Variable, name: str) -> None:
        """What the code calls a Variable."""
        if x.node_or_none is None:
            self._name(self._find(self._without_node, x.raw), x.name or name)
        else:
            self._name(self._find(self._known, x.node_or_none), x.name or name)

    def _name(self, shown: FilmNode | None, name: str) -> None:
        """Name a node, unless it has a name; a parameter's own name is only part of it."""
        if shown is None:
            return
        is_longer = shown.is_state and name.endswith(f".{shown.label}")
        if is_longer or not shown.is_named:
            shown.label, shown.is_named = name, True

    def _watch(
        self, array: Any, shown: FilmNode, owner: VariableNode | None = None
    ) -> _Known | None:
        """Learn when an array goes; some libraries' arrays cannot be watched."""
        try:
            known = _Known(array, self._array_went)
        except TypeError:
            return None
        known.node = shown
        known.owner = None if owner is None else weakref.ref(owner)
        self._watched[id(known)] = known
        return known

    def _array_went(self, known: _Known) -> None:
        if self._watched.pop(id(known), None) is not None:
            self._gone.append(known)

    def function(self, function: FunctionNode) -> FilmNode:
        """The film's node of a function; one that was applied before the recording is added."""
        shown = self._find(self._known, function)
        if shown is None:
            shown = self.film.add_function(function, function.rank, "forward", None)
            outs = []
            for reference in function.outputs or ():
                node = reference()
                outs.append(self._gone_output(function) if node is None else self.variable(node))
            self.connect(shown, [self.variable(node) for node in function.inputs or ()], outs)
            self.know(function, shown)
        return shown

    def _output_of(self, function: FunctionNode, node: VariableNode) -> FilmNode | None:
        """The film's node of an output that was gone, and that its function has made anew."""
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
        """Put a function between its inputs and outputs."""
        self.outputs[shown.id] = outs
        for node in ins:
            self.film.connect(node, shown, shown.phase)
        for node in outs:
            self.film.connect(shown, node, shown.phase)

    def add_behind(self, functions: list[FunctionNode], limit: int) -> None:
        """Add the functions that these depend on, and that the film does not have."""
        waiting = list(functions)
        while waiting and limit:
            function = waiting.pop()
            if self._find(self._known, function) is None:
                limit -= 1
                self.function(function)
                for node in function.inputs or ():
                    if node.creator_node is not None:
                        waiting.append(node.creator_node)
