#include "composit/io/capture_format.h"

#include <spdlog/fmt/fmt.h>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"

namespace composit::io {
namespace {

Type stored_type(Type type) {
  type = without_repeats(std::move(type));
  return tensor_type(type.dtype, std::move(type.sizes));
}

// True if elements have the same offsets: strides of axes without a second element do not matter.
bool same_layout(const Type& a, const Type& b) {
  for (size_t axis = 0; axis < a.rank(); ++axis)
    if (a.sizes[axis] > 1 && a.strides[axis] != b.strides[axis]) return false;
  return true;
}

}  // namespace

std::string example_name(std::string_view role, size_t index, size_t number) {
  const std::string name = fmt::format("{}.{}", role, index);
  return number == 0 ? name : fmt::format("case_{}.{}", number + 1, name);
}

std::string graph_file(size_t number) {
  return number == 0 ? kGraphFile : fmt::format("graph_{}.txt", number + 1);
}

bool is_weight(const Node& node) {
  return is_input(node) &&
         (input_kind(node) == InputKind::parameter || input_kind(node) == InputKind::buffer);
}

Array stored_form(const Array& array) {
  Type type = without_repeats(array.type());
  type.conj = type.neg = false;
  return Array(std::move(type), array.owner(), array.data());
}

Array restored(const Array& stored, const Type& type, const std::string& place) {
  if (type.layout != Layout::strided || !is_defined(type))
    throw UserError(fmt::format("{}: a value of type {} cannot be stored", place, print(type)));
  const Type expected = stored_type(type);
  if (stored.type() != expected)
    throw UserError(
        fmt::format("{}: expected {}, received {}", place, print(expected), print(stored.type())));
  const Type dense = without_repeats(type);
  if (same_layout(dense, expected)) return Array(type, stored.owner(), stored.data());
  const int64_t gaps = dense.extent() - dense.numel();
  if (gaps > kMaxArrayGaps / static_cast<int64_t>(item_size(type.dtype)))
    throw UserError(fmt::format("{}: the strides of {} leave gaps of more than {} bytes", place,
                                print(type), kMaxArrayGaps));
  const Array spread = stored.with_strides(dense.strides);
  return Array(type, spread.owner(), spread.data());
}

}  // namespace composit::io
