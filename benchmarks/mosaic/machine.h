// The machine's speed at this moment: a virtual one changes from minute to minute, and so does
// one that others use. Taken before and after whatever is measured.
//
//   const Machine now = look_at_machine(2);
//
#pragma once

namespace benchmarks {

struct Machine {
  double fma;        // GFLOP/s of multiply-adds on registers, all threads together
  double copy;       // GB/s read and written by copying memory beyond all caches
  double ping_pong;  // nanoseconds until a core sees what another one has written
};

// Takes some ten milliseconds.
Machine look_at_machine(int threads);

}  // namespace benchmarks
