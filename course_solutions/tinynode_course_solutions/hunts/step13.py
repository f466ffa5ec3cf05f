"""Bug hunt 13, solved: weak references say what is kept, and each rule has a graph of its own."""

import gc
import weakref

import numpy as np


def box(engine, *numbers, **options):
    return engine.Variable(np.array(numbers), **options)


def expect_value_error(call):
    try:
        call()
    except ValueError:
        return
    raise AssertionError("no ValueError")


def test_a_result_is_freed_at_once(engine):
    gc.disable()
    x = box(engine, 1.0)
    y = engine.square(x)
    seen = [weakref.ref(y), weakref.ref(y.node), weakref.ref(y.array)]
    del y
    assert [one() for one in seen] == [None] * 3


def test_no_array_is_kept_without_need(engine):
    gc.disable()
    x = box(engine, 1.0)
    inner = engine.negative(x)
    y = engine.exp(inner)
    seen = weakref.ref(inner.array)
    del inner
    assert seen() is None
    z = engine.negative(y)
    seen = weakref.ref(z.array)
    top = engine.negative(z)
    del z
    assert seen() is None and top.array is not None


def test_what_is_recorded(engine):
    x, c = box(engine, 2.0), box(engine, 5.0, requires_grad=False)
    assert engine.square(c).creator_node is None
    assert not engine.square(c).requires_grad
    y = c * x
    assert y.requires_grad
    y.backward()
    assert c.grad is None and x.grad.tolist() == [5.0]
    whole = engine.Variable(np.array([1, 2]))
    assert not whole.requires_grad
    wanted = engine.Variable(np.array([1, 2]), requires_grad=True)
    assert not engine.negative(wanted).requires_grad


def test_blocks(engine):
    x = box(engine, 2.0)
    with engine.no_backprop_mode():
        assert engine.square(x).creator_node is None
        with engine.no_backprop_mode():
            pass
        assert engine.square(x).creator_node is None
    assert engine.square(x).creator_node is not None
    try:
        with engine.no_backprop_mode():
            raise KeyError
    except KeyError:
        pass
    assert engine.square(x).creator_node is not None


def test_backward_refuses(engine):
    expect_value_error(box(engine, 1.0).backward)
    expect_value_error(engine.square(box(engine, 1.0, 2.0)).backward)


def test_backward_adds(engine):
    x = box(engine, 3.0)
    a = engine.square(x)
    y = engine.square(a) + a
    for expected in (4 * 27 + 6.0, 2 * (4 * 27 + 6.0)):
        y.backward()
        assert x.grad.tolist() == [expected]
        assert a.grad is None and y.grad is None
    other = a + engine.square(a)
    x.cleargrad()
    other.grad = np.array([2.0])
    other.backward()
    assert other.grad is None and x.grad.tolist() == [2 * (4 * 27 + 6.0)]


def test_unchain(engine):
    x = box(engine, 3.0)
    y = engine.square(x)
    z = y * x
    y.unchain()
    assert y.creator_node is None
    z.backward()
    assert x.grad.tolist() == [9.0]
