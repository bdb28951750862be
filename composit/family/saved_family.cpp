#include "composit/family/saved_family.h"

#include <cstring>

#include "composit/family/bind.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

// The property of graph.txt that holds the sizes of a family.
constexpr const char* kSizes = "sizes";

}  // namespace

SavedCapture with_family(SavedCapture example, const Family& family) {
  example.graph = family.example;
  example.formulas = family.formulas;
  example.properties[kSizes] = sizes_text(family);
  example.properties[kOfFamily] = "true";
  return example;
}

bool is_family(const SavedCapture& saved) { return saved.properties.contains(kSizes); }

Family family_of(const SavedCapture& saved) {
  const auto sizes = saved.properties.find(kSizes);
  if (sizes == saved.properties.end())
    throw UserError(
        "[bind] expected a family, received the capture of one run; `flashlight unify` makes a "
        "family of several");
  return family_of(saved.graph, saved.formulas, sizes->second);
}

Array resized(const Array& array, const Dims& sizes) {
  const Array from = array.contiguous();
  const Type type = tensor_type(array.type().dtype, sizes);
  const size_t item = item_size(type.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(type.nbytes()));
  for (int64_t i = 0; i < type.numel(); ++i) {
    int64_t rest = i, source = 0;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      source += rest % sizes[axis] % from.type().sizes[axis] * from.type().strides[axis];
      rest /= sizes[axis];
    }
    std::memcpy(bytes.data() + static_cast<size_t>(i) * item,
                from.data() + static_cast<size_t>(source) * item, item);
  }
  return Array::copy_of(type, bytes.data());
}

SavedCapture bound_capture(const SavedCapture& saved, const Family& family,
                           const SizeValues& sizes) {
  SavedCapture bound = saved;
  bound.graph = bind(family, sizes);
  bound.formulas = {};
  bound.properties.erase(kSizes);
  bound.example_outputs.clear();
  size_t next = 0;
  for (const LazyTensor& input : bound.graph.inputs()) {
    if (input_kind(*input.node) != InputKind::user_input) continue;
    if (next == bound.example_inputs.size()) break;
    Array& example = bound.example_inputs[next++];
    if (example.type().sizes != input.sizes()) example = resized(example, input.sizes());
  }
  return bound;
}

}  // namespace composit
