"""Settings from the environment and from files: which decides, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tinynode as tn
from tinynode import config_sources
from tinynode.commands import main
from tinynode.config_sources import KINDS, SettingSource, read_sources, working_folder
from tinynode.devices import current_device
from tinynode.errors import ConfigError, DeviceError


def write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)  # whatever the umask is
    return str(path)


# --- what is read ----------------------------------------------------------------------------


def test_nothing_set_is_nothing_found(tmp_path):
    assert read_sources({}, tmp_path) == {}
    environment = dict.fromkeys((f"TINYNODE_{name.upper()}" for name in KINDS), "")
    assert read_sources({**environment, "TINYNODE_DEVCIE": "", "HOME": "x"}, None) == {}


def test_an_empty_variable_does_not_cover_the_file(tmp_path):
    path = write(tmp_path, "tinynode.toml", "debug = true\n")
    assert read_sources({"TINYNODE_DEBUG": ""}, tmp_path) == {"debug": SettingSource(True, path)}


def test_the_environment_has_every_setting_under_its_name_in_capitals():
    texts = {bool: "1", str: "float64"}
    environment = {f"TINYNODE_{name.upper()}": texts[kind] for name, kind in KINDS.items()}
    found = read_sources(environment, None)
    assert found["debug"] == SettingSource(True, "the environment's TINYNODE_DEBUG")
    assert found["dtype"] == SettingSource("float64", "the environment's TINYNODE_DTYPE")
    assert set(found) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False)],
)
def test_truth_in_the_environment(text, value):
    assert read_sources({"TINYNODE_TRAIN": text}, None)["train"].value is value


def test_the_table_of_a_pyproject_and_a_file_of_our_own(tmp_path):
    path = write(tmp_path, "pyproject.toml", '[tool.tinynode]\ndevice = "fast"\ntrain = false\n')
    expected = {"device": SettingSource("fast", path), "train": SettingSource(False, path)}
    assert read_sources({}, tmp_path) == expected
    own = write(tmp_path, "tinynode.toml", 'device = "numpy"\n')  # comes first in one folder
    assert read_sources({}, tmp_path) == {"device": SettingSource("numpy", own)}


def test_the_nearest_file_counts_and_a_pyproject_of_others_is_passed_over(tmp_path):
    far = write(tmp_path, "tinynode.toml", 'device = "far"\n')
    inner = tmp_path / "a" / "b"
    write(inner, "pyproject.toml", '[project]\nname = "a-user-of-tinynode"\n')
    assert read_sources({}, inner) == {"device": SettingSource("far", far)}
    write(tmp_path / "a", "pyproject.toml", "this is [ no TOML, and does not name us")
    assert read_sources({}, inner)["device"].value == "far"
    near = write(tmp_path / "a", "tinynode.toml", "debug = true\n")
    assert read_sources({}, inner) == {"debug": SettingSource(True, near)}  # files are not merged


def test_the_environment_comes_before_the_file(tmp_path):
    path = write(tmp_path, "tinynode.toml", 'device = "far"\ndtype = "float64"\n')
    found = read_sources({"TINYNODE_DEVICE": "near"}, tmp_path)
    assert found == {
        "device": SettingSource("near", "the environment's TINYNODE_DEVICE"),
        "dtype": SettingSource("float64", path),
    }


def test_a_working_folder_that_was_deleted(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert working_folder() is None


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('devise = "fast"', "there is no setting 'devise'; did you mean 'device'"),
        (
            "colour = 1",
            "there is no setting 'colour'; Settings are debug, debug_infinite",
        ),
        ("in_recomputing = true", "there is no setting 'in_recomputing'"),
        ('device = ""', "device must not be empty"),
        ('[tool.tinynode]\ndevice = "fast"', r"needs no header: leave \[tool.tinynode\] out"),
        ('[tinynode]\ndevice = "fast"', r"needs no header: leave \[tinynode\] out"),
        ("tool = 1", "there is no setting 'tool'"),
        ("device = 1", "device must be text in quotes, got int 1"),
        ('debug = "yes"', "debug must be true or false, got str"),
        ('dtype = "int64"', "dtype must be one of float32, float64, float16, got 'int64'"),
        ("device = fast", "is not valid TOML"),
        ("device = '\xff'".encode("latin-1"), "is not valid TOML"),
        ("device = 'fast'".encode("utf-16"), "is not valid TOML: .*0xff"),
        ("device = " + "[" * 5000, "is not valid TOML"),
        ("a = " + "{a = " * 2000 + "1" + "}" * 2000, "is not valid TOML: nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "tinynode.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=message) as caught:
        read_sources({}, tmp_path)
    assert str(path) in str(caught.value)


def test_a_file_of_notepad_may_start_with_a_mark_of_byte_order(tmp_path):
    write(tmp_path, "tinynode.toml", '\ufeffdevice = "fast"\r\n')
    assert read_sources({}, tmp_path)["device"].value == "fast"


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pyproject.toml")
    assert read_sources({}, tmp_path) == {}
    os.mkfifo(tmp_path / "tinynode.toml")
    with pytest.raises(ConfigError, match=r"tinynode\.toml is a pipe"):
        read_sources({}, tmp_path)


def test_a_table_that_is_no_table(tmp_path):
    write(tmp_path, "pyproject.toml", "[tool]\ntinynode = 3\n")
    with pytest.raises(ConfigError, match=r"tool\.tinynode must be a table, got int 3"):
        read_sources({}, tmp_path)


@pytest.mark.parametrize(
    "text", ["tool = 3 # tinynode", 'tool = "tinynode"', "[[tool]]\ntinynode=1"]
)
def test_a_pyproject_whose_tool_is_no_table_is_not_about_us(tmp_path, text):
    write(tmp_path, "pyproject.toml", text)
    assert read_sources({}, tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("DEVCIE", "DEVICE"), ("DEVICES", "DEVICE"), ("DTPYE", "DTYPE"), ("TYPECHECK", "TYPE_CHECK")],
)
def test_a_slip_of_the_pen_in_the_environment(name, meant):
    with pytest.raises(ConfigError, match=f"TINYNODE_{name}: .*did you mean TINYNODE_{meant}?"):
        read_sources({f"TINYNODE_{name}": "1"}, None)


def test_other_variables_of_the_environment_are_left_alone():
    names = ("TINYNODE_MY_DATA", "TINYNODE_HOME", "TINYNODE_", "MY_TINYNODE_DEVICES", "DEVCIE")
    assert read_sources(dict.fromkeys(names, "x"), None) == {}


def test_an_unreadable_file_of_our_own_is_an_error_and_one_of_others_is_not(tmp_path, monkeypatch):
    def refuse(path, flags):
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "pyproject.toml", "[tool.tinynode]")
    monkeypatch.setattr(config_sources, "open_at_once", refuse)
    assert read_sources({}, tmp_path) == {}
    path = write(tmp_path, "tinynode.toml", "")
    with pytest.raises(ConfigError, match=f"{path} cannot be read: Permission denied"):
        read_sources({}, tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [("DEBUG", "2", "must be 1 or 0, got '2'"), ("DTYPE", "float8", "dtype must be one of")],
)
def test_the_environment_is_checked_too(name, text, message):
    with pytest.raises(ConfigError, match=f"the environment's TINYNODE_{name}.*{message}"):
        read_sources({f"TINYNODE_{name}": text}, None)


# --- which files count -----------------------------------------------------------------------

POSIX = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
PROJECT = '[tool.tinynode]\ndevice = "fast"\n'
OWN = 'device = "fast"\n'


@pytest.fixture(autouse=True)
def no_file_is_named_yet(monkeypatch):
    monkeypatch.setattr(config_sources, "_ignored", set())


def of_another_user(path, monkeypatch):
    """Give a file to another user, or let this process be another user."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@POSIX
@pytest.mark.parametrize(("name", "text"), [("tinynode.toml", OWN), ("pyproject.toml", PROJECT)])
def test_a_file_of_another_user_does_not_count(tmp_path, monkeypatch, name, text):
    path = write(tmp_path, name, text)
    inner = tmp_path / "inner"
    inner.mkdir()
    of_another_user(path, monkeypatch)
    with pytest.warns(UserWarning, match=f"ignores the settings in {path}: .* another user"):
        assert read_sources({}, inner) == {}
    assert read_sources({}, inner) == {}  # the warning comes once


@POSIX
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o602])
@pytest.mark.parametrize(("name", "text"), [("tinynode.toml", OWN), ("pyproject.toml", PROJECT)])
def test_a_file_that_others_may_write_does_not_count(tmp_path, mode, name, text):
    path = write(tmp_path, name, text)
    os.chmod(path, mode)
    message = (
        rf"{path}: .* by others \(mode {mode:o}\)\. Write chmod go-w for it, or set "
        r"the environment, such as TINYNODE_DEVICE\."
    )
    with pytest.warns(UserWarning, match=message):
        assert read_sources({}, tmp_path) == {}
    os.chmod(path, 0o644)
    assert read_sources({}, tmp_path)["device"].value == "fast"


@POSIX
def test_a_file_that_does_not_count_covers_no_other(tmp_path):
    far = write(tmp_path, "tinynode.toml", OWN)
    near = write(tmp_path / "near", "tinynode.toml", "this is [ no TOML")
    os.chmod(near, 0o666)
    project = write(tmp_path / "near", "pyproject.toml", PROJECT)
    with pytest.warns(UserWarning, match="near"):
        assert read_sources({}, tmp_path / "near") == {"device": SettingSource("fast", project)}
    os.unlink(project)
    assert read_sources({}, tmp_path / "near") == {"device": SettingSource("fast", far)}


@POSIX
def test_a_pyproject_of_others_without_settings_gives_no_warning(tmp_path):
    path = write(tmp_path, "pyproject.toml", "[project]\ndependencies = ['tinynode']\n")
    os.chmod(path, 0o666)
    assert read_sources({}, tmp_path) == {}


@POSIX
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root gives files away"
)
@pytest.mark.parametrize("target", ["trusted.toml", "/dev/zero", "missing"])
def test_a_link_counts_if_the_link_and_the_file_do(tmp_path, target):
    write(tmp_path, "trusted.toml", OWN)
    link = tmp_path / "tinynode.toml"
    link.symlink_to(target)
    if target == "trusted.toml":
        assert read_sources({}, tmp_path)["device"].value == "fast"
    os.chown(link, 12345, -1, follow_symlinks=False)
    with pytest.warns(UserWarning, match="another user"):
        assert read_sources({}, tmp_path) == {}
    os.chown(link, 0, -1, follow_symlinks=False)
    os.chown(tmp_path / "trusted.toml", 12345, -1)
    config_sources._ignored.clear()
    if target == "trusted.toml":
        with pytest.warns(UserWarning, match="another user"):
            assert read_sources({}, tmp_path) == {}
    else:
        with pytest.raises(ConfigError, match=r"tinynode\.toml (is a pipe or a device|cannot be)"):
            read_sources({}, tmp_path)


@POSIX
def test_a_pipe_or_an_unreadable_file_of_another_user_stops_nothing(tmp_path, monkeypatch):
    path = tmp_path / "tinynode.toml"
    os.mkfifo(path)
    of_another_user(path, monkeypatch)
    with pytest.warns(UserWarning, match="another user"):
        assert read_sources({}, tmp_path) == {}


def test_without_owners_every_file_counts(tmp_path, monkeypatch):
    """As on Windows."""
    path = write(tmp_path, "tinynode.toml", OWN)
    os.chmod(path, 0o666)
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert read_sources({}, tmp_path)["device"].value == "fast"


def test_a_file_names_no_compiler(tmp_path):
    path = write(tmp_path, "tinynode.toml", 'compiler = "/tmp/program"\n')
    message = (
        f"{path}: a file cannot set compiler, the name of a program. Set TINYNODE_COMPILER in the "
        r"environment, or tinynode\.config\.compiler in code"
    )
    with pytest.raises(ConfigError, match=message):
        read_sources({}, tmp_path)
    os.unlink(path)
    write(tmp_path, "pyproject.toml", '[tool.tinynode]\ncompiler = "none"\n')
    with pytest.raises(ConfigError, match="a file cannot set compiler"):
        read_sources({}, tmp_path)
    origin = "the environment's TINYNODE_COMPILER"
    expected = {"compiler": SettingSource("cc", origin)}
    assert read_sources({"TINYNODE_COMPILER": "cc"}, None) == expected


@pytest.mark.slow
def test_the_program_of_a_file_of_another_user_is_not_started(tmp_path, monkeypatch):
    """The import and the command that prints the compiler's version."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    path = write(tmp_path, "tinynode.toml", f'compiler = "{program}"\n')
    for mode in (0o644, 0o666):
        os.chmod(path, mode)
        code = "from tinynode.commands import main; main(['backends'])"
        done = run(tmp_path, code)
        assert ("a file cannot set compiler" in done.stderr) == (mode == 0o644)
        assert not (tmp_path / "ran").exists()
        if os.name != "posix":
            break


def test_a_large_file_is_not_read(tmp_path):
    filler = "# " + "x" * config_sources.MOST_BYTES
    write(tmp_path, "pyproject.toml", PROJECT + filler)
    assert read_sources({}, tmp_path) == {}
    path = write(tmp_path, "tinynode.toml", OWN + filler)
    with pytest.raises(
        ConfigError, match=f"{path} is larger than {config_sources.MOST_BYTES} bytes"
    ):
        read_sources({}, tmp_path)
    write(tmp_path, "tinynode.toml", (OWN + filler)[: config_sources.MOST_BYTES])
    assert read_sources({}, tmp_path)["device"].value == "fast"


def test_a_folder_in_the_place_of_a_file_is_passed_over(tmp_path):
    (tmp_path / "tinynode.toml").mkdir(mode=0o755)
    (tmp_path / "pyproject.toml").mkdir(mode=0o755)
    assert read_sources({}, tmp_path) == {}


def test_a_slip_of_the_pen_is_no_new_setting():
    with pytest.raises(ConfigError, match="no setting 'devise': did you mean 'device'"):
        tn.config.devise = "fast"
    assert not hasattr(tn.config, "devise")


# --- a program in a folder -------------------------------------------------------------------


def run(folder, code, **environment):
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_program_starts_from_the_file_and_the_environment(tmp_path):
    path = write(tmp_path, "tinynode.toml", 'dtype = "float64"\ndevice = "fast"\n')
    code = (
        "import tinynode as tn\n"
        "print(tn.asarray([1.0]).dtype, tn.config.device, tn.global_config.device)\n"
        "print(tn.config.origin('device'), tn.config.origin('dtype'), tn.config.origin('train'))\n"
        "tn.config.train = False; tn.global_config.debug = True\n"
        "print(tn.config.origin('train'), tn.config.origin('debug'))\n"
    )
    done = run(tmp_path, code, TINYNODE_DEVICE="numpy")
    assert done.stdout.splitlines() == [
        "float64 numpy numpy",
        f"the environment's TINYNODE_DEVICE {path} the default",
        "tinynode.config in this thread tinynode.global_config",
    ], done.stderr


def test_a_bad_file_is_an_error_of_the_import_and_names_the_file(tmp_path):
    path = write(tmp_path, "tinynode.toml", "devise = 1\n")
    done = run(tmp_path, "import tinynode")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"tinynode.errors.ConfigError: {path}: there is no setting 'devise'")


def test_an_unusable_device_says_where_it_was_asked_for(tmp_path):
    path = write(tmp_path, "tinynode.toml", 'device = "nunpy"\n')
    code = "import tinynode as tn; tn.asarray([1.0], device='numpy'); tn.asarray([1.0])"
    last = run(tmp_path, code).stderr.splitlines()[-1]
    assert "there is no backend 'nunpy'; did you mean 'numpy'?" in last
    assert "Devices that work here: fast, numpy" in last
    assert last.endswith(f"Device 'nunpy' is from {path}.")


def test_an_explicit_device_wins_over_an_unusable_one(tmp_path):
    write(tmp_path, "tinynode.toml", 'device = "nunpy"\n')
    code = (
        "import numpy as np, tinynode as tn\n"
        "x = tn.asarray([1.0, 2.0], device='numpy')\n"
        "y = tn.asarray(np.ones(2), device='fast')\n"
        "z = x * np.ones(2, np.float32) + np.float32(1)\n"
        "z = tn.functions.where(np.ones(2, bool), z, 0.0)[np.array([0, 1])]\n"
        "print(x == None, (x == np.ones(2)).device, tn.asarray(y, device='numpy').device)\n"
        "tn.functions.sum(z * z).backward()\n"
        "print(z.device, y.device, x.grad_var.device)\n"
    )
    done = run(tmp_path, code)
    assert done.stdout.splitlines() == ["False numpy numpy", "numpy fast numpy"], done.stderr


def test_nothing_is_written(tmp_path):
    code = "import tinynode as tn; tn.asarray([1.0]); tn.get_device('numpy')"
    done = run(tmp_path, code, HOME=str(tmp_path))
    assert done.returncode == 0 and list(tmp_path.iterdir()) == []


# --- which device counts, thread by thread ---------------------------------------------------


@pytest.fixture
def global_device():
    """A device for every thread, for the length of a test."""
    tn.global_config.device = "strict:device2"
    yield
    del tn.global_config.device


def test_argument_over_block_over_thread_over_everyone(global_device):
    assert str(current_device()) == "strict:device2"
    try:
        tn.config.device = "numpy"
        assert str(current_device()) == "numpy"
        with tn.using_device("strict:device1"):
            assert str(tn.asarray([1.0]).device) == "strict:device1"
            assert str(tn.asarray([1.0], device="numpy").device) == "numpy"
        assert str(current_device()) == "numpy"
    finally:
        del tn.config.device
    assert str(current_device()) == "strict:device2"


def test_an_unusable_device_of_the_thread_names_the_thread():
    with (
        tn.using_config(device="nowhere"),
        pytest.raises(DeviceError, match=r"Device 'nowhere' is from tinynode\.config in this"),
    ):
        tn.asarray([1.0])
    with tn.using_config(device=3), pytest.raises(TypeError, match="Device 3 is from"):
        current_device()
    assert str(tn.asarray([1.0]).device) == "numpy"


def test_a_pool_of_threads_sees_the_value_for_everyone_not_the_block_around_it(global_device):
    with tn.using_device("numpy"), ThreadPoolExecutor(1) as pool:
        assert str(current_device()) == "numpy"
        assert str(pool.submit(current_device).result()) == "strict:device2"


def test_a_pool_gets_a_device_by_its_initializer_or_a_block_in_the_task():
    def start():
        tn.config.device = "strict:device1"

    def work():
        with tn.using_device("numpy"):
            return str(current_device())

    with ThreadPoolExecutor(1, initializer=start) as pool:
        assert str(pool.submit(current_device).result()) == "strict:device1"
        assert pool.submit(work).result() == "numpy"
        assert str(pool.submit(current_device).result()) == "strict:device1"  # kept by the thread
    assert str(current_device()) == "numpy"


def test_a_change_for_everyone_reaches_threads_that_run_already(global_device):
    seen, go, ready = [], threading.Event(), threading.Event()

    def watch():
        seen.append(str(current_device()))
        ready.set()
        go.wait(10)
        seen.append(str(current_device()))

    thread = threading.Thread(target=watch)
    thread.start()
    ready.wait(10)
    tn.global_config.device = "numpy"
    go.set()
    thread.join()
    assert seen == ["strict:device2", "numpy"]


# --- python -m tinynode config ---------------------------------------------------------------


def test_the_command_config_prints_each_value_and_where_it_came_from(capsys):
    with tn.using_config(train=False):
        assert main(["config"]) == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == list(KINDS)
    assert ["train", "false", "from", "tinynode.config in this thread"] in lines
    assert ["device", '"numpy"', "from", "the default"] in lines


def test_the_command_config_says_what_is_wrong_with_the_device(capsys):
    with tn.using_config(device="nunpy"):
        assert main(["config"]) == 0
    out = capsys.readouterr().out
    assert 'device           "nunpy"' in out
    assert "the device cannot be used: get_device: there is no backend 'nunpy'" in out
    with tn.using_config(device=3):
        assert main(["config"]) == 0
    assert "the device cannot be used: get_device: expected a name" in capsys.readouterr().out
