"""Write the tables of ``angles.h``: 2/pi with all the bits that reducing a float64 may need."""

from __future__ import annotations

from functools import cache

# Bits of 2/pi: leading zeros of the table, and its length.
ZEROS, TABLE = 64, 1280
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17


@cache
def angle_tables() -> str:
    """Return the tables of ``angles.h`` as C."""
    whole = two_over_pi()
    words = [f"0x{whole >> place & (1 << 64) - 1:x}" for place in range(TABLE - 64, -1, -64)]
    numbers = {
        "HALF_PI": HALF_PI.hex(), "HALF_PI_LOW": HALF_PI_LOW.hex(), "TWO_OVER_PI_ZEROS": ZEROS,
    }  # fmt: skip
    lines = [f"TABLE uint64_t TWO_OVER_PI[] = {{{', '.join(words)}}};"]
    lines += [f"#define {name} {number}" for name, number in numbers.items()]
    return "\n".join(lines) + "\n"


def two_over_pi() -> int:
    """Return 2/pi with ``TABLE`` bits, the first ``ZEROS`` of which are zeros."""
    guarded = TABLE + 64
    # Machin's formula.
    quarter = 4 * _arctan_of_inverse(5, guarded) - _arctan_of_inverse(239, guarded)
    return (1 << (guarded + TABLE - ZEROS)) // (2 * quarter)


def _arctan_of_inverse(n: int, bits: int) -> int:
    total, power, k = 0, (1 << bits) // n, 0
    while power:
        total += (-power if k % 2 else power) // (2 * k + 1)
        power //= n * n
        k += 1
    return total
