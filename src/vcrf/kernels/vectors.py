"""A small matrix times a vector, four sums to a register: the step of forward-backward for up to 32 labels.

out[i] = sum_j matrix[j, i] * x[j]. The sums of all i are kept in registers while j runs, which compiled loops do not
do by themselves: the number of registers must be known when they are compiled. So there is one loop for each.
`dots` does the same with the matrix the other way round, for any number of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vcrf.kernels._jit import fast_kernel, inner_fast_kernel
from vcrf.types import Floats

WIDTH = 4  # doubles in a register
WIDEST = 32  # eight registers of sums, with as many left for the rest

_I64 = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
_FIRST_LANE = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)


def _integer(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


def _place(builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """Address of the register that begins at pointer[offset]."""
    return builder.bitcast(builder.gep(pointer, [offset]), _VECTOR.as_pointer())


def _spread(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The value in every lane."""
    one = builder.insert_element(_UNDEFINED, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, _UNDEFINED, _FIRST_LANE)


def _emit_loop(builder: ir.IRBuilder, matrix: ir.Value, x: ir.Value, out: ir.Value, size: ir.Value, n: int) -> None:
    """The loop over j for n registers; the last one overlaps the one before unless 4 divides the size."""
    entry = builder.block
    loop, done = builder.append_basic_block(f"loop{n}"), builder.append_basic_block(f"done{n}")
    offsets = [_integer(WIDTH * k) for k in range(n - 1)] + [builder.sub(size, _integer(WIDTH))]
    builder.branch(loop)
    builder.position_at_end(loop)
    j, row = builder.phi(_I64), builder.phi(_I64)
    sums = [builder.phi(_VECTOR) for _ in range(n)]
    factor = _spread(builder, builder.load(builder.gep(x, [j])))
    new = []
    for total, offset in zip(sums, offsets, strict=True):
        entries = builder.load(_place(builder, matrix, builder.add(row, offset)), align=8)
        new.append(builder.fadd(total, builder.fmul(factor, entries, flags=["contract"]), flags=["contract"]))
    next_j, next_row = builder.add(j, _integer(1)), builder.add(row, size)
    for phi, first, later in [
        (j, _integer(0), next_j),
        (row, _integer(0), next_row),
        *((total, ir.Constant(_VECTOR, [0.0] * WIDTH), after) for total, after in zip(sums, new, strict=True)),
    ]:
        phi.add_incoming(first, entry)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_unsigned("<", next_j, size), loop, done)
    builder.position_at_end(done)
    for total, offset in zip(new, offsets, strict=True):
        builder.store(total, _place(builder, out, offset), align=8)


def _emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
    def pointer(k: int) -> ir.Value:
        array = context.make_array(signature.args[k])(context, builder, args[k])
        return builder.gep(array.data, [args[k + 1]])

    matrix, x, out, size = pointer(0), pointer(2), pointer(4), args[6]
    end = builder.append_basic_block("end")
    n_registers = builder.udiv(builder.add(size, _integer(WIDTH - 1)), _integer(WIDTH))
    cases = builder.switch(n_registers, end)
    for n in range(1, WIDEST // WIDTH + 1):
        block = builder.append_basic_block(f"registers{n}")
        cases.add_case(_integer(n), block)
        builder.position_at_end(block)
        _emit_loop(builder, matrix, x, out, size, n)
        builder.branch(end)
    builder.position_at_end(end)
    return context.get_dummy_value()


def _typed(_: Any, matrix: Any, first: Any, x: Any, x_first: Any, out: Any, out_first: Any, size: Any) -> Any:
    """`products` for WIDTH <= size <= WIDEST; indices are uint64."""
    return types.void(matrix, first, x, x_first, out, out_first, size), _emit


_in_registers: Any = intrinsic(_typed)


@fast_kernel
def products(matrix: Floats, first: int, x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    """out[i] = sum_j matrix[j, i] * x[j], all three inside flat arrays; sizes up to WIDEST, others are left alone."""
    if size >= WIDTH:
        _in_registers(matrix, np.uint64(first), x, np.uint64(x_first), out, np.uint64(out_first), np.uint64(size))
    else:
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += matrix[first + j * size + i] * x[x_first + j]
            out[out_first + i] = total


@inner_fast_kernel
def dots(matrix: Floats, first: int, x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    """out[i] = sum_j matrix[i, j] * x[j], all three inside flat arrays; long rows share the loads of x by four.

    Flat arrays and unsigned indices: views and wrap-around checks would cost more than the products.
    """
    n = np.uint64(size)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    m, u, o = np.uint64(first), np.uint64(x_first), np.uint64(out_first)
    i = np.uint64(0)
    while n > np.uint64(16) and i + four <= n:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        m1, m2, m3 = m + n, m + n + n, m + n + n + n
        for j in range(n):
            z = x[u + j]
            s0 += z * matrix[m + j]
            s1 += z * matrix[m1 + j]
            s2 += z * matrix[m2 + j]
            s3 += z * matrix[m3 + j]
        out[o + i] = s0
        out[o + i + one] = s1
        out[o + i + two] = s2
        out[o + i + three] = s3
        i += four
        m = m3 + n
    while i < n:
        s = 0.0
        for j in range(n):
            s += x[u + j] * matrix[m + j]
        out[o + i] = s
        i += one
        m += n
