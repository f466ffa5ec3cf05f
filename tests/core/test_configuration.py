"""Settings: values for every thread, values of one thread, and blocks that restore them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tinynode as tn
from tinynode import configuration
from tinynode.errors import ConfigError

F = tn.functions


@pytest.fixture(autouse=True)
def restore():
    """Each test leaves the settings of this thread, and of all threads, as it found them."""
    own = dict(vars(tn.config))
    of_all = {name: getattr(tn.global_config, name) for name in configuration._assigned}
    yield
    vars(tn.config).clear()
    vars(tn.config).update(own)
    for name in list(configuration._assigned):
        delattr(tn.global_config, name)
    for name, value in of_all.items():
        setattr(tn.global_config, name, value)


def in_thread(call):
    result = []
    thread = threading.Thread(target=lambda: result.append(call()))
    thread.start()
    thread.join()
    return result[0]


# --- the two objects -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable_backprop", True),
        ("train", True),
        ("debug", False),
        ("debug_infinite", True),
        ("type_check", True),
        ("dtype", "float32"),
        ("full_tracebacks", False),
        ("lazy_grad_sum", False),
        ("recompute_phase", None),
        ("device", None),
    ],
)
def test_the_settings_and_their_defaults(name, value):
    assert getattr(tn.global_config, name) == value
    assert getattr(tn.config, name) == value


def test_config_falls_back_to_global_config():
    tn.global_config.train = False
    assert tn.config.train is False
    tn.config.train = True
    assert tn.global_config.train is False and tn.config.train is True
    del tn.config.train
    assert tn.config.train is False


def test_del_uncovers_the_global_value_and_fails_where_there_is_no_own_value():
    tn.config.train = False
    del tn.config.train
    assert tn.config.train is True
    with pytest.raises(AttributeError):
        del tn.config.train


def test_reading_an_unknown_key_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_key"):
        _ = tn.config.no_such_key
    with pytest.raises(AttributeError, match="no_such_key"):
        _ = tn.global_config.no_such_key


def test_new_keys_may_be_set_in_both():
    tn.config.my_key = 1
    assert tn.config.my_key == 1 and not hasattr(tn.global_config, "my_key")
    tn.global_config.other_key = 2
    assert tn.config.other_key == 2
    with tn.using_config("my_key", 3):
        assert tn.config.my_key == 3
    assert tn.config.my_key == 1


def test_a_slip_of_the_pen_is_refused_in_global_config_too():
    with pytest.raises(ConfigError, match="no setting 'devcie': did you mean 'device'"):
        tn.global_config.devcie = "fast"
    assert not hasattr(tn.config, "devcie") and not hasattr(tn.global_config, "devcie")


def test_del_of_a_global_value_goes_back_to_the_one_at_the_import():
    tn.global_config.train = False
    tn.global_config.own_key = 1
    assert in_thread(lambda: (tn.config.train, tn.config.own_key)) == (False, 1)
    del tn.global_config.train, tn.global_config.own_key
    assert tn.config.train is True and not hasattr(tn.config, "own_key")
    with pytest.raises(AttributeError):
        del tn.global_config.own_key


def test_global_config_holds_nothing_of_its_own():
    tn.config.train = False
    assert tn.global_config.train is True
    tn.global_config.train = False
    assert in_thread(lambda: tn.global_config.train) is False
    assert vars(tn.global_config) == {}


def test_origin_of_a_global_value_that_equals_the_default():
    assert tn.config.origin("train") == "the default"
    tn.global_config.train = True
    assert tn.config.origin("train") == "tinynode.global_config"
    del tn.global_config.train
    assert tn.config.origin("train") == "the default"


def assign_dtype(settings, value):
    settings.dtype = value


@pytest.mark.parametrize("value", ["float99", "int64", None, np.int32, np.dtype("int64"), float])
@pytest.mark.parametrize(
    "assign",
    [
        lambda value: assign_dtype(tn.config, value),
        lambda value: assign_dtype(tn.global_config, value),
        lambda value: tn.using_config("dtype", value).__enter__(),
        lambda value: tn.using_config(train=False, dtype=value).__enter__(),
    ],
)
def test_a_dtype_that_there_is_not_is_refused_when_it_is_assigned(assign, value):
    with pytest.raises(ConfigError, match=r"dtype must be one of float32, float64, float16, got"):
        assign(value)
    assert tn.config.dtype == "float32" and tn.config.train is True
    assert tn.asarray([1.0]).array.dtype == np.float32


def test_show_prints_sorted_aligned_entries_of_this_thread():
    tn.config.my_key = "x"
    file = io.StringIO()
    tn.config.show(file)
    lines = file.getvalue().splitlines()
    names = [line.split()[0] for line in lines]
    assert names == sorted(names) and {"train", "my_key", "enable_backprop"} <= set(names)
    columns = {len(line) - len(line[line.index(" ") :].lstrip()) for line in lines}
    assert len(columns) == 1  # the values begin in one column
    assert "my_key" + " " * (columns.pop() - 6) + "'x'" in lines


def test_show_prints_to_standard_output_by_default(capsys):
    tn.config.show()
    assert "enable_backprop True" in capsys.readouterr().out


# --- using_config ----------------------------------------------------------------------------


def test_both_forms_of_using_config_work_and_give_none():
    with tn.using_config("train", False) as value:
        assert tn.config.train is False and value is None
    with tn.using_config(train=False, debug=True) as value:
        assert tn.config.train is False and tn.config.debug is True and value is None
    assert tn.config.train is True and tn.config.debug is False


def test_using_config_deletes_an_entry_that_was_not_there():
    with tn.using_config("train", False):
        assert "train" in vars(tn.config)
    assert "train" not in vars(tn.config)
    with tn.using_config("train", False):
        tn.global_config.train = "new"
    assert tn.config.train == "new"  # nothing covers the global value


def test_using_config_restores_an_entry_that_was_there():
    tn.config.train = "mine"
    with tn.using_config("train", False):
        pass
    assert vars(tn.config)["train"] == "mine"


def test_using_config_restores_after_an_exception_and_after_a_change_inside():
    with pytest.raises(KeyError), tn.using_config("train", False):
        raise KeyError
    assert "train" not in vars(tn.config)
    with tn.using_config("train", False):
        del tn.config.train
    assert "train" not in vars(tn.config)
    with tn.using_config("train", False):
        tn.config.train = "other"
    assert tn.config.train is True


@pytest.mark.parametrize("event", range(20))
def test_an_interrupt_while_using_config_begins_changes_nothing(event):
    """A KeyboardInterrupt may come between any two lines of ours."""
    left = [event]

    def interrupt(frame, kind, argument):
        if frame.f_code.co_name != "using_config" or inside:
            return interrupt
        if kind == "line":
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        return interrupt

    inside = False
    tracer = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with contextlib.suppress(KeyboardInterrupt), tn.using_config(train=False, debug=True):
            inside = True
    finally:
        sys.settrace(tracer)
    assert "train" not in vars(tn.config) and "debug" not in vars(tn.config)


def test_using_config_nests():
    with tn.using_config("train", 1):
        with tn.using_config("train", 2):
            assert tn.config.train == 2
        assert tn.config.train == 1
    assert tn.config.train is True


def test_an_unknown_name_is_an_error_with_a_suggestion_before_anything_changes():
    with (
        pytest.raises(AttributeError, match=r"no setting 'trian': did you mean 'train'"),
        tn.using_config(debug=True, trian=False),
    ):
        raise AssertionError
    assert "debug" not in vars(tn.config)
    with pytest.raises(AttributeError, match=r"the settings are .*enable_backprop"):
        tn.using_config("qqqq", 1).__enter__()


# --- the modes -------------------------------------------------------------------------------


def test_modes_of_back_propagation_nest_and_the_inner_one_wins():
    seen = [tn.config.enable_backprop]
    with tn.no_backprop_mode():
        seen.append(tn.config.enable_backprop)
        with tn.force_backprop_mode():
            seen.append(tn.config.enable_backprop)
            with tn.no_backprop_mode():
                seen.append(tn.config.enable_backprop)
            seen.append(tn.config.enable_backprop)
        seen.append(tn.config.enable_backprop)
    assert [*seen, tn.config.enable_backprop] == [True, False, True, False, True, False, True]


def test_one_object_of_a_mode_serves_nested_blocks():
    mode = tn.no_backprop_mode()
    with mode:
        with mode:
            assert not tn.config.enable_backprop
        assert not tn.config.enable_backprop
    assert tn.config.enable_backprop


def test_a_block_may_end_in_another_thread() -> None:
    def inside() -> Iterator[None]:
        with tn.no_backprop_mode():
            yield

    generator = inside()
    next(generator)
    assert not tn.config.enable_backprop
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert tn.config.enable_backprop


def test_one_object_of_a_mode_serves_several_threads():
    """The blocks overlap: each thread gets its own value back."""
    off, x = tn.no_backprop_mode(), tn.Variable(np.ones(2))
    entered, go_on = threading.Event(), threading.Event()

    def work():
        with off:
            entered.set()
            assert go_on.wait(10)
        return (x * 2).requires_grad

    with ThreadPoolExecutor(1) as pool:
        with off:
            waiting = pool.submit(work)
            assert entered.wait(10)
        assert (x * 2).requires_grad
        go_on.set()
        assert waiting.result()


def test_force_backprop_mode_records_inside_no_backprop_mode():
    x = tn.Variable(np.ones(1))
    with tn.no_backprop_mode():
        y = x * x
        with tn.force_backprop_mode():
            z = x * x
    assert y.creator is None and z.creator is not None
    z.backward()
    assert x.grad == 2.0


def test_is_debug_and_set_debug():
    assert tn.is_debug() is False
    tn.set_debug(True)
    assert tn.is_debug() is True and tn.config.debug is True
    tn.set_debug(False)
    assert tn.is_debug() is False
    with tn.using_config("debug", True):
        assert tn.is_debug() is True


# --- threads ---------------------------------------------------------------------------------


def test_a_new_thread_starts_from_the_global_values():
    tn.config.train = False
    assert in_thread(lambda: tn.config.train) is True
    tn.global_config.train = "shared"
    assert in_thread(lambda: tn.config.train) == "shared"
    assert tn.config.train is False


def test_what_a_thread_sets_stays_its_own():
    def work():
        tn.config.train = "theirs"
        with tn.no_backprop_mode():
            return tn.config.train, tn.config.enable_backprop

    assert in_thread(work) == ("theirs", False)
    assert tn.config.train is True and tn.config.enable_backprop is True


def test_no_backprop_mode_of_one_thread_does_not_reach_the_others():
    x = tn.Variable(np.ones(1))
    with tn.no_backprop_mode():
        assert in_thread(lambda: (x * x).creator) is not None
        assert (x * x).creator is None


def test_a_thread_of_a_pool_keeps_its_own_settings_between_tasks_and_blocks_restore_them():
    barrier = threading.Barrier(2)

    def train(value):
        barrier.wait()
        with tn.using_config(train=value, enable_backprop=bool(value % 2)):
            barrier.wait()
            x = tn.Variable(np.full(1, float(value)))
            y = x * x
            seen = tn.config.train, y.creator is not None
            barrier.wait()
        return (*seen, tn.config.train, tn.config.enable_backprop)

    with ThreadPoolExecutor(2) as pool:
        for round_ in range(3):
            results = list(pool.map(train, [2 * round_, 2 * round_ + 1]))
            assert results == [
                (2 * round_, False, True, True),
                (2 * round_ + 1, True, True, True),
            ]
    assert tn.config.train is True


def test_backward_in_several_threads_at_once():
    def work(seed):
        x = tn.Variable(np.full(3, float(seed)))
        for _ in range(20):
            x.cleargrad()
            F.sum(x * x * x).backward(enable_double_backprop=seed % 2 == 0)
        return x.grad

    with ThreadPoolExecutor(4) as pool:
        for seed, gradient in enumerate(pool.map(work, range(8))):
            np.testing.assert_array_equal(gradient, np.full(3, 3.0 * seed**2))


def test_blocks_without_await_do_not_disturb_other_tasks():
    """Tasks of one thread share the settings; ``docs/graph.md`` says how to keep tasks apart."""
    seen = []

    def plain():
        with tn.no_backprop_mode():
            seen.append(tn.config.enable_backprop)

    async def task():
        for _ in range(3):
            plain()
            await asyncio.to_thread(plain)
            await asyncio.sleep(0)
            seen.append(tn.config.enable_backprop)

    async def both():
        await asyncio.gather(task(), task())

    asyncio.run(both())
    assert sorted(seen) == [False] * 12 + [True] * 6
    assert tn.config.enable_backprop
