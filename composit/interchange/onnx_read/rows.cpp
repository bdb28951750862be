#include "composit/interchange/onnx_read/rows.h"

#include <algorithm>

#include "composit/interchange/onnx/dtypes.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {

namespace {

using AddRows = void (*)(std::vector<Row>& rows);

std::vector<Row>* sorted_rows(std::initializer_list<AddRows> families) {
  auto* all = new std::vector<Row>();
  for (const AddRows add : families) add(*all);
  std::sort(all->begin(), all->end(), [](const Row& a, const Row& b) { return a.op < b.op; });
  for (size_t i = 1; i < all->size(); ++i)
    COMPOSIT_ASSERT((*all)[i - 1].op != (*all)[i].op,
                    "two rows for '" + std::string((*all)[i].op) + "'");
  return all;
}

const std::vector<Row>& onnx_rows() {
  static const auto* rows =
      sorted_rows({add_activation_rows, add_attention_rows, add_constant_rows, add_convolution_rows,
                   add_elementwise_rows, add_indexing_rows, add_loss_rows, add_movement_rows,
                   add_normalization_rows, add_picture_rows, add_pooling_rows, add_product_rows,
                   add_quantization_rows, add_recurrent_rows, add_reduction_rows, add_resize_rows});
  return *rows;
}

// Some of these are ai.onnx's.
const std::vector<Row>& microsoft_rows() {
  static const auto* rows = sorted_rows(
      {add_microsoft_attention_rows, add_microsoft_fused_rows, add_microsoft_quantized_rows});
  return *rows;
}

}  // namespace

const std::vector<Row>& all_rows(std::string_view domain) {
  static const std::vector<Row> none;
  return domain.empty() ? onnx_rows() : domain == kMicrosoft ? microsoft_rows() : none;
}

const Row* find_row(std::string_view domain, std::string_view op) {
  const std::vector<Row>& rows = all_rows(domain);
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), op,
                       [](const Row& row, std::string_view name) { return row.op < name; });
  return found != rows.end() && found->op == op ? &*found : nullptr;
}

LazyTensor op(std::string_view name, std::vector<ArgumentValue> arguments) {
  return apply_one(name, std::move(arguments));
}

LazyTensor number_like(double value, DType dtype) {
  return constant(array_of(tensor_type(dtype, {}), std::vector<double>{value}));
}

LazyTensor integers(const Ints& values) {
  return constant(
      array_of(tensor_type(DType::int64, {static_cast<int64_t>(values.size())}), values));
}

LazyTensor cast(const LazyTensor& x, DType dtype) { return to(x, dtype); }

Dims broadcast(const Dims& a, const Dims& b) {
  Dims sizes = a.size() < b.size() ? b : a;
  const Dims& other = a.size() < b.size() ? a : b;
  const size_t shift = sizes.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = sizes[shift + i];
    if (size == 1) size = other[i];
    if (size != other[i] && other[i] != 1)
      throw UserError("sizes " + std::to_string(size) + " and " + std::to_string(other[i]) +
                      " do not broadcast");
  }
  return sizes;
}

Dims sizes_from(const LazyTensor& x, size_t first) {
  const Dims& sizes = x.sizes();
  return {sizes.begin() + static_cast<std::ptrdiff_t>(std::min(first, sizes.size())), sizes.end()};
}

int64_t product_of(const Ints& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product))
      throw UserError("sizes ask for more than 2^63 elements");
  return product;
}

Dims expect_sizes(const Ints& sizes) {
  return type_of(onnx::data_type_of(DType::complex128), sizes).sizes;
}

LazyTensor joined_axes(const LazyTensor& x, int64_t begin, int64_t end) {
  const Dims& all = x.sizes();
  Dims sizes(all.begin(), all.begin() + begin);
  sizes.push_back(product_of({all.begin() + begin, all.begin() + end}));
  sizes.insert(sizes.end(), all.begin() + end, all.end());
  return reshape(x, sizes);
}

void expect_one_of(const std::string& attribute, const std::string& value,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "'" : ", '") + one + "'";
  throw UserError(attribute + ": expected one of " + list + ", received '" + value + "'");
}

}  // namespace composit::onnx_read
