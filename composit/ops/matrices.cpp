#include "composit/ops/matrices.h"

#include <memory>

#include "composit/op/compute_type.h"

namespace composit {
namespace {

int64_t count_of(const Type& type) {
  int64_t count = 1;
  for (size_t axis = 0; axis + 2 < type.rank(); ++axis) count *= type.sizes[axis].value();
  return count;
}

}  // namespace

Matrices::Matrices(int64_t count, int64_t rows, int64_t columns)
    : count(count),
      rows(rows),
      columns(columns),
      elements(static_cast<size_t>(count * rows * columns)) {}

Matrices::Matrices(const Array& array)
    : Matrices(count_of(array.type()), array.type().sizes[array.type().rank() - 2].value(),
               array.type().sizes.back().value()) {
  const Array plain = array.contiguous();
  with_storage(plain.type().dtype, [&]<class S>(std::type_identity<S>) {
    const S* data = reinterpret_cast<const S*>(plain.data());
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = convert<Number>(to_compute(data[i]));
  });
}

Array Matrices::array(const Type& type) const {
  return with_storage(type.dtype, [&]<class S>(std::type_identity<S>) {
    const auto stored = std::make_unique<S[]>(elements.size());
    for (size_t i = 0; i < elements.size(); ++i) stored[i] = convert<S>(elements[i]);
    return Array::copy_of(type, stored.get());
  });
}

Matrices adjoint(const Matrices& a) {
  Matrices result(a.count, a.columns, a.rows);
  for (int64_t m = 0; m < a.count; ++m)
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < a.columns; ++j) result(m, j, i) = std::conj(a(m, i, j));
  return result;
}

}  // namespace composit
