// Random numbers as a function of a seed and a place in its sequence. (Draws from a program's
// generator, such as aten::rand, are effects; see composit/ops/draws.h.)
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/pcg64.h"

namespace composit {

static std::vector<Type> drawn_type(const Ints& size, DType dtype) {
  if (dtype != DType::float32 && dtype != DType::float64)
    throw UserError("expected float32 or float64, received " + std::string(name(dtype)));
  for (int64_t n : size)
    if (n < 0) throw UserError("expected sizes of at least 0, received " + str(size));
  return {tensor_type(dtype, size)};
}

void add_random_rows(OperationTable& rows) {
  // Uniform in [0, 1): the numbers of numpy.random.default_rng(seed).random from `position` on; see
  // composit/ops/pcg64.h.
  rows.add({.schema = "composit::random(int[] seed, int position, int half, SymInt[] size, "
                      "ScalarType dtype) -> Tensor",
            .infer = [](Ints, int64_t, int64_t, Ints size,
                        DType dtype) { return drawn_type(size, dtype); },
            .native =
                [](Ints seed, int64_t position, int64_t half, Ints size, DType dtype) {
                  Pcg64 bits(seed, position, half);
                  const Type type = drawn_type(size, dtype)[0];
                  std::vector<double> values(static_cast<size_t>(type.numel()));
                  for (double& value : values)
                    value = dtype == DType::float32 ? bits.next_float() : bits.next_double();
                  return std::vector<Array>{array_of(type, values)};
                },
            .samples = "[42] 0 -1 [2,3] float32 | [7,1] 5 3 [4] float32 | [0] 2 -1 [] float64",
            .bad = "[1] 0 -1 [2] int64: float32 or float64 | [1] 0 -1 [-2] float32: at least 0"});
}

}  // namespace composit
