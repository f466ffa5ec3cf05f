"""A function of Variables as an ONNX model: traced to a net, then written operator by operator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy
import onnx
from onnx import helper

from tinynode.atomic_file import replace_file
from tinynode.core.backprop import grad
from tinynode.core.dispatch import run_forward
from tinynode.core.variable import Variable
from tinynode.devices import to_host
from tinynode.errors import OperandError, TinynodeError, describe, dtype_name
from tinynode.interop.calls import zeros_like
from tinynode.interop.onnx.arrays import Graph, OnnxArray, OnnxError, constant
from tinynode.interop.onnx.batches import any_length, compare_lengths
from tinynode.interop.onnx.nodes import DEVICE
from tinynode.net.helpers import Constant
from tinynode.net.structure import flatten, paths, raw_indexes, unflatten
from tinynode.net.trace import Trace, trace
from tinynode.nn.module import Module
from tinynode.safe_files import checked_path

OPSET = 18
"""The version of ONNX's operators. onnxruntime has them since 1.14, of 2023."""
FORMAT = 8
"""The version of the file format."""


class Written(NamedTuple):
    """The operators of a function for fixed shapes, and the inputs and outputs by name."""

    graph: Graph
    inputs: dict[str, OnnxArray]
    outputs: dict[str, OnnxArray]

    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each input and of each output."""
        return [x.shape for x in (*self.inputs.values(), *self.outputs.values())]


def write_model(
    f: Callable[..., Any], examples: Sequence[Any], path: Any, gradient: bool, batch_axis: Any
) -> Any:
    """See ``tinynode.interop.onnx_model``."""
    if not callable(f):
        raise OperandError(
            f"onnx_model: f is {describe(f)}; expected a module, or a function of Variables. Give "
            "the function, and then its arguments."
        )
    file = None if path is None else checked_path("onnx_model", path)
    writer = ModelWriter(f, gradient)
    args = writer.variables(examples)
    if batch_axis is None:
        written = writer.write(args)
        model = writer.model(written, written.shapes())
    else:
        model = writer.model(*any_length(writer.write, args, batch_axis))
        compare_lengths(model, writer.values, args, batch_axis)
    if file is not None:
        replace_file(file, model.SerializeToString())
    return model


class ModelWriter:
    """Writes a function.

    Args:
        f: the function, or a module.
        gradient: True adds the gradients of the result.
    """

    def __init__(self, f: Callable[..., Any], gradient: bool) -> None:
        self.f, self.gradient = f, gradient
        self.title = str(getattr(f, "__name__", type(f).__name__))
        self.signature: Any = f
        self.names: dict[int, str] = {}
        if isinstance(f, Module):
            self.signature = f.forward
            named = [*f.named_parameters(), *f.named_buffers()]
            self.names = {id(x): name for name, x in named}

    def variables(self, examples: Sequence[Any]) -> tuple[Any, ...]:
        """The examples, with Variables in place of arrays."""
        found, treedef = flatten((tuple(examples), {}), self.title)
        raw = raw_indexes(treedef)
        variables = [Variable(x.raw) if i in raw else x for i, x in enumerate(found)]
        return unflatten(treedef, variables)[0]  # type: ignore[no-any-return]

    def write(self, args: Sequence[Any]) -> Written:
        """The operators of the function for the shapes of the arguments.

        Raises:
            OnnxError: a function cannot be written.
        """
        found = self._trace(args)
        graph = Graph()
        given = flatten(tuple(args), self.title)[0]
        inputs = {
            name: OnnxArray(x.shape, to_host(x.raw).dtype, graph, name)
            for name, x in zip(found.inputs, given, strict=True)
        }
        floating = [name for name, x in zip(inputs, given, strict=True) if x.requires_grad]
        titles = ["output", *[f"gradient_{name}" for name in floating]]
        taken = set(inputs)
        titles = [unused(t, taken) for t in (titles if self.gradient else titles_of(found))]
        values: dict[str, Any] = dict(inputs)
        for name, x in found.captured.items():
            host = to_host(x.raw)
            title = unused(self.names.get(id(x), name), taken)
            values[name] = OnnxArray(host.shape, host.dtype, graph, title, host)
        for one in found.net.flattened():
            graph.label = one.type
            results = self._run(one.make_node(), [values[name] for name in one.input_names])
            for name, y in zip(one.output_names, results, strict=True):
                self._check(one.type, y, found.specs.get(name))
                values[name] = y
        if not found.outputs:
            raise OnnxError(
                f"onnx_model: {self.title} returns no Variable, so the model would have no "
                "output. Return Variables, also in a tuple, a list or a dict."
            )
        outputs = [values[found.outputs[i]] for i, _ in paths(found.result)]
        return Written(graph, inputs, dict(zip(titles, outputs, strict=True)))

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The outputs for arguments, computed eagerly, as NumPy arrays."""
        result = self._with_gradient(tuple(args)) if self.gradient else self.f(*args)
        return [to_host(y.raw) for y in flatten(result, self.title)[0]]

    def _trace(self, args: Sequence[Any]) -> Trace:
        @functools.wraps(self.signature)  # the inputs get the names of the parameters
        def called(*xs: Any) -> Any:
            return self._with_gradient(xs) if self.gradient else self.f(*xs)

        called.__name__ = self.title
        found = trace(called, *args)
        if found.writes or found.updates:
            raise OnnxError(
                f"onnx_model: {self.title} writes to a Variable from outside, and a model keeps "
                "no state. For batch normalisation, call eval() on the model first."
            )
        return found

    def _with_gradient(self, xs: tuple[Any, ...]) -> list[Variable]:
        """The result, and its gradients by the floating arguments."""
        y = self.f(*xs)
        if not isinstance(y, Variable) or y.shape != ():
            raise OperandError(
                f"onnx_model: with gradient=True, {self.title} must return a Variable of shape "
                f"(), got {describe(y)}. Return a loss, such as functions.sum(y)."
            )
        floating = [x for x in flatten(xs, self.title)[0] if x.requires_grad]
        found = grad([y], floating) if y.requires_grad else [None] * len(floating)
        pairs = zip(floating, found, strict=True)
        return [y, *[zeros_like(x) if gx is None else gx for x, gx in pairs]]

    def _run(self, node: Any, arrays: list[Any]) -> Any:
        """The results of one function on arrays that write operators."""
        if isinstance(node, Constant):
            return [constant(to_host(node.value))]
        try:
            with numpy.errstate(all="ignore"):  # of constants, which a mask may hide
                return run_forward(node, tuple(arrays), DEVICE, DEVICE)
        except Exception as error:
            cure = "Leave the function out of f, or use other functions in its place."
            if node.is_random:
                cure = "Call eval() on the model first: it turns dropout off."
            reason = "" if isinstance(error, TinynodeError) else f"{type(error).__name__}: "
            raise OnnxError(
                f"onnx_model: {self.title} cannot be written, since it uses {node.label}: "
                f"{reason}{error}. {cure}"
            ) from error

    def _check(self, function: str, y: OnnxArray | None, spec: Any) -> None:
        """Refuse an operator with another shape or dtype than the recorded result."""
        if y is None or spec is None or (y.shape, y.dtype.name) == (spec[0], dtype_name(spec[1])):
            return
        raise OnnxError(
            f"onnx_model: {self.title} cannot be written, since its function {function} would "
            f"give {y.dtype} of shape {y.shape}, expected {dtype_name(spec[1])} of shape "
            f"{spec[0]}. Cast the inputs of {function} to one dtype first."
        )

    def model(self, written: Written, shapes: Sequence[Sequence[Any]]) -> Any:
        """The model, without the operators that no output needs.

        Args:
            written: the operators.
            shapes: the shape of each input and of each output, with names for unknown lengths.
        """
        graph = written.graph
        self._name_outputs(written)
        needed, nodes = set(written.outputs), []
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.output):
                needed.update(node.input)
                nodes.append(node)
        ports = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), shape)
            for (name, x), shape in zip(
                [*written.inputs.items(), *written.outputs.items()], shapes, strict=True
            )
        ]
        constants = [
            onnx.numpy_helper.from_array(numpy.array(value, order="C"), name)
            for name, value in graph.constants.items()
            if name in needed
        ]
        count = len(written.inputs)
        made = helper.make_graph(nodes[::-1], self.title, ports[:count], ports[count:], constants)
        model = helper.make_model(
            made,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=FORMAT,
            producer_name="tinynode",
        )
        onnx.checker.check_model(model)
        return model

    def _name_outputs(self, written: Written) -> None:
        """Give the outputs their names; an input, a constant or a second output by Identity."""
        graph, names = written.graph, {name: name for name in written.inputs}
        for name, x in written.outputs.items():
            source = graph.name_of(x)
            if x.value is None and source not in names:
                names[source] = name
            else:
                source = names.get(source, source)
                graph.nodes.append(helper.make_node("Identity", [source], [name], name))
        for node in graph.nodes:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]


def unused(name: str, taken: set[str]) -> str:
    """The name, with ``_`` behind it while another value has the name."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def titles_of(found: Trace) -> list[str]:
    """The names of the results: the keys of a dict, else ``output``, or ``output_0`` and so on."""
    titles = []
    for _, place in paths(found.result):
        is_key = place and not place[0].isdigit() and place not in found.inputs
        titles.append(place if is_key else f"output_{place}" if place else "output")
    return titles
