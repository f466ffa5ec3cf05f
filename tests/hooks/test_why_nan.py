"""Why is it NaN: the function, the line, the element, the operands and the guard."""

from __future__ import annotations

import contextlib
import gc
import inspect
import re
import weakref
from pathlib import Path

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import NaNError, NonFiniteError

ROOT = Path(__file__).resolve().parents[2]

F = tn.functions
DEVICES = ["numpy", "fast", "strict"]
EPS = 1e-6


@pytest.fixture(autouse=True)
def debugging():
    with tn.using_config(debug=True), np.errstate(all="ignore"):
        yield


@pytest.fixture(params=DEVICES)
def device(request):
    with tn.using_config(device=request.param):
        yield request.param


def leaf(values, dtype="float64", name=None):
    array = np.asarray(values, dtype=dtype)
    return tn.Variable(tn.get_device(tn.config.device or "numpy").from_host(array), name=name)


# --- the ten usual ways ----------------------------------------------------------------------
# Each way: the program, the values of x, the function that the error names, the first element,
# the operands, a part of the guard, and the guarded program.


def sqrt_at_0(x):
    return F.sum(F.sqrt(x))


def sqrt_guarded(x):
    return F.sum(F.where(x > 0, F.sqrt(F.where(x > 0, x, 1.0)), 0.0))


def log_at_0(x):
    return F.sum(F.log(x))


def log_guarded(x):
    return F.sum(F.where(x > 0, F.log(F.where(x > 0, x, 1.0)), 0.0))


def zero_by_zero(x):
    return F.sum(x / (x * x))


def division_guarded(x):
    y = x * x
    return F.sum(F.where(y != 0, x / F.where(y != 0, y, 1.0), 0.0))


def exp_overflow(x):
    return F.sum(F.exp(x))


def exp_guarded(x):
    return F.sum(F.exp(x - F.max(x)))


def norm_at_0(x):
    return F.sqrt(F.sum(x * x))


def norm_guarded(x):
    return F.linalg.vector_norm(x)


def pow_at_0(x):
    return F.sum(x**0.5)


def pow_guarded(x):
    return F.sum(F.where(x > 0, F.where(x > 0, x, 1.0) ** 0.5, 0.0))


def pow_of_variables(x):
    return F.sum(x ** (x * 0.0 + 0.5))


def pow_of_variables_guarded(x):
    return F.sum(F.where(x > 0, F.where(x > 0, x, 1.0) ** (x * 0.0 + 0.5), 0.0))


def std_of_constants(x):
    return F.std(x)


def std_guarded(x):
    return F.sqrt(F.var(x) + EPS)


def softmax_by_hand(x):
    return F.sum((F.exp(x) / F.sum(F.exp(x)))[0])


def softmax_guarded(x):
    return F.sum(F.softmax(x)[0])


def atan2_at_0(x):
    return F.sum(F.atan2(x, x))


def atan2_guarded(x):
    ok = x != 0
    return F.sum(F.where(ok, F.atan2(F.where(ok, x, 0.0), F.where(ok, x, 1.0)), 0.0))


def variance_of_one(x):
    deviation = x - F.mean(x)
    return F.sum(deviation * deviation) / F.sum(x * 0.0)


def variance_guarded(x):
    return F.var(x, correction=0)


WAYS = [
    (sqrt_at_0, [4.0, 0.0], "Sqrt", "[1] is inf", "output 0 is 0 ", "eps", sqrt_guarded),
    (log_at_0, [2.0, 0.0], "Log", "[1] is inf", "input 0 is 0 ", "log1p", log_guarded),
    (
        zero_by_zero,
        [1.0, 0.0],
        "Divide",
        "[1] is nan",
        "input 1 is 0.\n",
        "where",
        division_guarded,
    ),
    (exp_overflow, [1.0, 1e3], "Exp", "[1] is inf", "input 0 is 1000", "max(x)", exp_guarded),
    (
        norm_at_0,
        [0.0, 0.0],
        "Sqrt",
        "only element is inf",
        "output 0 is 0 ",
        "norm",
        norm_guarded,
    ),
    (pow_at_0, [1.0, 0.0], "PowConstant", "[1] is inf", "input 0 is 0 ", "eps", pow_guarded),
    (
        *(pow_of_variables, [1.0, 0.0], "Pow", "[1] is inf", "input 1 is 0.5", "log(x)"),
        pow_of_variables_guarded,
    ),
    (
        std_of_constants,
        [3.0, 3.0],
        "Std",
        "is nan",
        "output 0 is 0 ",
        "var(x) + eps",
        std_guarded,
    ),
    (
        *(softmax_by_hand, [0.0, 1e3], "Divide", "[1] is nan", "input 0 is 1000", "softmax"),
        softmax_guarded,
    ),
    (atan2_at_0, [1.0, 0.0], "Atan2", "[1] is nan", "input 1 is 0 ", "safe pair", atan2_guarded),
    (
        *(variance_of_one, [3.0], "Divide", "only element is nan", "input 1 is 0.\n"),
        *("correction=0", variance_guarded),
    ),
]


def line_of(function):
    """The line of the last statement of a program."""
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{first + len(lines) - 1}"


def error_of(function, x):
    with pytest.raises(NonFiniteError) as caught:
        function(x).backward()
    return caught.value


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", WAYS, ids=[way[0].__name__ for way in WAYS])
def test_the_error_names_function_line_element_operands_and_guard(way, dtype, device):
    program, values, label, element, operands, guard, guarded = way
    x = leaf(values, dtype)
    error = error_of(program, x)
    text = str(error)
    assert re.match(rf"(NaN|Infinity) is detected on \w+ computation of {label}\b", text), text
    for part in (line_of(program), element, operands, "Guard: ", guard, dtype):
        assert part in text, (part, text)
    assert x.grad is None
    # the guarded program runs clean, on the same Variable
    guarded(x).backward()
    assert np.isfinite(tn.devices.to_host(x.grad)).all()


def test_a_nan_is_a_nan_error_and_an_infinity_is_its_base():
    assert type(error_of(sqrt_at_0, leaf([0.0]))) is NonFiniteError
    assert type(error_of(std_of_constants, leaf([3.0, 3.0]))) is NaNError
    assert issubclass(NonFiniteError, RuntimeError)


# --- where the rule of tinynode is finite ------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "values", "gradient"),
    [
        (lambda x: F.sum(F.where(x.array > 0, F.log(x), 0.0)), [2.0, 0.0], [0.5, 0.0]),
        (lambda x: F.sum(F.sqrt(F.where(x.array > 1, x, 0.0))), [4.0, 0.0], [0.25, 0.0]),
        (lambda x: F.linalg.vector_norm(x), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: F.sum(F.hypot(x, x * 0.0)), [0.0], [0.0]),
        (lambda x: F.sum(2.0 ** (x * 2.0)) * 0.0, [1.0], [0.0]),
        (lambda x: F.logsumexp(x), [0.0, 1e3], [0.0, 1.0]),
        (lambda x: F.sum(F.log(x)[:1]), [2.0, 0.0], [0.5, 0.0]),
    ],
)
def test_a_right_finite_gradient_is_no_error(program, values, gradient):
    x = leaf(values)
    program(x).backward()
    np.testing.assert_allclose(x.grad, gradient)


def test_the_power_of_zero_has_the_gradient_zero_for_a_positive_exponent():
    x, y = leaf([1.0, 0.0]), leaf([2.0, 2.0])
    F.sum(x**y).backward()
    np.testing.assert_array_equal(y.grad, [0.0, 0.0])


def test_var_of_one_sample_refuses_the_correction_itself():
    with pytest.raises(ValueError, match="correction is 1"):
        F.var(leaf([3.0]), correction=1)


def test_infinite_values_are_no_error_in_forward():
    y = F.log(leaf([0.0]))
    assert y.array[0] == -np.inf


# --- operands of broadcasting, of reductions and of several elements ---------------------------


def test_a_broadcast_operand_gets_the_place_in_the_output():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([1.0, 0.0])
    with pytest.raises(NonFiniteError) as caught:
        tn.grad([F.sum(x / y)], [y])
    error = str(caught.value)
    assert "First, element [1] is -inf." in error
    assert "The element is a sum; at element [0, 1] of the output input 1 is 0," in error


def test_a_reduction_names_the_element_of_the_output():
    x = leaf([[0.0, 1.0], [1000.0, 1000.0]])  # one infinity has a limit
    with pytest.raises(NaNError) as caught:
        F.sum(F.logsumexp(F.exp(x), axis=1)).backward()
    text = str(caught.value)
    assert "of LogSumExp: the gradient of input 0, shape (2, 2)" in text
    assert "The element belongs to element [1] of the output: input 0 is inf, output 0 is" in text


def test_a_seed_that_is_not_finite_is_the_origin():
    y = leaf([1.0, 1.0]) * 2.0
    y.grad = np.array([1.0, np.inf])
    with pytest.raises(NonFiniteError) as caught:
        y.backward()
    assert "the gradient to start from, shape (2,), float64" in str(caught.value)
    assert "First, element [1] is inf." in str(caught.value)
    assert "look at grad, grad_outputs or loss_scale" in str(caught.value)
    assert y.grad is not None


def test_a_function_of_several_elements_gets_ranges():
    a = leaf([[1e200, 2.0]])
    with pytest.raises(NonFiniteError) as caught:
        F.sum(F.matmul(a * 1e200, leaf([[0.0], [3.0]]))).backward()
    text = str(caught.value)
    assert "no single operand" in text
    assert "The origin is forward computation of Multiply" in text


# --- where it began ----------------------------------------------------------------------------


def test_an_infinity_of_forward_is_the_origin_of_a_gradient():
    x, w = leaf([1.0, 0.0]), leaf([1.0, 1.0], name="w")
    h = F.log(x)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(NonFiniteError) as caught:
        tn.grad([F.sum((h + 1.0) * w)], [w])
    text = str(caught.value)
    assert "backward computation of Multiply: the gradient of input 1" in text
    assert "The origin is forward computation of Log: output 0, shape (2,), float64; " in text
    assert f"{__file__}:{line}" in text
    assert text.endswith("So the gradient of w, shape (2,), has -inf at element [1].")


@pytest.mark.slow
def test_shapes_of_pytorch_are_tuples_too():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    x = tn.asarray([0.0, 1.0], device="torch", requires_grad=True, name="x")
    with tn.using_config("debug", True), pytest.raises(NonFiniteError) as caught:
        F.sum(F.sqrt(x)).backward()
    assert "So the gradient of x, shape (2,), has inf at element [0]." in str(caught.value)


def test_the_origin_is_followed_through_further_functions():
    x = leaf([0.0, 1.0])
    y = F.sqrt(x * 2.0)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(NonFiniteError) as caught:
        F.sum(y).backward()
    error = caught.value
    assert "backward computation of Sqrt" in str(error) and f"{__file__}:{line}" in str(error)
    assert any("Sqrt was called in forward here" in note for note in error.__notes__)


def test_contributions_that_add_up_to_infinity():
    x = leaf([1.0], "float32")
    big = np.asarray([3e38], "float32")
    with pytest.raises(NonFiniteError, match="contributions of several functions add up to inf"):
        F.sum((x * big) * 0.9 + (x * big) * 0.9).backward()


def test_second_order_names_the_user_s_line_of_the_first_function():
    x = leaf([0.0])
    y = F.sum(x**1.5)
    line = inspect.currentframe().f_lineno - 1
    (g,) = tn.grad([y], [x], enable_double_backprop=True)
    with pytest.raises(NonFiniteError) as caught:
        F.sum(g).backward()
    text = str(caught.value)
    assert "inside the backward of PowConstant(1.5), which was called at" in text
    assert f"which was called at {__file__}:{line}" in text and "eps" in text


# --- after the error ---------------------------------------------------------------------------


def test_no_gradient_is_half_written_and_the_graph_still_works():
    x, w = leaf([0.0, 1.0]), leaf([1.0, 1.0])
    y = F.sum(F.sqrt(x) + w)
    for _ in range(2):
        with pytest.raises(NonFiniteError):
            y.backward()
        assert x.grad is None and w.grad is None
    (gw,) = tn.grad([y], [w])
    np.testing.assert_array_equal(gw.array, [1.0, 1.0])
    with tn.using_config(debug=False):
        y.backward()
    np.testing.assert_array_equal(x.grad, [np.inf, 0.5])
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])


def test_nothing_is_kept_after_the_error():
    def fails():
        x = leaf([0.0])
        y = F.sqrt(x)
        with contextlib.suppress(NonFiniteError):
            F.sum(y).backward()
        return weakref.ref(y.creator)

    reference = fails()
    gc.collect()
    assert reference() is None

    def runs():
        y = F.log(leaf([0.0]))  # infinite in forward alone
        return weakref.ref(y.creator)

    reference = runs()
    gc.collect()
    assert reference() is None


def test_an_error_inside_of_a_backward_leaves_no_step_behind():
    class Fails(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes, grad_outputs):
            raise KeyError("planted")

    with pytest.raises(KeyError):
        Fails().apply((leaf(1.0),))[0].backward()
    with pytest.raises(NaNError, match="forward computation of Log"):
        F.log(leaf([-1.0]))


def test_a_nan_inside_of_a_backward_that_is_masked_is_no_error():
    class Masks(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes, grad_outputs):
            (x,) = self.get_retained_inputs()
            return (F.where(x > 0, F.log(x), 0.0),)

    x = leaf([-1.0])
    Masks().apply((x,))[0].backward()
    assert x.grad == 0.0


# --- infinite on purpose -----------------------------------------------------------------------


def test_debug_infinite_lets_infinities_pass_and_their_nan_but_no_other_nan():
    with tn.using_config(debug_infinite=False):
        x = leaf([0.0, 0.0])
        norm_at_0(x).backward()  # inf, then 0 * inf
        assert np.isnan(x.grad).all()
        with pytest.raises(NaNError, match="Atan2"):
            atan2_at_0(leaf([0.0])).backward()


def test_loss_scaling_goes_on_after_an_overflow():
    model = nn.Linear(1, 1)
    optimizer = nn.SGD(model, lr=0.1)
    scaler = nn.LossScaler(init_scale=2.0**127)
    x = tn.as_variable(np.full((1, 1), 1e3, "float32"))
    with tn.using_config(debug_infinite=False):
        scaler.scale(F.sum(model(x))).backward()
    assert scaler.step(optimizer) is False
    scaler.update()
    assert scaler.factor == 2.0**126


# --- the table ---------------------------------------------------------------------------------


def classes_of_functions():
    found, waiting = {}, [tn.FunctionNode]
    while waiting:
        for one in waiting.pop().__subclasses__():
            if one.__module__.startswith("tinynode.functions"):
                found[one.__name__] = one
            waiting.append(one)
    return found


def guards_by_class():
    return {name: one.guard for name, one in classes_of_functions().items() if one.guard}


def test_each_guard_names_functions_that_exist():
    words = "where eps norm softmax vector_norm"
    assert all(word in " ".join(guards_by_class().values()) for word in words.split())
    for guard in guards_by_class().values():
        for name in re.findall(r"(?<![\w.])([a-z_]\w+)\(", guard):
            assert hasattr(F, name) or hasattr(F.linalg, name) or name == "eye", name


def test_a_remainder_has_a_single_operand():
    with pytest.raises(NaNError) as error:
        F.remainder(leaf([1.0, 5.0]), np.asarray([2.0, 0.0]))
    assert "element of several" not in str(error.value)
    assert "There input 0 is 5 and input 1 is 0." in str(error.value)


def test_the_page_has_every_guard():
    page = (ROOT / "docs" / "why-nan.md").read_text("utf-8")
    words = " ".join(page.replace("\\", "").split())
    for name, guard in guards_by_class().items():
        before, found, _ = words.partition(f".** {guard}")
        assert found and name in before.rpartition("- **")[2], name


# --- explain_grad and films --------------------------------------------------------------------


def without_debug(program, x):
    with tn.using_config(debug=False):
        y = program(x)
        y.backward()
    return y


def test_explain_grad_names_the_first_element_and_asks_for_y():
    x = leaf([4.0, 0.0], name="x")
    without_debug(sqrt_at_0, x)
    text = " ".join(x.explain_grad().split())
    assert "1 of its 2 entries are nan or inf. First, element [1] is inf." in text
    assert "x.explain_grad(y), with y the start of backward" in text and "debug=True" in text


@pytest.mark.parametrize("way", WAYS[:2] + WAYS[4:8], ids=lambda way: way[0].__name__)
def test_explain_grad_runs_again_and_names_the_function(way):
    program, values, label, element, operands, guard, _ = way
    x = leaf(values, name="x")
    y = without_debug(program, x)
    before = x.grad.copy()
    text = " ".join(x.explain_grad(y).split())
    assert f"The origin is the backward of {label}" in text
    for part in (element, operands, "Guard: ", guard):
        assert part in text, (part, text)
    np.testing.assert_array_equal(x.grad, before)
    assert y.grad is None


def test_explain_grad_names_the_line_if_debug_mode_saw_forward():
    x = leaf([0.0], name="x")
    y = sqrt_at_0(x)
    with tn.using_config(debug=False):
        y.backward()
    assert line_of(sqrt_at_0) in "".join(x.explain_grad(y).split())


def test_explain_grad_says_if_another_backward_is_finite_or_does_not_reach():
    x = leaf([1.0], name="x")
    x.grad = np.array([np.nan])
    assert "gives finite entries" in " ".join(x.explain_grad(F.sum(x)).split())
    assert "does not depend on it" in " ".join(x.explain_grad(F.sum(leaf([1.0]))).split())


def titles(film):
    data = film.data()
    return [step["title"] for picture in data["pictures"] for step in picture["steps"]]


@pytest.mark.parametrize("debug", [False, True])
def test_the_film_tells_the_facts_at_the_step(debug):
    x = leaf([4.0, 0.0], name="x")
    with tn.using_config(debug=debug), tn.show.record() as film:
        y = F.sum(F.sqrt(x * 1.0))
        try:
            y.backward()
        except NonFiniteError:
            assert debug
    (title,) = [title for title in titles(film) if title.startswith("Sqrt takes")]
    assert "Guard: sqrt(x)" in title
    assert "The gradient of input 0, shape (2,), float64, is not finite. First, element" in title
    assert "There output 0 is 0 and the gradient of output 0 is 1." in title
    after = "The backward of Multiply fails" if debug else "Multiply takes"
    assert any(title.startswith(after) for title in titles(film))
    assert titles(film)[-1].startswith("Backward ended with an error") is debug
    assert "Guard: sqrt(x)" in film.to_text()


def test_the_film_tells_the_facts_of_forward():
    with tn.using_config(debug=False), tn.show.record() as film:
        F.exp(leaf([1.0, 1e3]))
    assert "First, element [1] is inf. There input 0 is 1000. Guard: exp(x)" in titles(film)[0]


def test_a_long_loop_with_infinities_keeps_one_film():
    with tn.using_config(debug=False), tn.show.record() as film:
        for i in range(40):
            F.exp(leaf([1e3 + i]))
    assert sum("Guard" in title for title in titles(film)) == 20
