"""Compiled loops that add random Fourier features of many records, in fixed point.

A feature is ``exp(2 pi i t)`` with the phase ``t = omega' x / (2 pi)`` in turns. Let r be the
difference of t and the nearest integer. Then s = sin(pi r) and c = cos(pi r) are computed by
polynomials, ``cos(2 pi t) = 1 - 2 s^2`` and ``sin(2 pi t) = 2 s c``. Without quadrants, branches,
tables or calls the loops become vector instructions. The last multiply-add rounds to a multiple of
2^-22 (float32) or 2^-40 (float64): its addend, 1.5 * 2^23 or 1.5 * 2^52, leaves an integer in the
low bits of the result. The loops add these integers, so that sums do not depend on the order of
records, on blocks or on threads.

Every operation is one IEEE 754 multiplication, addition or fused multiply-add. The compiler may not
reorder or contract them, so that features are the same in vectorized loops, in their remainders and
on other machines.

The polynomials interpolate sin(pi r) / r and cos(pi r) at the Chebyshev nodes of r^2 in [0, 1/4]:

=======  =====  ===============  =================
X        terms  error of sin     error of cos
=======  =====  ===============  =================
float32  5      6.7e-9           4.7e-8
float64  8      1.8e-16          2.0e-15
=======  =====  ===============  =================

Over all float32 r, the error of a rounded feature is at most 8.2e-7 and its modulus exceeds 1 by at
most 7.9e-7; in float64 both are below 1e-12.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from privclust.core.compiled import kernel, part
from privclust.core.vectormath import fused

BLOCK = 256  # records added before a carry: their features add up to at most 2^30 in 32 bits
LANES = 4  # columns of X and of the frequencies are padded with zeros to a multiple of this
_FRACTION_BITS = {32: 22, 64: 40}
FRACTION_BITS = {np.dtype(f"f{bits // 8}"): places for bits, places in _FRACTION_BITS.items()}

# Coefficients of 1, r^2, r^4, ...
_SINE = {
    32: (
        3.1415926400772034,
        -5.167710076668315,
        2.550077386528912,
        -0.5982904112834275,
        0.07765591227601387,
    ),
    64: (
        3.1415926535897927,
        -5.1677127800497855,
        2.5501640398618677,
        -0.599264528825224,
        0.08214587881631043,
        -0.0073703643265304155,
        0.0004659870158043378,
        -2.113362735205297e-05,
    ),
}
_COSINE = {
    32: (
        0.9999999530275123,
        -4.934792802489459,
        4.058410790762598,
        -1.331872972787485,
        0.21968242357537815,
    ),
    64: (
        0.9999999999999981,
        -4.934802200543686,
        4.058712126333295,
        -1.3352627661817635,
        0.23533058831317874,
        -0.025806531975921563,
        0.0019278700526981333,
        -0.0001004164642205389,
    ),
}
_ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}
_ROUNDER_BITS = {
    32: int(np.float32(_ROUNDER[32]).view(np.int32)),
    64: int(np.float64(_ROUNDER[64]).view(np.int64)),
}


def _integer_of(float_type):
    return types.int32 if float_type.bitwidth == 32 else types.int64


def _polynomial(builder, square, coefficients, scale):
    """Emit Horner's rule in r^2 for the coefficients times a scale."""
    terms = [ir.Constant(square.type, scale * value) for value in coefficients]
    result = terms.pop()
    while terms:
        result = builder.fma(square, result, terms.pop())
    return result


def _half_turn(builder, r, bits, scale):
    """Emit sin(pi r) and cos(pi r) times a scale, for |r| <= 1/2."""
    square = builder.fmul(r, r)
    sine = builder.fmul(r, _polynomial(builder, square, _SINE[bits], scale))
    return sine, _polynomial(builder, square, _COSINE[bits], scale)


@intrinsic
def half_turn(typing_context, r):
    """Return sin(pi r) and cos(pi r) for |r| <= 1/2, in single or double precision."""

    def generate(context, builder, signature, arguments):
        pair = _half_turn(builder, arguments[0], r.bitwidth, 1.0)
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(r, 2)(r), generate


@intrinsic
def _add_feature(typing_context, sums, phase):
    """Return the integer sums (cosine, sine) plus the feature of a phase, each + _ROUNDER_BITS."""
    bits = phase.bitwidth
    integer = _integer_of(phase)
    fraction_bits = _FRACTION_BITS[bits]
    scale = 2.0 ** ((fraction_bits + 1) / 2)  # scaled s and c: s * s is 2 s^2 in fixed point

    def generate(context, builder, signature, arguments):
        pair, t = arguments
        nearest = builder.module.declare_intrinsic("llvm.rint", [t.type])
        r = builder.fsub(t, builder.call(nearest, [t]))
        sine, cosine = _half_turn(builder, r, bits, scale)
        rounder = ir.Constant(t.type, _ROUNDER[bits])
        one = ir.Constant(t.type, _ROUNDER[bits] + 2.0**fraction_bits)
        parts = (builder.fma(builder.fneg(sine), sine, one), builder.fma(sine, cosine, rounder))
        for position, number in enumerate(parts):
            as_integer = builder.bitcast(number, ir.IntType(bits))
            total = builder.add(builder.extract_value(pair, position), as_integer)
            pair = builder.insert_value(pair, total, position)
        return pair

    pair_type = types.UniTuple(integer, 2)
    return pair_type(pair_type, phase), generate


@intrinsic
def _minus_rounders(typing_context, count, phase):
    """Return the start values that cancel `count` additions of _ROUNDER_BITS, modulo overflow."""
    bits = phase.bitwidth

    def generate(context, builder, signature, arguments):
        number = arguments[0]
        if bits < number.type.width:
            number = builder.trunc(number, ir.IntType(bits))
        value = builder.mul(number, ir.Constant(ir.IntType(bits), -_ROUNDER_BITS[bits]))
        return context.make_tuple(builder, signature.return_type, (value, value))

    pair_type = types.UniTuple(_integer_of(phase), 2)
    return pair_type(types.int64, phase), generate


@intrinsic
def _four_phases(typing_context, rows, i, turns, chosen, t, phases):
    """Set phases[t:t+4] to the products of row i with four rows of turns, chosen[t:t+4]."""
    real = turns.dtype

    def generate(context, builder, signature, arguments):
        def array(position):
            """Return the array argument at a position."""
            make = context.make_array(signature.args[position])
            return make(context, builder, arguments[position])

        n_columns = builder.extract_value(array(0).shape, 1)
        width, lanes = n_columns.type, ir.Constant(n_columns.type, LANES)
        vector = ir.VectorType(context.get_value_type(real), LANES)
        multiply_add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fma.v{LANES}f{real.bitwidth}",
        )

        def load(pointer):
            """Return the LANES numbers at an address."""
            return builder.load(
                builder.bitcast(pointer, vector.as_pointer()), align=real.bitwidth // 8
            )

        x = builder.gep(array(0).data, [builder.mul(arguments[1], n_columns)])
        pointers, totals = [], []
        for lane in range(LANES):
            place = builder.add(arguments[4], ir.Constant(width, lane))
            row = builder.zext(builder.load(builder.gep(array(3).data, [place])), width)
            pointers.append(builder.gep(array(2).data, [builder.mul(row, n_columns)]))
            totals.append(cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES)))
        with cgutils.for_range(builder, builder.udiv(n_columns, lanes)) as loop:
            column = builder.mul(loop.index, lanes)
            values = load(builder.gep(x, [column]))
            for pointer, total in zip(pointers, totals, strict=True):
                weights = load(builder.gep(pointer, [column]))
                terms = [values, weights, builder.load(total)]
                builder.store(builder.call(multiply_add, terms), total)
        a, b, c, d = (builder.load(total) for total in totals)
        ab, cd = (
            _add_halves(builder, *pair, (0, 1, 4, 5), (2, 3, 6, 7)) for pair in ((a, b), (c, d))
        )
        result = _add_halves(builder, ab, cd, (0, 2, 4, 6), (1, 3, 5, 7))
        target = builder.gep(array(5).data, [arguments[4]])
        builder.store(
            result, builder.bitcast(target, vector.as_pointer()), align=real.bitwidth // 8
        )
        return context.get_dummy_value()

    return types.void(rows, types.int64, turns, chosen, types.int64, phases), generate


def _add_halves(builder, a, b, first, second):
    """Emit the sum of two selections of the elements of two vectors."""
    parts = [
        builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), places))
        for places in (first, second)
    ]
    return builder.fadd(*parts)


@kernel()
def add_features(blocks, n_records, turns, shift, sums):
    """Add the features of records to sums (m, 2), the real and imaginary parts.

    `blocks` (n_blocks, n_columns, BLOCK) holds records along the last axis, the first n_records of
    which count. `turns` (m, n_columns) holds frequencies over 2 pi. `shift` is the left shift that
    is applied to fixed-point features before they are added.
    """
    phases = np.zeros(BLOCK, blocks.dtype)  # stays 0 if there are only LANES columns
    zero = phases[0]
    last = turns.shape[1] - LANES
    for b in range(blocks.shape[0]):
        x = blocks[b]
        n = min(BLOCK, n_records - b * BLOCK)
        for j in range(turns.shape[0]):
            w = turns[j]
            # the first columns set the phases, which need not be filled with zeros before
            if last >= 2 * LANES:
                for i in range(n):
                    phases[i] = _four_terms(x, LANES, w, i, _four_terms(x, 0, w, i, zero))
            elif last:
                for i in range(n):
                    phases[i] = _four_terms(x, 0, w, i, zero)
            for k in range(2 * LANES, last, LANES):
                for i in range(n):
                    phases[i] = _four_terms(x, k, w, i, phases[i])
            pair = _minus_rounders(n, phases[0])
            for i in range(n):
                pair = _add_feature(pair, _four_terms(x, last, w, i, phases[i]))
            sums[j, 0] += np.int64(pair[0]) << shift
            sums[j, 1] += np.int64(pair[1]) << shift


@kernel()
def add_weighted_features(blocks, weights, n_records, turns, shift, sums):
    """Add features as `add_features`, times weights (n_blocks, BLOCK), truncated towards zero.

    Truncation makes no part larger: weights that add up to 1 keep the bound of one record.
    """
    phases = np.zeros(BLOCK, blocks.dtype)
    last = turns.shape[1] - LANES
    start = _minus_rounders(1, phases[0])
    for b in range(blocks.shape[0]):
        x = blocks[b]
        n = min(BLOCK, n_records - b * BLOCK)
        for j in range(turns.shape[0]):
            w = turns[j]
            for i in range(n):
                phases[i] = phases.dtype.type(0)
            for k in range(0, last, LANES):
                for i in range(n):
                    phases[i] = _four_terms(x, k, w, i, phases[i])
            cosines, sines = np.int64(0), np.int64(0)
            for i in range(n):
                pair = _add_feature(start, _four_terms(x, last, w, i, phases[i]))
                cosines += np.int64(np.float64(np.int64(pair[0]) << shift) * weights[b, i])
                sines += np.int64(np.float64(np.int64(pair[1]) << shift) * weights[b, i])
            sums[j, 0] += cosines
            sums[j, 1] += sines


@part()
def _four_terms(x, k, w, i, start):
    """Return `start` plus four terms of the phase of record i, from column k on."""
    start = fused(x[k, i], w[k], start)
    start = fused(x[k + 1, i], w[k + 1], start)
    start = fused(x[k + 2, i], w[k + 2], start)
    return fused(x[k + 3, i], w[k + 3], start)


@part()
def _mix(z):
    """Return the output function of SplitMix64: a bijection of 64 bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@part()
def _bounded(key, step, counter, bound):
    """Return a random integer below `bound` in the high 32 bits; the low ones decide rejection."""
    return (_mix(key + step * np.uint64(counter)) >> np.uint64(32)) * np.uint64(bound)


@part()
def draw_subset(seed, record, rejected_below, stamp, seen, subset):
    """Draw a subset of 0..m-1 uniformly, by Floyd's algorithm.

    Draw i is uniform in 0..m-r+i, by Lemire's method with rejection. A value that was drawn before
    is replaced by m-r+i.

    The unordered subset (r,) is a function of seed and record. `rejected_below` (r,) is 2^32
    modulo m-r+1+i. Drawn values are marked by `stamp` in the work space `seen` (m,), which must not
    hold this value before.
    """
    key = _mix(_mix(seed + np.uint64(0x9E3779B97F4A7C15)) + record)
    step = _mix(key) | np.uint64(1)
    r = subset.shape[0]
    first = seen.shape[0] - r
    n_rejected = 0
    for i in range(r):
        product = _bounded(key, step, i, first + 1 + i)
        subset[i] = product >> np.uint64(32)
        n_rejected += np.uint32(product) < rejected_below[i]
    # rare: draw again in order, with counters from r on where a number was rejected
    if n_rejected:
        counter = r
        for i in range(r):
            product = _bounded(key, step, i, first + 1 + i)
            while np.uint32(product) < rejected_below[i]:
                product = _bounded(key, step, counter, first + 1 + i)
                counter += 1
            subset[i] = product >> np.uint64(32)
    for i in range(r):
        value = subset[i]
        value = np.uint32(first + i) if seen[value] == stamp else value
        seen[value] = stamp
        subset[i] = value


@kernel()
def add_masked_features(rows, first_record, turns, n_measurements, seed, shift, sums):
    """Add, for every record, the features of its own random subset of r of the frequencies.

    The subset is a function of the seed and the index of the record. Indices of `rows`
    (n_records, n_columns) start at `first_record`. Other arguments are those of `add_features`.
    """
    m = turns.shape[0]
    r = n_measurements
    group = max(1, BLOCK // r)  # records whose features are evaluated in one loop
    # padded: _four_phases reads and writes up to LANES - 1 entries beyond a subset
    chosen = np.zeros(group * r + LANES - 1, np.uint32)
    phases = np.empty(group * r + LANES - 1, rows.dtype)
    # two arrays: a loop that stores pairs does not vectorise
    cosines = np.empty(group * r, np.int64)
    sines = np.empty(group * r, np.int64)
    seen = np.zeros(m, np.uint8)
    rejected_below = np.empty(r, np.uint64)
    for i in range(r):
        rejected_below[i] = np.uint64(1 << 32) % np.uint64(m - r + 1 + i)
    start = _minus_rounders(1, phases[0])
    for begin in range(0, rows.shape[0], group):
        n = min(group, rows.shape[0] - begin)
        for g in range(n):
            stamp = (begin + g) % 255 + 1  # clears `seen` only every 255 records
            if stamp == 1:
                seen[:] = 0
            subset = chosen[g * r : (g + 1) * r]
            record = np.uint64(first_record + begin + g)
            draw_subset(seed, record, rejected_below, np.uint8(stamp), seen, subset)
            for i in range(0, r, LANES):
                _four_phases(rows, begin + g, turns, chosen, g * r + i, phases)
        for i in range(n * r):
            pair = _add_feature(start, phases[i])
            cosines[i] = np.int64(pair[0]) << shift
            sines[i] = np.int64(pair[1]) << shift
        for i in range(n * r):
            sums[chosen[i], 0] += cosines[i]
            sums[chosen[i], 1] += sines[i]
