"""What people type from habit works, or the first line of the error has the remedy."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from habit_cases import REFUSED, WORKS

import tinynode as tn
from tinynode import habits, nn
from tinynode.habits.table import LIBRARIES, TABLE
from tools import habit_tables

ROWS = [(library, habit) for library, habits in LIBRARIES.items() for habit in habits]


F = tn.functions


def names() -> dict[str, Any]:
    """The names in the code of a habit."""
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    return {
        "tn": tn,
        "F": F,
        "nn": nn,
        "np": np,
        "a": a,
        "labels": np.array([0, 1, 1]),
        "x": tn.asarray(a, "float32"),
        "v": tn.asarray([1.0, 2.0, 4.0]),
        "s": tn.asarray(2.0),
        "c": tn.asarray(a, "float32", requires_grad=False),
        "model": nn.Linear(2, 3),
    }


def test_there_are_three_hundred_habits() -> None:
    codes = [code for code, _ in WORKS] + [code for code, _ in REFUSED]
    assert len(codes) == len(set(codes)) >= 300


def test_habits_with_one_meaning_work() -> None:
    wrong = []
    for code, expected in WORKS:
        value = eval(code, names())
        if isinstance(value, tn.Variable):
            value = value.array
        if isinstance(value, np.ndarray) or isinstance(expected, float):
            same = np.allclose(value, expected, atol=1e-5)
        else:
            same = value == expected
        if not same:
            wrong.append((code, value))
    assert wrong == []


def test_other_habits_name_the_remedy_in_the_first_line() -> None:
    wrong = []
    for code, remedy in REFUSED:
        try:
            eval(code, names())
        except Exception as error:
            line = str(error).splitlines()[0]
            if remedy not in line:
                wrong.append((code, line))
        else:
            wrong.append((code, "no error"))
    assert wrong == []


# --- the table -----------------------------------------------------------------------------------

OBJECTS: dict[str, Any] = {
    "tn": tn,
    "F": F,
    "nn": nn,
    "linalg": F.linalg,
    "random": tn.random,
    "initializers": nn.initializers,
    "x": names()["x"],
    "model": nn.Sequential(nn.Linear(2, 3)),
    "optimizer": nn.SGD(nn.Linear(2, 3), lr=0.1),
    "average": nn.ExponentialMovingAverage(nn.Linear(2, 3)),
}


def test_every_row_names_what_exists() -> None:
    roots = OBJECTS | {"y": OBJECTS["x"]}
    for library, habit in ROWS:
        found = re.findall(r"\b(tn|F|nn|x|y|model|optimizer)((?:\.[A-Za-z]\w*)+)", habit.write)
        for root, path in found:
            value = roots[root]
            for name in path[1:].split("."):
                if value is None:  # the creator of a leaf
                    break
                assert name in dir(value), f"{library}: {habit.write}: {name}"
                value = getattr(value, name)
        assert "\n" not in habit.write and habit.note == habit.note.strip()
        assert set(habit.places.split()) <= set(OBJECTS)


def test_every_name_of_the_table_is_answered() -> None:
    for (place, name), found in TABLE.items():
        place_has = {*dir(OBJECTS[place]), *getattr(OBJECTS[place], "__dict__", ())}
        if name in place_has:
            continue  # a real name wins
        with pytest.raises(AttributeError) as caught:
            getattr(OBJECTS[place], name)
        assert habits.in_full(found.habit.write) in str(caught.value).splitlines()[0]


PYTORCH_PAGE = Path(__file__).resolve().parents[2] / "docs" / "from-pytorch.md"


def test_the_names_of_the_page_work_or_are_answered() -> None:
    page = PYTORCH_PAGE.read_text(encoding="utf-8")
    roots = {"torch": tn, "F": F, "nn": nn, "x": OBJECTS["x"], "model": OBJECTS["model"]}
    found = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    names = [name for cell in found for name in re.findall(r"`(\w+)\.(\w+)", cell)]
    assert len(names) > 40
    silent = []
    for root, name in names:
        if root not in roots:
            continue
        try:
            getattr(roots[root], name)
        except AttributeError as error:
            if "write" not in str(error):
                silent.append((root, name))
    assert silent == []


def test_the_page_has_every_habit() -> None:
    page = habit_tables.with_tables(PYTORCH_PAGE.read_text(encoding="utf-8"))
    for _, habit in ROWS:
        assert all(f"`{name}`" in page for name in habit.names.split())
        assert f"| `{habit.write}` | {habit.note} |" in page


# --- look-ups ------------------------------------------------------------------------------------


def test_hasattr_and_getattr_with_a_default_see_no_difference() -> None:
    x = tn.asarray(1.0)
    assert not hasattr(x, "unsqueeze") and not hasattr(x, "__cuda_array_interface__")
    assert getattr(nn, "ReLU", None) is None and not hasattr(tn, "nothing_like_it")
    with pytest.raises(ImportError):
        exec("from tinynode.functions import cat", {})


def test_copies_and_pickles_ask_for_private_names_only() -> None:
    x = tn.asarray([1.0, 2.0], name="x")
    for copied in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.name == "x" and copied.array.tolist() == [1.0, 2.0]
    model = pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(2, 3))))
    assert copy.deepcopy(model)([[1, 2]]).shape == (1, 3)


def test_a_module_of_a_user_with_keywords_of_its_own() -> None:
    class Own(nn.Module):
        def __init__(self, dim: int, **rest: Any) -> None:
            self.dim, self.rest = dim, rest

    own = Own(dim=3, inplace=True)
    assert own.dim == 3 and own.rest == {"inplace": True}
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        nn.Linear(2, 3, nonsense=1)  # type: ignore[call-arg]


def test_the_tables_are_read_at_the_first_wrong_name() -> None:
    code = (
        "import sys, tinynode as tn; assert 'tinynode.habits.table' not in sys.modules\n"
        "hasattr(tn, 'cat'); assert 'tinynode.habits.table' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- NumPy's functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
def test_gradients_come_back_through_numpys_functions(order: int) -> None:
    x, a = tn.asarray([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
    operands = (x, a)[::order]
    for function in (np.add, np.multiply, np.maximum):
        x.cleargrad()
        np.sum(function(*operands) * np.exp(x)).backward()
        own = tn.asarray([1.0, 2.0])
        same = {np.add: F.add, np.multiply: F.multiply, np.maximum: F.maximum}[function]
        F.sum(same(own, a) * F.exp(own)).backward()
        np.testing.assert_allclose(x.grad, own.grad)


def test_numpys_functions_give_variables_and_keep_the_dtype() -> None:
    x = tn.asarray([1.0, 2.0])
    for y in (np.float64(2) * x, np.ones(2) + x, x + np.ones(2), np.sin(x), np.mean(x)):
        assert type(y) is tn.Variable and y.dtype == np.float32 and y.requires_grad


def test_an_array_does_not_take_the_sum_in_place() -> None:
    a = np.ones(2)
    with pytest.raises(TypeError, match="a = a \\+ x"):
        a += tn.asarray([1.0, 2.0])
    assert a.tolist() == [1.0, 1.0]


def test_numpys_functions_stand_in_compiled_functions() -> None:
    def loss(x: Any, a: Any) -> Any:
        return np.sum(np.tanh(x) * a)

    x, a = tn.asarray([0.5, 1.0]), np.array([1.0, 2.0], np.float32)
    compiled = tn.compile(loss)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x, a).array, loss(x, a).array)


def test_the_number_of_elements_is_an_integer() -> None:
    x = tn.asarray([[1.0, 2.0]])
    assert type(x.size + 0) is int and repr(x.size) == "2" and isinstance(x.size, int)
    net = tn.trace(lambda z: F.sum(z) * z.size, x).net
    assert "ElementCount" not in tn.net.dumps(net)


# --- the rest of the first hour ------------------------------------------------------------------


def test_the_settings_have_a_text() -> None:
    assert repr(tn.config).startswith("tinynode.config(") and "dtype='float32'" in repr(tn.config)
    assert repr(tn.global_config).startswith("tinynode.global_config(")


def test_a_device_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'cupy'.* Devices that work here: .*numpy"):
        tn.config.device = "cuda"
    assert tn.config.device is None
    tn.config.device = "fast"
    assert str(tn.asarray(1.0).device) == "fast"
    del tn.config.device


def test_the_net_of_a_lambda_says_so() -> None:
    assert repr(tn.trace(lambda x: x * 2, tn.asarray(1.0)).net).startswith("<NetOp of a lambda: ")


def test_misspelt_names_in_no_grad_set_are_refused() -> None:
    traced = tn.trace(lambda x: F.sum(x * x), tn.asarray([1.0]))
    scope = tn.net.Scope()
    with pytest.raises(ValueError, match="no_grad_set has 'wieght', no variable of the net"):
        tn.net.backward(traced.net, scope, {"wieght"})


def test_the_note_on_retaining_stands_only_where_it_applies() -> None:
    class Wrong(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return inputs

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            _, _ = grad_outputs
            return grad_outputs

    y = Wrong().apply((tn.asarray(1.0),))[0]
    with pytest.raises(ValueError, match="not enough values") as caught:
        y.backward()
    assert not any("retain_" in note for note in caught.value.__notes__)


def test_functions_of_two_dtypes_name_both_in_the_first_sentence() -> None:
    x = tn.asarray(np.ones((1, 2), np.int64))
    with pytest.raises(TypeError) as caught:
        F.linear(x, nn.Linear(2, 3).weight)
    first = str(caught.value).splitlines()[0]
    assert first == ("Linear: x is int64, w is float32: cast one, such as x.astype('float32').")


def test_wrong_names_are_quick() -> None:
    """``hasattr`` of a private name, as of array libraries, makes no suggestion."""
    assert str(habits.missing_attribute("x", "_hidden", ["hidden"])).endswith("'_hidden'")
