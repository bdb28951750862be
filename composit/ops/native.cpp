#include "composit/ops/native.h"

#include <cstring>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"

namespace composit {

template <class T>
std::vector<T> elements(const Array& array) {
  const Array dense = array.contiguous();
  return with_storage(dense.type().dtype, [&]<class S>(std::type_identity<S>) {
    std::vector<T> values(static_cast<size_t>(dense.type().numel()));
    const auto* data = reinterpret_cast<const S*>(dense.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = convert<T>(to_compute(data[i]));
    return values;
  });
}

template <class T>
Array array_of(const Type& type, const std::vector<T>& values) {
  COMPOSIT_ASSERT(static_cast<int64_t>(values.size()) == type.numel(), "another number of values");
  return with_storage(type.dtype, [&]<class S>(std::type_identity<S>) {
    std::vector<std::byte> bytes(values.size() * sizeof(S));
    for (size_t i = 0; i < values.size(); ++i) {
      const S stored = convert<S>(values[i]);
      std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
    }
    return Array::copy_of(type, bytes.data());
  });
}

template std::vector<double> elements<double>(const Array&);
template std::vector<int64_t> elements<int64_t>(const Array&);
template std::vector<std::complex<double>> elements<std::complex<double>>(const Array&);
template Array array_of<double>(const Type&, const std::vector<double>&);
template Array array_of<int64_t>(const Type&, const std::vector<int64_t>&);
template Array array_of<std::complex<double>>(const Type&,
                                              const std::vector<std::complex<double>>&);

}  // namespace composit
