"""The C of a compiled function, beside the nets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn


def layer(x: Any, w: Any) -> Any:
    return fn.tanh(x @ w) * 2.0


def shown(device: str, compiler: str = "none") -> tn.show.CCode:
    with tn.using_device(device), tn.using_config(compiler=compiler):
        arrays = [tn.asarray(np.ones(shape)) for shape in ((4, 3), (3, 5))]
        return tn.show.c(tn.compile(layer), *arrays)


def test_each_net_stands_beside_the_c() -> None:
    code = shown("fast")
    assert [net.partition("(")[0] for net in code.nets] == ["layer", "layer_grad"]
    forward, gradient = code.functions
    assert forward.startswith("// ") and "tanh(t0)" in forward and forward.endswith("}")
    assert "_GRAD_out" in gradient
    text = str(code)
    assert text.index("layer(x, w)") < text.index(forward) < text.index("layer_grad(")
    html = code._repr_html_()
    assert html.count("<tr>") == 2 and "&lt;math.h&gt;" in html and "<math.h>" not in html


def test_the_source_needs_no_compiler() -> None:
    assert shown("fast", "none") == shown("fast", "auto")


def test_a_backend_without_c_says_so() -> None:
    code = shown("numpy")
    assert len(code.nets) == 2 and code.functions == ()
    assert str(code).count("no C") == code._repr_html_().count("no C") == 2


def test_a_net_without_operators() -> None:
    def same(x: Any) -> Any:
        return x

    with tn.using_device("fast"):
        code = tn.show.c(tn.compile(same), tn.asarray([1.0]))
    assert code.functions == () and "same(" in code.nets[0]


def test_a_function_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(TypeError, match=r"show\.c: function must come from tn\.compile"):
        tn.show.c(layer, tn.asarray([1.0]))  # type: ignore[arg-type]
