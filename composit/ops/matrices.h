// Batches of matrices in memory, for rows whose native code is composit/shipped/matrices.h.
//
//   Numbers l = room_for(type);
//   fl::cholesky(numbers_of(a).data(), matrices_of(a.type()), upper, l.data(), info.data());
//   return array_of(type, l);
//
// Numbers are complex double whatever the array holds; of real ones, the imaginary part is zero.
#pragma once

#include <complex>
#include <vector>

#include "composit/ops/native.h"
#include "composit/ops/runtime_options.h"

namespace composit {

using Numbers = std::vector<std::complex<double>>;

inline Numbers numbers_of(const Array& array) { return elements<std::complex<double>>(array); }
// Zeros for a result of that type.
inline Numbers room_for(const Type& type) { return Numbers(static_cast<size_t>(type.numel())); }

}  // namespace composit
