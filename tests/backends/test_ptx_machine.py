"""The machine that executes PTX in NumPy, on small texts written by hand: no CUDA takes part."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from ptx import arithmetic
from ptx.machine import MachineError, launch
from ptx.memory import READ, WRITE, Memory, MemoryFaultError
from ptx.reader import Number, Register, UnknownPTXError, Vector, read_module

KERNEL = """
.version 8.8
.target sm_90
.address_size 64
%s
.visible .entry kernel(
    .param .u64 kernel_param_0,  // x
    .param .u64 kernel_param_1,  // y
    .param .u32 kernel_param_2   // the number of elements
)
{
    .reg .pred %%p<9>;
    .reg .b16 %%rs<9>;
    .reg .b32 %%r<19>;
    .reg .f32 %%f<19>;
    .reg .f64 %%fd<9>;
    .reg .b64 %%rd<19>;
    ld.param.u64 %%rd1, [kernel_param_0];
    ld.param.u64 %%rd2, [kernel_param_1];
    ld.param.u32 %%r1, [kernel_param_2];
    mov.u32 %%r2, %%ctaid.x;
    mov.u32 %%r3, %%ntid.x;
    mov.u32 %%r4, %%tid.x;
    mad.lo.s32 %%r5, %%r2, %%r3, %%r4;
    mul.wide.u32 %%rd3, %%r5, 4;
    add.s64 %%rd4, %%rd1, %%rd3;
    add.s64 %%rd5, %%rd2, %%rd3;
    setp.ge.u32 %%p1, %%r5, %%r1;
    @%%p1 bra END;
    ld.global.f32 %%f1, [%%rd4];
%s
    st.global.f32 [%%rd5], %%f2;
END:
    ret;
}
"""
"""y[i] = f2, a value that the middle computes from f1 = x[i]; r5 is i."""


def run(middle: str, x: Any, before: str = "", size: int | None = None, threads: int = 4) -> Any:
    """y for x, in thread blocks of four threads."""
    x = np.asarray(x, np.float32)
    y = np.empty_like(x)
    memory = Memory()
    start_x, start_y = memory.add_array(x, READ), memory.add_array(y, WRITE)
    count = x.size if size is None else size
    arguments = [struct.pack("q", start_x), struct.pack("q", start_y), struct.pack("i", count)]
    launch(
        read_module(KERNEL % (before, middle)),
        "kernel",
        -(-count // 4),
        threads,
        arguments,
        memory,
    )
    memory.fetch_array(y, start_y)
    return y


X = np.asarray([3.0, -1.0, 0.5, 8.0, -2.0, 0.25, 7.0], np.float32)

# --- threads -------------------------------------------------------------------------------------


def test_each_thread_computes_its_element() -> None:
    np.testing.assert_array_equal(
        run("fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;", X), 2 * X + 1
    )


def test_threads_that_take_different_branches_meet_again() -> None:
    """The absolute value by a branch; afterwards all threads add 1 in one step."""
    middle = """
        setp.lt.f32 %p2, %f1, 0f00000000;
        @%p2 bra NEGATIVE;
        mov.f32 %f2, %f1;
        bra.uni JOIN;
    NEGATIVE:
        neg.f32 %f2, %f1;
    JOIN:
        add.f32 %f2, %f2, 0f3F800000;
    """
    np.testing.assert_array_equal(run(middle, X), np.abs(X) + 1)


def test_a_loop_runs_as_often_as_each_thread_needs() -> None:
    middle = """
        mov.f32 %f2, 0f00000000;
        mov.u32 %r6, 0;
    LOOP:
        add.f32 %f2, %f2, %f1;
        add.s32 %r6, %r6, 1;
        setp.le.u32 %p2, %r6, %r5;
        @%p2 bra LOOP;
    """
    np.testing.assert_allclose(run(middle, X), X * np.arange(1, 8))


def test_a_guard_chooses_threads_for_one_instruction() -> None:
    middle = """
        mov.f32 %f2, %f1;
        setp.gt.f32 %p2, %f1, 0f3F800000;
        @%p2 mov.f32 %f2, 0f3F800000;
        @!%p2 add.f32 %f2, %f2, 0f41200000;
    """
    np.testing.assert_array_equal(run(middle, X), np.where(X > 1, 1, X + 10))


REVERSE = """
    mul.wide.u32 %rd6, %r4, 4;
    mov.u64 %rd7, buffer;
    add.s64 %rd8, %rd7, %rd6;
    st.shared.f32 [%rd8], %f1;
    bar.sync 0;
    sub.s64 %rd9, %rd7, %rd6;
    ld.shared.f32 %f2, [%rd9+12];
"""
SHARED = ".shared .align 4 .b8 buffer[16];"


def test_each_thread_block_has_shared_memory() -> None:
    x = np.arange(8.0)
    np.testing.assert_array_equal(run(REVERSE, x, SHARED), [3, 2, 1, 0, 7, 6, 5, 4])


def test_threads_wait_at_a_barrier() -> None:
    """The first thread of a block comes later, by a branch to a place behind the barrier."""
    middle = """
        setp.eq.u32 %p2, %r4, 0;
        @%p2 bra LATE;
    STORE:
        mov.f32 %f3, %f1;
        mul.wide.u32 %rd6, %r4, 4;
        mov.u64 %rd7, buffer;
        add.s64 %rd8, %rd7, %rd6;
        st.shared.f32 [%rd8], %f3;
        bar.sync 0;
        ld.shared.f32 %f2, [buffer];
        bra.uni DONE;
    LATE:
        add.f32 %f1, %f1, 0f42C80000;
        bra.uni STORE;
    DONE:
    """
    x = np.arange(8.0)
    np.testing.assert_array_equal(run(middle, x, SHARED), [100] * 4 + [104] * 4)


def test_different_barriers_in_one_thread_block_are_an_error() -> None:
    middle = """
        mov.f32 %f2, %f1;
        setp.eq.u32 %p2, %r4, 0;
        @%p2 bra OTHER;
        bar.sync 0;
        bra.uni DONE;
    OTHER:
        bar.sync 0;
    DONE:
    """
    with pytest.raises(MachineError, match="different barriers"):
        run(middle, np.arange(4.0))


def test_an_endless_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptx.machine.MOST_STEPS", 100)
    with pytest.raises(MachineError, match="does not end"):
        run("mov.f32 %f2, %f1;\nLOOP:\nbra.uni LOOP;", X)


def test_a_function_is_called() -> None:
    before = """
    .func (.param .b32 result) doubled(.param .b32 given);
    .func (.param .b32 result) doubled(
        .param .b32 given
    )
    {
        .reg .f32 %f<3>;
        ld.param.f32 %f1, [given];
        add.f32 %f2, %f1, %f1;
        st.param.f32 [result+0], %f2;
        ret;
    }
    """
    middle = """
        setp.lt.f32 %p2, %f1, 0f00000000;
        mov.f32 %f2, %f1;
        @%p2 bra AFTER;
        { // callseq 0, 0
        .param .b32 param0;
        st.param.f32 [param0+0], %f1;
        .param .b32 retval0;
        call.uni (retval0), doubled, (param0);
        ld.param.f32 %f2, [retval0+0];
        }
    AFTER:
    """
    np.testing.assert_array_equal(run(middle, X, before), np.where(X < 0, X, 2 * X))


# --- memory --------------------------------------------------------------------------------------


def test_constants_and_local_memory() -> None:
    before = ".global .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 0, 64};"
    middle = """
        .local .align 4 .b8 depot[8];
        mov.u64 %rd6, table;
        ld.global.nc.v2.f32 {%f3, %f4}, [%rd6];
        mov.u64 %rd7, depot;
        st.local.f32 [%rd7], %f1;
        st.local.f32 [%rd7+4], %f4;
        ld.local.f32 %f5, [%rd7];
        ld.local.f32 %f6, [%rd7+4];
        fma.rn.f32 %f2, %f5, %f6, %f3;
    """
    np.testing.assert_array_equal(run(middle, X, before), 2 * X + 1)


def test_a_register_and_its_parts() -> None:
    middle = """
        cvt.f64.f32 %fd1, %f1;
        {
        .reg .b32 %low;
        mov.b64 {%low, %r6}, %fd1;
        xor.b32 %r7, %r6, -2147483648;
        mov.b64 %fd2, {%low, %r7};
        }
        cvt.rn.f32.f64 %f2, %fd2;
    """
    np.testing.assert_array_equal(run(middle, X), -X)


def test_a_scope_has_registers_of_its_own() -> None:
    middle = """
        mov.f32 %f2, %f1;
        { .reg .f32 %f2, %f3; add.f32 %f2, %f1, %f1; mov.f32 %f3, %f2; }
        { .reg .b64 %f3; mov.b64 %f3, 0; }
    """
    np.testing.assert_array_equal(run(middle, X), X)


@pytest.mark.parametrize(
    ("middle", "size", "message"),
    [
        ("mov.f32 %f2, %f1;", 8, "reads a byte of nobody"),
        ("mov.f32 %f2, %f1;", 6, "no thread has written"),
        ("st.global.f32 [%rd4], %f1; mov.f32 %f2, %f1;", 7, "not writable"),
        ("ld.global.f32 %f2, [%rd5];", 7, "never written"),
        ("ld.global.f32 %f2, [%rd4+2];", 7, "not a multiple of 4"),
        ("ld.global.f32 %f2, [%rd4+-99999];", 7, "outside of the memory"),
    ],
)
def test_a_thread_touches_only_its_memory(middle: str, size: int, message: str) -> None:
    """Behind the end, a missing element, an input that is written, a result that is read."""
    with pytest.raises(MemoryFaultError, match=message):
        run(middle, X, size=size)


def test_elements_between_those_of_a_strided_array_belong_to_nobody() -> None:
    memory = Memory()
    start = memory.add_array(np.arange(10, dtype=np.int32)[::-2], READ)
    values = memory.load(start - 8 * np.arange(5), np.dtype(np.int32))
    np.testing.assert_array_equal(values, [9, 7, 5, 3, 1])
    with pytest.raises(MemoryFaultError):
        memory.load(start - 4 * np.arange(5), np.dtype(np.int32))


# --- arithmetic ----------------------------------------------------------------------------------


def test_subnormal_numbers_are_flushed() -> None:
    x = np.asarray([1e-40, -1e-40, 1e-30], np.float32)
    np.testing.assert_array_equal(run("add.ftz.f32 %f2, %f1, 0f00000000;", x), [0, 0, x[2]])
    y = run("mul.ftz.f32 %f2, %f1, 0f3F800000;", x)
    np.testing.assert_array_equal(np.signbit(y), [False, True, False])
    np.testing.assert_array_equal(run("add.f32 %f2, %f1, 0f00000000;", x), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype: str) -> None:
    """Compared with Python's fractions, where the sum cancels too."""
    from fractions import Fraction

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200)).astype(dtype)
    kind = "f32" if dtype == "float32" else "f64"
    (one,) = (
        read_module(f".entry k() {{ fma.rn.{kind} %a, %b, %c, %d; }}").functions["k"].blocks[0]
    )
    for z in (-x * y, rng.normal(size=200).astype(dtype), (x * y * 1e-9).astype(dtype)):
        found = arithmetic.compute(one, [x, y, z])
        for a, b, c, d in zip(x, y, z, found, strict=True):
            exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
            near = [np.nextafter(d, np.array(side, dtype)) for side in (-np.inf, np.inf)]
            errors = [abs(Fraction(float(one)) - exact) for one in (d, *near)]
            assert errors[0] == min(errors)


def test_directed_roundings() -> None:
    """Down, and towards zero, at a sum between two float32 numbers."""
    x = np.asarray([1.0, -1.0, 1.0, -1.0], np.float32)
    tiny = np.asarray([1e-20, 1e-20, -1e-20, -1e-20], np.float32)
    text = ".entry k() { add.rz.f32 %a, %b, %c; fma.rm.f32 %a, %b, %b, %c; }"
    towards_zero, down = read_module(text).functions["k"].blocks[0]
    found = arithmetic.compute(towards_zero, [x, tiny])
    np.testing.assert_array_equal(found, np.float32([1, -1 + 2**-24, 1 - 2**-24, -1]))
    found = arithmetic.compute(down, [x, x, tiny])
    np.testing.assert_array_equal(found, np.float32([1, 1, 1 - 2**-24, 1 - 2**-24]))


@pytest.mark.parametrize(
    ("instruction", "arrays", "expected"),
    [
        ("setp.ltu.f32", [[1.0, np.nan], [2.0, 2.0]], [True, True]),
        ("setp.lt.f32", [[1.0, np.nan], [2.0, 2.0]], [True, False]),
        ("setp.ne.f32", [[np.nan, 1.0], [np.nan, 2.0]], [False, True]),
        ("setp.neu.f32", [[np.nan, 1.0], [np.nan, 1.0]], [True, False]),
        ("max.f32", [[np.nan, -1.0], [2.0, -2.0]], [2.0, -1.0]),
        ("cvt.rzi.s32.f32", [[-1.5, np.nan, 3e9]], [-1, 0, 2**31 - 1]),
        ("cvt.rni.s32.f32", [[0.5, 1.5, -2.5]], [0, 2, -2]),
        ("cvt.s64.s32", [np.int32([-1, 5])], [-1, 5]),
        ("cvt.u64.u32", [np.uint32([2**32 - 1])], [2**32 - 1]),
        ("div.s32", [np.int32([-7, 7]), np.int32([2, -2])], [-3, -3]),
        ("mul.hi.u32", [np.uint32([2**31]), np.uint32([6])], [3]),
        ("mul.wide.s32", [np.int32([-(2**31)]), np.int32([2])], [-(2**32)]),
        ("shl.b32", [np.uint32([1, 1]), np.uint32([31, 32])], [2**31, 0]),
        ("shr.s32", [np.int32([-8, -8]), np.uint32([1, 40])], [-4, -1]),
        ("popc.b32", [np.uint32([255])], [8]),
        ("clz.b32", [np.uint32([1, 0, 2**31])], [31, 32, 0]),
    ],
)
def test_instructions(instruction: str, arrays: list[Any], expected: list[Any]) -> None:
    operands = ", ".join(["%d", "%a", "%b", "%c"][: len(arrays) + 1])
    module = read_module(f".entry k() {{ {instruction} {operands}; }}")
    (one,) = module.functions["k"].blocks[0]
    given = [np.asarray(a, np.float32) if isinstance(a, list) else a for a in arrays]
    np.testing.assert_array_equal(arithmetic.compute(one, given), expected)


def test_sums_with_a_carry() -> None:
    module = read_module(".entry k() { add.cc.u32 %a, %b, %c; addc.u32 %a, %b, %c; }")
    first, second = module.functions["k"].blocks[0]
    low, carry = arithmetic.compute_with_carry(
        first, [np.uint32([2**32 - 1, 5]), np.uint32([1, 5])], np.zeros(2, np.int64)
    )
    high, _ = arithmetic.compute_with_carry(second, [np.uint32([0, 0]), np.uint32([7, 7])], carry)
    np.testing.assert_array_equal([low, high], [[0, 10], [8, 7]])


# --- the text ------------------------------------------------------------------------------------


def test_the_parts_of_an_instruction() -> None:
    text = ".entry k() { .reg .b32 %r<9>; A: @!%p1 mov.b64 {%r1, %r2}, 0d3FF0000000000000; }"
    function = read_module(text).functions["k"]
    (one,) = function.blocks[function.labels["A"]]
    assert one.guard == Register("%p1") and one.guard_is_negated
    assert (one.name, one.modifiers, one.types) == ("mov", (), ("b64",))
    assert one.operands == (Vector((Register("%r1"), Register("%r2"))), Number(0x3FF << 52))
    assert function.type_of("%r7") == "b32"


@pytest.mark.parametrize(
    "middle", ["vote.sync.all.pred %p2, %p1, -1;", "sub.rz.f32 %f2, %f1, %f1;", "+1;"]
)
def test_an_unknown_instruction_is_an_error(middle: str) -> None:
    with pytest.raises(UnknownPTXError, match=r"vote|sub\.rz|not an instruction"):
        run(middle + " mov.f32 %f2, %f1;", X)


def test_arguments_of_other_sizes_are_an_error() -> None:
    with pytest.raises(MachineError, match=r"parameters of \[8, 8, 4\] bytes"):
        launch(read_module(KERNEL % ("", "")), "kernel", 1, 1, [b"", b"", b""], Memory())
