"""The strict backend is what it says: another array library, with several devices."""

from __future__ import annotations

import pathlib

import array_api_strict
import numpy as np
import pytest

import tinynode as tn
import tinynode_strict
from tinynode import functions as fn
from tinynode.errors import DeviceError, DeviceMixError

DEVICES = ["strict:CPU_DEVICE", "strict:device1", "strict:device2"]


def test_get_device_names_the_three_devices_and_defaults_to_the_first():
    assert [str(tn.get_device(name)) for name in DEVICES] == DEVICES
    assert tn.get_device("strict") is tn.get_device("strict:CPU_DEVICE")
    assert len({tn.get_device(name) for name in DEVICES}) == 3
    with pytest.raises(DeviceError, match="no device 'strict:device9'"):
        tn.get_device("strict:device9")


@pytest.mark.parametrize("name", DEVICES)
def test_array_goes_to_the_device_and_back(name):
    device = tn.get_device(name)
    host = np.arange(6.0).reshape(2, 3)
    array = device.from_host(host)
    assert type(array) is type(array_api_strict.zeros(()))
    assert array.device == array_api_strict.Device(name.partition(":")[2])
    assert tn.Variable(array).device is device
    back = tn.to_host(array)
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, host)


@pytest.mark.parametrize("name", DEVICES)
def test_forward_and_backward_stay_on_the_device(name):
    device = tn.get_device(name)
    x = tn.asarray([1.0, 2.0], device=device)
    y = fn.sum(fn.exp(x) * 2.0)
    y.backward()
    assert y.device is device
    assert x.grad_var.device is device
    assert type(x.grad) is type(y.array) is type(array_api_strict.zeros(()))
    np.testing.assert_allclose(tn.to_host(x.grad), 2 * np.exp([1, 2]), rtol=1e-6)


def test_using_device_puts_new_variables_there():
    with tn.using_device("strict:device2"):
        assert tn.asarray([1.0]).device is tn.get_device("strict:device2")
    assert tn.asarray([1.0]).device is tn.get_device("numpy")


@pytest.mark.parametrize("other", ["numpy", "strict:device2"])
def test_devices_do_not_mix(other):
    x = tn.asarray([1.0], device="strict:device1")
    y = tn.asarray([1.0], device=other)
    with pytest.raises(DeviceMixError, match=f"strict:device1.*{other}"):
        x + y
    if other == "numpy":  # an array of NumPy goes to the device
        assert str((x + y.array).device) == "strict:device1"
        return
    with pytest.raises(DeviceMixError, match=f"{other}.*strict:device1"):
        x + y.array


def test_moving_is_differentiable_and_its_gradient_comes_back():
    x = tn.asarray([1.0, 2.0], dtype="float64")
    y = fn.sum(x.to_device("strict:device1") ** 3)
    y.backward(enable_double_backprop=True)
    assert x.grad_var.device is x.device
    np.testing.assert_array_equal(x.grad, [3, 12])
    gx = x.grad_var
    x.cleargrad()
    fn.sum(gx).backward()
    np.testing.assert_array_equal(x.grad, [6, 12])


def test_numpy_isms_are_refused():
    """The point of this backend: if the library were lenient, the table would prove nothing."""
    x = array_api_strict.asarray([1.0, 2.0], device=array_api_strict.Device("device1"))
    with pytest.raises(DeviceError, match="to_host"):
        np.asarray(x)
    with pytest.raises(TypeError):
        x + np.ones(2)
    with pytest.raises(TypeError):
        array_api_strict.asarray([1, 2]) + 0.5
    assert not hasattr(array_api_strict, "add_reduce")
    assert not hasattr(x, "reshape")


def test_fulfils_the_protocol_of_a_backend():
    names = {name for name in vars(tn.Backend) if not name.startswith("_")}
    assert names >= {"from_host", "to_host", "forward", "lift"}
    assert all(hasattr(tinynode_strict, name) for name in names)
    assert tinynode_strict.lift(1.0) is None
    assert tn.synchronize("strict:device1") is None
    source = pathlib.Path(tinynode_strict.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 90
