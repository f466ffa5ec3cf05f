"""Devices and backends: dispatch of forward, Fallback, mixing, moving, registering.

The fake backend here lies over NumPy's memory, as a fast path does: it owns the same arrays, says
that it is a GPU, and has a table of kernels.
"""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import array_api_strict
import numpy as np
import op_drivers
import pytest
from device_tables import restored_tables
from op_cases import CASES

import tinynode as tn
from tinynode.devices import current_device, fallback_uses, find_device
from tinynode.errors import DeviceError, DeviceMixError, OutputError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


def make_backend(name="fake", capabilities=("gpu",), indices=("cpu",)):
    kernels = {}

    def forward(node, arrays):
        kernel = kernels.get(type(node).__name__)
        return node.forward(arrays) if kernel is None else kernel(node, arrays)

    return SimpleNamespace(
        name=name,
        capabilities=frozenset(capabilities),
        kernels=kernels,
        synchronized=[],
        devices=lambda: indices,
        namespace=lambda: np,
        owns=lambda array: isinstance(array, np.ndarray),
        index_of=lambda array: indices[0],
        from_host=lambda array, index: np.array(array),
        to_host=lambda array: array,
        synchronize=lambda index: made.synchronized.append(index),
        lift=lambda value: np.asarray(value) if isinstance(value, np.generic) else None,
        forward=forward,
    )


made = SimpleNamespace(synchronized=[])


@pytest.fixture
def fake(monkeypatch):
    """A registered backend, forgotten again after the test."""
    with restored_tables():
        fallback_uses.clear()
        made.synchronized.clear()
        module = make_backend()
        tn.register_backend(module)
        yield module
        fallback_uses.clear()


def fallbacks():
    """How often functions fell back."""
    return {key: use.calls for key, use in fallback_uses.items()}


def on(device, values, dtype=np.float64, **settings):
    with tn.using_device(device):
        return variable(values, dtype, **settings)


# --- naming and finding ----------------------------------------------------------------------


def test_devices_are_interned_and_written_without_an_at_sign():
    numpy_device = tn.get_device("numpy")
    assert tn.get_device("numpy") is numpy_device is tn.get_device(numpy_device)
    assert tn.get_device("numpy:cpu") is numpy_device
    assert str(numpy_device) == "numpy" and repr(numpy_device) == "Device('numpy')"
    assert numpy_device.xp is np
    strict = tn.get_device("strict")
    assert strict is tn.get_device("strict:CPU_DEVICE") and strict is not tn.get_device(
        "strict:device1"
    )
    assert pickle.loads(pickle.dumps(strict)) is strict


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", "there is no backend 'nowhere'; known are: .*numpy"),
        ("nunpy", "did you mean 'numpy'"),
        ("numpy:7", "there is no device 'numpy:7'; there are: numpy"),
        ("strict:device9", "there are: strict:CPU_DEVICE, strict:device1"),
        ("cpu", "did you mean 'numpy'"),
        ("cuda", "did you mean 'cupy'"),
        ("cuda:0", "did you mean 'cupy'"),
        ("CUDA:1", "did you mean 'cupy'"),
        ("gpu", "did you mean 'cupy'"),
        ("@numpy", "there is no backend '@numpy'; did you mean 'numpy'"),
    ],
)
def test_an_unknown_device_is_a_value_error_that_says_which_there_are(spec, message):
    with pytest.raises(ValueError, match=message) as caught:
        tn.get_device(spec)
    assert isinstance(caught.value, DeviceError)


@pytest.mark.parametrize("spec", [1, 1.5, ("numpy",), object()])
def test_a_device_spec_of_another_type_is_a_type_error(spec):
    with pytest.raises(TypeError, match="get_device: expected a name"):
        tn.get_device(spec)


def test_using_device_refuses_an_unknown_device_before_the_block():
    with pytest.raises(DeviceError):
        tn.using_device("nowhere")
    assert str(current_device()) == "numpy"


def test_find_device_of_arrays_and_of_other_things():
    assert find_device(np.ones(1)) is tn.get_device("numpy")
    one = array_api_strict.ones(1, device=array_api_strict.Device("device1"))
    assert find_device(one) is tn.get_device("strict:device1")
    for value in (1.0, [1.0], np.float64(1), None, np.ndarray, variable([1.0])):
        assert find_device(value) is None


def test_a_variable_stands_on_the_current_device_if_that_owns_the_array(fake):
    assert str(variable([1.0]).device) == "numpy"
    assert str(on("fake", [1.0]).device) == "fake"
    with tn.using_device("strict"):
        assert str(variable([1.0]).device) == "strict:CPU_DEVICE"  # where the array is copied to


def test_namespace_of_an_array():
    assert tn.namespace_of(np.ones(1)) is np
    assert tn.namespace_of(array_api_strict.ones(1)) is array_api_strict
    with pytest.raises(DeviceMixError):
        tn.namespace_of([1.0])


# --- registering -----------------------------------------------------------------------------


def test_a_backend_that_lacks_something_is_refused_by_name_of_what_it_lacks(fake):
    with pytest.raises(DeviceError, match="has no capabilities, devices, forward"):
        tn.register_backend(SimpleNamespace(name="half"))
    with pytest.raises(DeviceError, match="'fake' is taken"):
        tn.register_backend(make_backend())
    tn.register_backend(fake)  # the same one again is fine


def test_synchronize(fake):
    tn.synchronize("fake")
    assert made.synchronized == ["cpu"]
    tn.synchronize()


# --- forward_cpu and forward_gpu -------------------------------------------------------------


class GpuArray:
    """An array type of its own, with just what a function here needs."""

    def __init__(self, host):
        self.host = host
        self.shape, self.dtype, self.ndim, self.size = host.shape, host.dtype, host.ndim, host.size

    def __add__(self, other):
        return GpuArray(self.host + other)


@pytest.fixture
def gpu(fake):
    """A backend with the capability gpu whose arrays no other backend owns."""
    module = make_backend("gpu", ("gpu",), ("0", "1"))
    module.owns = lambda array: isinstance(array, GpuArray)
    module.from_host = lambda array, index: GpuArray(array)
    module.to_host = lambda array: array.host
    tn.register_backend(module)
    return module


class PerDevice(tn.FunctionNode):
    def forward_cpu(self, inputs):
        return (inputs[0] + 1.0,)

    def forward_gpu(self, inputs):
        return (inputs[0] + 2.0,)


class OldPerDevice(tn.Function):
    def forward_cpu(self, inputs):
        return (inputs[0] + 1.0,)

    def forward_gpu(self, inputs):
        return (inputs[0] + 2.0,)


@pytest.mark.parametrize(
    "call", [lambda x: PerDevice().apply((x,))[0], lambda x: OldPerDevice()(x)]
)
def test_forward_by_default_calls_forward_gpu_for_arrays_of_a_gpu_backend(gpu, call):
    assert call(variable([0.0])).array == 1.0
    y = call(tn.Variable(GpuArray(np.zeros(1))))
    assert y.array.host == 2.0 and str(y.device) == "gpu:0" and y.creator is not None


def test_forward_gpu_is_found_on_the_instance(gpu):
    node = PerDevice()
    node.forward_gpu = lambda inputs: (inputs[0] + 7.0,)
    assert node.apply((tn.Variable(GpuArray(np.zeros(1))),))[0].array.host == 7.0


def test_forward_cpu_serves_strict_arrays():
    x = tn.asarray([0.0], device="strict:device1")
    assert tn.to_host(PerDevice().apply((x,))[0].array) == 1.0


# --- Fallback --------------------------------------------------------------------------------


def test_fallback_has_a_reason_and_a_readable_repr():
    assert repr(tn.Fallback("no kernel")) == "Fallback('no kernel')"
    assert tn.Fallback("no kernel").reason == "no kernel"
    assert tn.Fallback().reason == "no reason given"


def test_a_kernel_of_the_backend_replaces_forward(fake):
    fake.kernels["Exp"] = lambda node, arrays: (np.full_like(arrays[0], 7.0),)
    assert F.exp(on("fake", [0.0])).array == 7.0
    assert F.exp(on("numpy", [0.0])).array == 1.0
    assert fallbacks() == {}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (tn.Fallback, "no reason given"),
        (tn.Fallback("float64 has no kernel"), "float64 has no kernel"),
    ],
)
def test_fallback_means_the_portable_forward_and_is_counted_with_its_reason(fake, result, reason):
    fake.kernels["Exp"] = lambda node, arrays: result
    x = on("fake", [0.0])
    for _ in range(2):
        y = F.exp(x)
    assert y.array == 1.0 and y.device is x.device
    assert fallbacks() == {("fake", "Exp", reason): 2}
    assert 0 < fallback_uses["fake", "Exp", reason].seconds < 60
    y.backward()
    assert x.grad == 1.0


def test_a_subclass_of_fallback_works_too(fake):
    class Special(tn.Fallback):
        pass

    fake.kernels["Exp"] = lambda node, arrays: Special("special")
    F.exp(on("fake", [0.0]))
    assert fallbacks() == {("fake", "Exp", "special"): 1}


def test_what_a_kernel_retained_before_it_fell_back_is_forgotten(fake):
    def kernel(node, arrays):
        node.retain_inputs((0,))
        return tn.Fallback("changed its mind")

    fake.kernels["Negative"] = kernel
    x = on("fake", [1.0])
    y = -x
    assert y.creator.get_retained_inputs() == () and x.node.data is None


def test_hooks_and_type_checks_run_with_kernels_and_with_fallback(fake):
    events = []

    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            events.append(("pre", in_data))

        def forward_postprocess(self, function, in_data):
            events.append(("post", in_data))

    fake.kernels["Multiply"] = lambda node, arrays: tn.Fallback
    fake.kernels["Add"] = lambda node, arrays: (arrays[0] + arrays[1],)
    x = on("fake", [2.0])
    with Hook():
        x * x
        x + x
    assert [e[0] for e in events] == ["pre", "post"] * 2
    assert all(e[1] == (x.array, x.array) for e in events)
    with pytest.raises(tn.TinynodeError, match=r"Add \(Forward\)"):
        x + on("fake", [1.0, 2.0, 3.0]) * on("fake", [[1.0], [2.0]]) + on("fake", [1.0, 2.0])


def test_a_kernel_that_returns_something_else_is_an_error(fake):
    fake.kernels["Exp"] = lambda node, arrays: arrays[0]
    with pytest.raises(OutputError, match=r"must be a tuple \(Exp\)"):
        F.exp(on("fake", [0.0]))


def test_a_numpy_scalar_from_a_kernel_is_lifted(fake):
    fake.kernels["Exp"] = lambda node, arrays: (np.float64(3.0),)
    y = F.exp(on("fake", 0.0))
    assert type(y.array) is np.ndarray and y.array == 3.0


def test_graph_and_gradients_on_an_overlay_backend_stay_on_its_device(fake):
    x = on("fake", [0.3, 0.7])
    y = F.sum(F.exp(x) * x + 2.0 * x)
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    assert str(gx.device) == "fake" and str(y.device) == "fake"
    x.cleargrad()
    F.sum(gx).backward()
    np.testing.assert_allclose(x.grad, np.exp(x.array) * (2 + x.array))
    assert str(x.grad_var.device) == "fake"


def test_a_raw_gradient_of_shared_memory_belongs_to_the_variable_s_device(fake):
    x = on("fake", [1.0, 2.0])
    y = x * x
    y.grad = np.ones(2)
    assert str(y.grad_var.device) == "fake"
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_a_new_array_of_shared_memory_stays_on_the_variable_s_device(fake):
    x = on("fake", [1.0, 2.0])
    x.array = np.zeros(2)
    assert str(x.device) == "fake"
    with tn.using_device("numpy"):  # asked for
        x.array = np.zeros(2)
    assert str(x.device) == "numpy"
    tn.get_device("strict")  # loads the backend, if this test runs alone
    x.array = array_api_strict.zeros(2, dtype=array_api_strict.float64)
    assert str(x.device) == "strict:CPU_DEVICE"


def test_old_style_functions_and_forget_stay_on_the_device(fake):
    class Double(tn.Function):
        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, inputs, grad_outputs):
            return (grad_outputs[0] * 2,)

    x, w = on("fake", [1.0]), on("fake", [3.0])
    Double()(x).backward()
    tn.forget(lambda v: v * w, x).backward()
    assert x.grad == 5.0 and w.grad == 1.0 and str(x.grad_var.device) == "fake"


def test_copies_and_pickles_stay_on_the_device(fake):
    x = on("fake", [1.0], grad=None)
    x.grad = np.ones(1)
    again = pickle.loads(pickle.dumps(x))
    assert str(again.device) == "fake" and again.grad == 1.0


# --- raw arrays beside Variables -------------------------------------------------------------


def test_a_raw_array_goes_to_the_device_of_the_other_input_if_its_memory_is_theirs(fake):
    x = on("fake", [2.0])
    for y in (
        x * np.array([3.0]),
        np.array([3.0]) * x,
        F.Multiply().apply((np.array([3.0]), x))[0],
    ):
        assert str(y.device) == "fake" and y.array == 6.0


def test_raw_arrays_of_every_function_go_to_the_device_of_the_variable_beside():
    """The first row of each operation with several inputs, and each choice of inputs left raw."""
    rows = {}
    for case in CASES:
        if len(case.inputs) > 1:
            rows.setdefault(case.operation, case)
    for name in ("kl_divergence", "SoftmaxGrad"):  # their rows compute the arguments from inputs
        del rows[name]
    for operation, case in rows.items():
        for choice in range(1, 2 ** len(case.inputs) - 1):
            with op_drivers.naming(f"{operation}-{choice:b}"):
                check_with_raw_arrays(case, choice)


def check_with_raw_arrays(case, choice):
    hosts = op_drivers.draw_inputs(case, case.dtypes[0])
    mixed = [
        host if choice >> i & 1 else tn.asarray(host, device="fast")
        for i, host in enumerate(hosts)
    ]
    outputs = case.function(*mixed, **case.constants)
    plain = case.function(*(tn.asarray(host) for host in hosts), **case.constants)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    plain = plain if isinstance(plain, tuple) else (plain,)
    for y, expected in zip(outputs, plain, strict=True):
        assert str(y.device) == "fast"
        np.testing.assert_allclose(y.array, expected.array, rtol=1e-5, atol=1e-6)


def fast(*shape, dtype=np.float32):
    return tn.asarray(np.ones(shape, dtype), device="fast")


INDICES = np.array([0, 1, 0])
BOOLS = np.array([True, False, True])


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.softmax_cross_entropy(fast(3, 2), INDICES),
        lambda: F.softmax_cross_entropy(np.ones((3, 2)), fast(3, dtype=np.int64)),
        lambda: F.softmax_cross_entropy(
            np.ones((3, 2), np.float32), np.zeros(3, int), class_weight=fast(2)
        ),
        lambda: F.sigmoid_cross_entropy(fast(3), INDICES),
        lambda: F.nll(fast(3, 2), INDICES),
        lambda: F.hinge(fast(3, 2), INDICES),
        lambda: F.mean_squared_error(fast(3), INDICES),
        lambda: F.embedding(INDICES, fast(4, 2)),
        lambda: F.take(fast(3, 2), INDICES, axis=0),
        lambda: F.take_along_axis(fast(3), INDICES),
        lambda: F.where(BOOLS, fast(3), 0.0),
        lambda: F.where(BOOLS, 1.5, fast(3)),
        lambda: F.where(fast(3, dtype=np.bool_), np.ones(3), np.zeros(3)),
        lambda: F.where(fast(3, dtype=np.bool_), 1.5, np.zeros(3)),
        lambda: fast(3)[INDICES],
        lambda: fast(3)[BOOLS],
        lambda: fast(3, 3)[INDICES, INDICES],
        lambda: F.get_item(np.ones((3, 2)), (fast(2, dtype=np.int64), 0)),
        lambda: F.set_item(fast(3), INDICES, np.ones(3)),
        lambda: F.set_item(np.ones(3), fast(2, dtype=np.int64), 7.0),
        lambda: F.concat([np.ones(2, np.float32), fast(2)]),
        lambda: F.stack([fast(2), np.ones(2, np.float32)]),
        lambda: F.add_all(np.ones(2, np.float32), fast(2)),
        lambda: F.meshgrid(INDICES, fast(2))[0],
        lambda: F.broadcast_arrays(INDICES, fast(3))[0],
        lambda: F.diff(np.ones(3, np.float32), append=fast(2)),
        lambda: F.tril(fast(3, 3)),
        lambda: F.scaled_dot_product_attention(fast(3, 2), fast(3, 2), fast(3, 2), BOOLS),
        lambda: F.scaled_dot_product_attention(*[fast(3, 2)] * 3, causal=True),
        lambda: tn.forget(lambda x, y: x * y, np.ones(3, np.float32), fast(3)),
    ],
)
def test_a_raw_array_beside_a_fast_variable_outside_of_a_using_device_block(call):
    assert str(call().device) == "fast"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: F.softmax_cross_entropy(F.reshape(x, (1, 2)), y),
        lambda x, y: F.embedding(y, F.reshape(x, (2, 1))),
        lambda x, y: F.take(x, y),
        lambda x, y: F.where(y == 0, x, x),
        lambda x, y: x[y],
        lambda x, y: F.concat([x, y]),
        lambda x, y: x * y,
    ],
)
def test_a_raw_array_that_lies_elsewhere_is_an_error_whose_cure_is_for_arrays(call):
    away = array_api_strict.zeros(1, dtype=array_api_strict.int64)
    with pytest.raises(DeviceMixError, match=r"Move it with tinynode.asarray\(.*'fast'\)"):
        call(fast(2), away)


# --- mixing ----------------------------------------------------------------------------------


def test_variables_of_different_devices_are_an_error_that_names_each_argument_and_the_cure(fake):
    x, y = on("numpy", [1.0]), on("fake", [1.0])
    with pytest.raises(TypeError) as caught:
        x * y
    message = str(caught.value)
    assert isinstance(caught.value, DeviceMixError)
    assert message.startswith("Multiply: incompatible array types are mixed in the forward input")
    assert "input 0 on numpy, input 1 on fake" in message and "to_device" in message


def test_two_devices_of_one_backend_do_not_mix():
    x = tn.asarray([1.0], device="strict:device1")
    y = tn.asarray([1.0], device="strict:device2")
    with pytest.raises(
        DeviceMixError, match=r"input 0 on strict:device1, input 1 on strict:device2"
    ):
        x + y


def test_a_raw_array_of_another_library_is_an_error_that_names_both():
    x = variable([1.0])
    strict = array_api_strict.ones(1, dtype=array_api_strict.float64)
    for call in (
        lambda: x * strict,
        lambda: F.Multiply().apply((x, strict)),
        lambda: F.Multiply().apply((strict, x)),
    ):
        with pytest.raises(
            DeviceMixError, match=r"strict:CPU_DEVICE.*numpy|numpy.*strict:CPU_DEVICE"
        ):
            call()


def test_a_forward_that_returns_an_array_of_another_library_is_an_error():
    class Strays(tn.FunctionNode):
        def forward(self, inputs):
            return (array_api_strict.ones(1),)

    with pytest.raises(OutputError, match=r"arrays of device numpy \(Strays\)\nActual: output 0"):
        Strays().apply((variable([1.0]),))


def test_a_grad_of_another_device_is_a_type_error_with_the_cure():
    x = variable([1.0])
    with pytest.raises(
        TypeError,
        match=r"Device of data and grad mismatch: data is on numpy.*to_device\('numpy'\)",
    ):
        x.grad = array_api_strict.ones(1, dtype=array_api_strict.float64)
    assert x.grad is None


def test_asarray_without_a_copy_where_the_device_holds_the_array():
    array = np.ones(2, np.float32)
    x = tn.asarray(array, device="fast", copy=False)
    assert x.array is array and str(x.device) == "fast"
    copied = tn.asarray(array, device="fast", copy=True)
    assert not np.shares_memory(copied.array, array) and str(copied.device) == "fast"
    for given in ([1.0], array_api_strict.ones(1)):
        with pytest.raises(ValueError, match="copy=False"):
            tn.asarray(given, device="fast", copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        tn.asarray(array, device="strict", copy=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: tn.nn.Linear(3, 2, device=device),
        lambda device: tn.nn.Embedding(3, 2, device=device),
        lambda device: tn.nn.Conv2d(3, 2, 1, device=device),
        lambda device: tn.nn.BatchNorm(3, device=device),
        lambda device: tn.nn.LayerNorm(3, device=device),
        lambda device: tn.nn.RMSNorm(3, device=device),
        lambda device: tn.nn.GroupNorm(1, 3, device=device),
    ],
)
@pytest.mark.parametrize("configured", ["numpy", "nowhere"])
@pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])
def test_a_layer_stands_on_the_device_that_it_is_given(make, device, configured):
    with tn.using_config(device=configured):
        layer = make(device)
        found = {str(x.device) for _, x in layer._state()}
    assert found == {device}


def test_a_parameter_on_an_array_that_lies_elsewhere():
    assert str(tn.nn.Parameter(np.ones(2), device="fast").device) == "fast"
    assert str(tn.nn.Buffer(np.ones(2), device="fast").device) == "fast"
    assert str(tn.nn.Parameter(np.ones(2), device="strict:device1").device) == "strict:device1"
    away = tn.get_device("strict:device2").from_host(np.ones(2))
    with pytest.raises(DeviceMixError, match=r"Parameter: array is on strict:device2, not on num"):
        tn.nn.Parameter(away, device="numpy")
    with pytest.raises(TypeError, match="must be an array"):
        tn.nn.Parameter([1.0], device="fast")


# --- moving ----------------------------------------------------------------------------------


def test_to_device_is_functional_and_differentiable():
    x = variable([1.0, 2.0])
    y = x.to_device("strict:device1")
    assert x.device is tn.get_device("numpy") and str(y.device) == "strict:device1"
    z = (y * y).to_device("numpy")
    F.sum(z).backward(enable_double_backprop=True)
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])
    gx = x.grad_var
    x.cleargrad()
    F.sum(gx).backward()
    np.testing.assert_array_equal(x.grad, [2.0, 2.0])
    assert x.to_device("numpy") is x and x.to_device(tn.get_device("numpy")) is x


def test_to_device_of_an_unknown_device_is_an_error():
    with pytest.raises(DeviceError):
        variable([1.0]).to_device("nowhere")


def test_the_output_device_of_a_function_may_differ_from_its_inputs():
    y = variable([1.0]).to_device("strict:device1")
    assert y.creator.output_device is tn.get_device("strict:device1")
    assert tn.FunctionNode.output_device is None


def test_debug_mode_works_on_every_device():
    with tn.using_config(debug=True):
        x = tn.asarray([1.0, 2.0], device="strict:device1")
        F.sum(F.exp(x) * x).backward()
    assert x.grad_var.device is x.device
