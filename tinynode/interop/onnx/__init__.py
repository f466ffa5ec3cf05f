"""Functions of tinynode as ONNX models.

A function is traced to a net. Each operator of the net runs on arrays that write ONNX operators:

| file | content |
|---|---|
| ``models.py`` | traces the function, runs the net, makes the model |
| ``arrays.py`` | the graph, its arrays, and their namespace |
| ``operators.py`` | the ONNX operators of the Array API standard |
| ``nodes.py`` | the backend; functions of tinynode with an ONNX operator of their own |
| ``batches.py`` | batches of any length |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any


def onnx_model(
    f: Callable[..., Any],
    *examples: Any,
    path: str | os.PathLike[str] | None = None,
    gradient: bool = False,
    batch_axis: int | Sequence[int | None] | None = None,
) -> Any:
    """A function or a model as an ONNX model, for runtimes such as onnxruntime.

        x = tn.asarray(np.zeros((1, 64), np.float32))
        tn.interop.onnx_model(model.eval(), x, path="digits.onnx", batch_axis=0)

    The inputs of the ONNX model have the names of f's parameters. The output is ``output``, or
    ``output_0``, ``output_1`` for several. A dict's keys are the names of its values. Parameters
    and other Variables that f uses by name are constants of the ONNX model.

    Args:
        f: a module, or a function that takes Variables, and returns Variables, also in tuples,
            lists and dicts. f runs on the examples.
        examples: the arguments of f: Variables or arrays. Shapes and dtypes matter. The shapes
            are those of the ONNX model, except for the batch. Other arguments are constants.
        path: the file to write. A file is written completely or not at all.
        gradient: True adds an output ``gradient_x`` for each floating input ``x``. The result of f
            must have the shape ().
        batch_axis: the axis of the batch in each example; the ONNX model then takes batches of any
            length. An integer for all examples, or an entry for each; None for no batch.

    Returns:
        The ``onnx.ModelProto``, checked, with the operators of opset 18.

    Raises:
        ImportError: the library onnx is not installed.
        OnnxError: ONNX has no operators for a function, or the function draws random numbers, or
            the batch's length decides in a way that cannot be written. The message names the
            function.
        TraceError: f decides by a value, or gives no Variables.
        OperandError: f is no function; an example does not have the ``batch_axis``; or the result
            has a shape, with ``gradient=True``.
        OSError: the file cannot be written; an old file is still whole.
    """
    try:
        from tinynode.interop.onnx.models import write_model  # onnx is optional
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "onnx":
            raise
        raise ImportError("onnx_model: ONNX is not installed. Try: pip install onnx") from error
    return write_model(f, examples, path, gradient, batch_axis)
