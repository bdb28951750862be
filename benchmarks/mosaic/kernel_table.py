"""Tables of a model's kernels beside what the machine allows, in Markdown: `./dev bench mosaic --kernels`.

A kernel's limit is the longer of two times: that of its multiplications and additions at the rate of multiply-adds on
registers, and that of the bytes it touches, each once, at the rate of copying memory beyond all caches. A kernel is
faster than its limit where its values lie in a cache, or where an algorithm computes fewer products than the operation
is counted with (Winograd, Strassen).
"""

from typing import NamedTuple

SHOWN = 0.9  # of the time; the kernels of the rest are one row


class Kernel(NamedTuple):
    """Kernels of one name, over a call: equal code for equal sizes."""

    name: str
    calls: int
    nanoseconds: int
    operations: int
    bytes: int

    def limit(self, machine):
        """Nanoseconds, and what they are needed for."""
        return max((self.operations / machine["fma"], "arithmetic"), (self.bytes / machine["copy"], "memory"))


def by_name(measured):
    """The longest time first."""
    sums = {}
    for kernel in measured:
        sum = sums.setdefault(kernel["name"], [0, 0, 0, 0])
        for i, value in enumerate((1, kernel["nanoseconds"], kernel["operations"], kernel["bytes"])):
            sum[i] += value
    return sorted((Kernel(name, *sum) for name, sum in sums.items()), key=lambda kernel: -kernel.nanoseconds)


def merged(name, kernels):
    return Kernel(name, *(sum(getattr(kernel, field) for kernel in kernels) for field in Kernel._fields[1:]))


def shown(kernels):
    """The longest ones, and a row for the others."""
    all, most, taken = sum(kernel.nanoseconds for kernel in kernels), [], 0
    for kernel in kernels:
        if taken >= SHOWN * all:
            break
        most.append(kernel)
        taken += kernel.nanoseconds
    rest = kernels[len(most):]
    return most + ([merged(f"{len(rest)} others", rest)] if rest else [])


def row(kernel, all, limit, bound):
    rate = f"{kernel.operations / kernel.nanoseconds:.0f}" if kernel.operations else ""
    time = kernel.nanoseconds
    return (f"| {kernel.name} | {kernel.calls} | {time * 1e-6:.3f} | {100 * time / all:.1f} "
            f"| {rate} | {kernel.bytes / time:.1f} | {limit * 1e-6:.3f} {bound} "
            f"| {time / limit if limit else 0:.2f} |")


def table(name, threads, answer):
    """`answer`: of bench_mosaic --kernels."""
    machine = {key: max(look[key] for look in answer["machine"]) for key in ("fma", "copy")}
    kernels = by_name(answer["kernels"])
    all = sum(kernel.nanoseconds for kernel in kernels)
    limits = {kernel: kernel.limit(machine) for kernel in kernels}
    limit_of_all = sum(limit for limit, _ in limits.values())
    lines = [f"{name}, {threads} thread{'s' if threads > 1 else ''}: {machine['fma']:.0f} GFLOP/s on registers, "
             f"{machine['copy']:.1f} GB/s", "",
             "| kernel | calls | ms | % | GFLOP/s | GB/s | limit, ms | time / limit |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    rows = shown(kernels)
    for kernel in rows:
        others = kernel not in limits
        limit, bound = (limit_of_all - sum(limits[one][0] for one in rows[:-1]), "") if others else limits[kernel]
        lines.append(row(kernel, all, limit, bound))
    lines.append(row(merged("all", kernels), all, limit_of_all, ""))
    return "\n".join(lines) + "\n"
