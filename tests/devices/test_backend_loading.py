"""How backends are found, loaded and described, and what is said when one cannot be used."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import numpy as np
import pytest
from device_tables import restored_tables

import tinynode as tn
from tinynode.commands import main
from tinynode.devices import (
    Backend,
    arrays,
    backend_names,
    backend_of,
    backend_origin,
    find_device,
    get_backend,
    loader,
    members_of,
    registry,
)
from tinynode.errors import DeviceError, DeviceMixError
from tinynode_numpy import add_at

PLUGIN = """
import numpy
from tinynode_numpy import *
from tinynode_numpy import add_at, forward, from_host, index_of, lift, to_host

name = "plugin"
version = "plugin 1.5"
indices = ["0", "1"]

def devices():
    return tuple(indices)

def owns(array):
    return False

def from_host(array, index):
    if index not in indices:
        raise RuntimeError("cable pulled")
    return array

def synchronize(index):
    if index not in indices:
        raise RuntimeError("cable pulled")
"""

OVERLAY = (
    PLUGIN
    + """
base = "numpy"
indices = ["cpu"]

def owns(array):
    return type(array) is numpy.ndarray
"""
)


@pytest.fixture(autouse=True)
def no_large_libraries(monkeypatch):
    """The command imports every backend: JAX would refuse the forks of later tests."""
    for name in ("jax", "sycl", "torch"):
        monkeypatch.delitem(loader.MODULE_OF_BACKEND, name)


@pytest.fixture
def plugins(monkeypatch, tmp_path):
    """A place for plugin modules, and the list of what installed packages offer."""
    offered = []
    monkeypatch.setattr(loader, "offered_backends", lambda: list(offered))
    monkeypatch.setattr(registry, "offered_backends", lambda: list(offered))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def offer(source, name="plugin", module="some_plugin", package="some-package"):
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        point = EntryPoint(name, module, "tinynode.backends")
        dist = SimpleNamespace(name=package, version="1.0")
        offered.append(point._for(dist))

    with restored_tables():
        yield offer
    for module in set(sys.modules) - before:
        if module.startswith("some_"):
            del sys.modules[module]


# --- the loader ------------------------------------------------------------------------------


def test_tinynodes_own_three_are_known_by_name():
    assert {"cupy", "fast", "numpy"} <= set(backend_names())


def test_a_backend_of_an_installed_package_is_loaded_when_it_is_asked_for(plugins):
    plugins(PLUGIN)
    assert "plugin" in backend_names() and "some_plugin" not in sys.modules
    assert str(tn.get_device("plugin")) == "plugin:0"
    assert tn.get_device("plugin:1") is not tn.get_device("plugin:0")
    assert tn.asarray([1.0], device="plugin:1").array.tolist() == [1.0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("from numpy import no_such_name", "ImportError: cannot import name 'no_such_name'"),
        ("raise RuntimeError('driver too old')", "RuntimeError: driver too old"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_a_backend_that_cannot_be_imported_says_why_and_what_would_work(plugins, source, message):
    plugins(source)
    with pytest.raises(DeviceError, match=f"backend 'plugin' cannot be imported: {message}") as e:
        tn.get_device("plugin")
    assert "Devices that work here: fast, numpy" in str(e.value)
    assert e.value.__cause__ is not None  # the traceback of the plugin is there too
    assert tn.get_device("numpy").name == "numpy"


def test_a_plugin_that_was_mended_can_be_loaded_without_a_restart(plugins):
    plugins("raise RuntimeError('not yet')")
    with pytest.raises(DeviceError):
        tn.get_device("plugin")
    plugins(PLUGIN)
    (point,) = {p.value for p in loader.offered_backends()}
    assert point == "some_plugin" and str(tn.get_device("plugin")) == "plugin:0"


def test_an_own_backend_whose_library_is_missing_says_how_to_get_it(plugins, monkeypatch):
    monkeypatch.setitem(sys.modules, "tinynode_cupy", None)  # Python: this import fails
    with pytest.raises(DeviceError, match=r"install tinynode\[cupy13\] or tinynode\[cupy12\]"):
        tn.get_device("cupy")


def test_a_plugin_that_is_no_backend(plugins):
    plugins("name = 'plugin'")
    with pytest.raises(DeviceError, match="has no capabilities, devices, forward"):
        tn.get_device("plugin")


def test_a_plugin_under_another_name_than_its_own(plugins):
    plugins(PLUGIN, name="alias")
    with pytest.raises(DeviceError, match="offers 'plugin' under the name 'alias'"):
        tn.get_device("alias")


def test_two_plugins_with_one_name_are_an_error_that_names_both(plugins):
    plugins(PLUGIN, module="some_one", package="first")
    plugins(PLUGIN, module="some_two", package="second")
    with pytest.raises(DeviceError, match=r"several packages bring a backend 'plugin'") as caught:
        tn.get_device("plugin")
    assert "package first 1.0 as some_one, package second 1.0 as some_two" in str(caught.value)
    assert "Uninstall all but one" in str(caught.value)


def test_one_plugin_that_is_listed_twice_is_one(plugins):
    plugins(PLUGIN)
    plugins(PLUGIN)  # as two folders of one installation may list it
    assert str(tn.get_device("plugin")) == "plugin:0"


def test_a_plugin_cannot_take_the_name_of_an_own_backend(plugins):
    plugins("raise RuntimeError('never imported')", name="numpy")
    registry.backends.pop("numpy", None)
    assert get_backend("numpy").__name__ == "tinynode_numpy"


def test_a_plugin_under_a_wrong_name_cannot_take_over_an_own_backend(plugins, monkeypatch):
    monkeypatch.delitem(registry.backends, "fast", raising=False)
    for spec in [spec for spec in registry.devices if spec.startswith("fast")]:
        monkeypatch.delitem(registry.devices, spec)
    plugins(PLUGIN.replace('"plugin"', '"fast"'), name="wrong")
    with pytest.raises(DeviceError, match="offers 'fast' under the name 'wrong'"):
        tn.get_device("wrong")
    assert get_backend("fast").__name__ == "tinynode_fast"


@pytest.mark.parametrize("name", ["cupy", "fast", "numpy"])
def test_the_names_of_own_backends_are_not_for_others(plugins, monkeypatch, name):
    monkeypatch.delitem(registry.backends, name, raising=False)
    plugins(PLUGIN.replace('"plugin"', f'"{name}"'))
    module = importlib.import_module("some_plugin")
    with pytest.raises(DeviceError, match=f"the name '{name}' is that of tinynode's own backend"):
        tn.register_backend(module)
    assert name not in registry.backends


def test_the_error_about_a_name_is_short():
    members = {name: getattr(get_backend("numpy"), name) for name in members_of(Backend)}
    for name, text in (("strict", "tinynode's own backend"), ("numpy_twin", "taken by")):
        backends = [SimpleNamespace(**{**members, "name": name}) for _ in range(2)]
        with pytest.raises(DeviceError, match=text) as error:
            for backend in backends:
                tn.register_backend(backend)
        assert len(str(error.value)) < 300
        assert "Set another name in SimpleNamespace" in str(error.value)
    registry.backends.pop("numpy_twin")


def test_an_own_backend_may_be_registered_as_well():
    tn.register_backend(get_backend("fast"))


BROKEN = [
    ("def devices(): raise RuntimeError('no driver')", "devices.. raises RuntimeError: no driver"),
    ("def devices(): return (0, 1)", r"devices.. must give a tuple of texts, it gives \(0, 1\)"),
    ("def devices(): return None", "devices.. must give a tuple of texts, it gives None"),
    ("def devices(): return '01'", "devices.. must give a tuple of texts, it gives '01'"),
    ("devices = ('0',)", "devices of .* must be a function, got tuple"),
    ("def namespace(): raise OSError('gone')", "namespace.. raises OSError: gone"),
    ("capabilities = None", "capabilities of .* must be a frozenset of texts, got None"),
    ("name = 3", "offers 3 under"),
    (
        "def memory_used(index): return 0",
        "has memory_used, but no memory_reserved: the optional part MemoryPool needs all members",
    ),
    ("import sys; sys.exit(1)", "cannot be imported: SystemExit: 1"),
]


@pytest.mark.parametrize(("line", "message"), BROKEN)
def test_a_broken_plugin_is_a_device_error_and_breaks_nothing_else(plugins, capsys, line, message):
    plugins(f"{PLUGIN}\n{line}\n")
    with pytest.raises(DeviceError, match=message) as caught:
        tn.get_device("plugin")
    assert "plugin" in str(caught.value)
    with pytest.raises(DeviceError, match=r"Devices that work here: fast, numpy"):
        tn.get_device("nosuch")
    assert tn.asarray([1.0], device="numpy").device is tn.get_device("numpy")
    assert main(["backends"]) == 0
    blocks = {b.split(":")[0]: b for b in capsys.readouterr().out.split("\n\n")}
    assert {"cupy", "fast", "numpy", "plugin", "strict"} <= set(blocks)
    assert blocks["plugin"].startswith("plugin: not usable\n  why:")
    assert re.search(message, blocks["plugin"])
    with tn.using_config(device="plugin"):
        assert main(["config"]) == 0
    assert re.search(f"the device cannot be used: .*{message}", capsys.readouterr().out)


def test_a_backend_that_was_registered_and_breaks_later(plugins):
    plugins(PLUGIN)
    device = tn.get_device("plugin:1")
    get_backend("plugin").devices = lambda: 1 / 0
    with pytest.raises(DeviceError, match=r"backend 'plugin' \(from package some-package 1.0\)"):
        tn.get_device("plugin:2")
    with pytest.raises(DeviceError, match="Devices that work here: fast, numpy"):
        tn.get_device("nosuch")
    assert tn.get_device("plugin:1") is device


def test_a_backend_whose_import_failed_is_not_said_to_work(plugins, monkeypatch):
    monkeypatch.delitem(registry.backends, "fast", raising=False)
    for spec in [spec for spec in registry.devices if spec.startswith("fast")]:
        monkeypatch.delitem(registry.devices, spec)
    monkeypatch.setitem(sys.modules, "tinynode_fast", None)  # Python: this import fails
    with pytest.raises(DeviceError, match="backend 'fast' cannot be imported") as caught:
        tn.get_device("fast")
    assert "Devices that work here: numpy" in str(caught.value)


# --- devices that go, and arrays that nobody owns --------------------------------------------


def test_a_backend_without_a_device(plugins):
    plugins(PLUGIN.replace('["0", "1"]', "[]"))
    with pytest.raises(DeviceError, match="backend 'plugin' has no device on this machine"):
        tn.get_device("plugin")


def test_a_device_that_vanished(plugins):
    plugins(PLUGIN)
    device = tn.get_device("plugin:1")
    get_backend("plugin").indices.remove("1")
    for use in (device.synchronize, lambda: tn.asarray([1.0], device=device)):
        with pytest.raises(DeviceError, match="plugin:1: this device has gone; there are") as e:
            use()
        assert "cable pulled" in str(e.value.__cause__)
    get_backend("plugin").indices.append("1")
    device.synchronize()  # and it works again when it is back


def test_an_error_of_a_device_that_is_there_stays_what_it_is(plugins):
    plugins(PLUGIN)
    device = tn.get_device("plugin:1")
    with pytest.raises(AttributeError, match="bit_length"):
        get_backend("plugin").from_host = lambda array, index: array.bit_length()
        device.from_host(np.ones(1))


class Foreign:
    """What another library's array may look like."""

    shape, dtype = (2,), "float32"


def test_an_array_that_no_backend_owns():
    with pytest.raises(DeviceMixError, match=r"python -m tinynode backends"):
        tn.Variable(Foreign())
    with pytest.raises(TypeError):
        tn.asarray([1.0]) * Foreign()


def test_a_numpy_array_given_to_a_model_on_another_device():
    with tn.using_device("strict:device1"):
        layer = tn.nn.Linear(2, 3)
    x = np.ones((1, 2), np.float32)
    for given in (x, tn.asarray(x, device="strict:device1")):
        assert layer(given).device is tn.get_device("strict:device1")


def test_an_overlay_does_not_take_arrays_that_nobody_gave_it(plugins):
    plugins(OVERLAY)
    overlay = get_backend("plugin")
    arrays.backend_of_type.clear()
    assert find_device(np.ones(1)) is tn.get_device("numpy")
    with tn.using_device("plugin"):
        assert find_device(np.ones(1)) is tn.get_device("plugin")
        assert backend_of(np.ones(1)) is get_backend("numpy") is not overlay


# --- python -m tinynode backends -------------------------------------------------------------


def test_the_command_lists_every_backend(plugins, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TINYNODE_CACHE", str(tmp_path))  # without a record of earlier tests
    plugins(PLUGIN)
    plugins(
        "raise RuntimeError('driver too old')", name="old", module="some_old", package="museum"
    )
    assert main(["backends"]) == 0
    blocks = {b.split(":")[0]: b for b in capsys.readouterr().out.split("\n\n")}
    assert {"cupy", "fast", "numpy", "old", "plugin", "strict"} <= set(blocks)
    assert blocks["plugin"].splitlines() == [
        "plugin: usable",
        "  devices:        plugin:0, plugin:1",
        "  version:        plugin 1.5",
        "  capabilities:   cpu, float64",
        "  optional parts: Versioned, Scatter",
        "  from:           package some-package 1.0",
    ]
    assert f"version:        {np.__version__}" in blocks["numpy"]
    assert "from:           tinynode" in blocks["strict"]
    assert backend_origin("a name that no package offers") == "register_backend"
    assert blocks["old"].startswith("old: not usable")
    assert "RuntimeError: driver too old" in blocks["old"] and "museum 1.0" in blocks["old"]
    assert blocks["new Variables stand on"].strip() == "new Variables stand on: numpy"


def test_the_command_says_when_the_configured_device_cannot_be_used(plugins, capsys):
    with tn.using_config(device="nunpy"):
        assert main(["backends"]) == 0
    assert (
        "new Variables cannot be made: get_device: there is no backend" in capsys.readouterr().out
    )


def test_a_backend_without_a_device_is_listed_as_not_usable(plugins, capsys):
    plugins(PLUGIN.replace('["0", "1"]', "[]").replace("plugin 1.5", ""))
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    assert "plugin: not usable\n  devices:        none here\n" in out


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(), (3,), (200,), (2, 3), (0,)])
def test_rows_are_added_up_by_index(shape: tuple[int, ...], dtype: type) -> None:
    """Also where rows times length exceed the dtype of the indices, and in parts."""
    rng = np.random.default_rng(0)
    count = 3000
    indices = rng.integers(0, 100, count).astype(dtype)
    if np.issubdtype(dtype, np.signedinteger):
        indices[::5] -= 100  # from the end
    values = rng.normal(size=(count, *shape))
    expected = np.zeros((100, *shape))
    for k, value in zip(indices.tolist(), values, strict=True):
        expected[k] += value
    np.testing.assert_allclose(add_at(indices, values, 100), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", [4, -5])
def test_a_row_outside_of_the_result_is_an_error(wrong: int) -> None:
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds .* size 4"):
        add_at(np.asarray([0, wrong]), np.ones((2, 3)), 4)


def test_the_error_names_installed_libraries_without_importing_them() -> None:
    code = (
        "import importlib.util, sys, tinynode as tn\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: name in ('torch', 'dpnp') or None\n"
        "try:\n"
        "    tn.get_device('nothing')\n"
        "except tn.errors.DeviceError as error:\n"
        "    print(error)\n"
        "print('torch' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    message, is_imported = found.stdout.splitlines()
    assert message.endswith("Devices that work here: fast, numpy; installed too: sycl, torch.")
    assert is_imported == "False"
