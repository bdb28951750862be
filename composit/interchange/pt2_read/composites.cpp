// Composites of LibTorch's that are no rows of composit's, as what LibTorch does in them.
#include <map>

#include "composit/interchange/pt2_read/graph_reader.h"
#include "composit/interchange/pt2_read/known.h"
#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

// The padding on each side of an axis, in words.
std::vector<int64_t> padding_of(const std::string& word, const LazyTensor& weight,
                                const std::vector<int64_t>& dilation) {
  if (word != "same" && word != "valid")
    throw UserError("expected the padding 'same' or 'valid', received '" + word + "'");
  if (!weight || weight.rank() != static_cast<int64_t>(dilation.size()) + 2)
    throw UserError("expected a weight of " + std::to_string(dilation.size() + 2) + " axes");
  std::vector<int64_t> padding;
  for (size_t axis = 0; axis < dilation.size(); ++axis) {
    int64_t both = 0;
    if (word == "same" &&
        __builtin_mul_overflow(dilation[axis], weight.sizes()[axis + 2] - 1, &both))
      throw UserError("a dilation of more than 64 bits");
    if (both < 0 || both % 2 != 0)
      throw UserError("a padding 'same' that differs between the sides; " + std::string(kAdvice) +
                      ", or pad the input");
    padding.push_back(both / 2);
  }
  return padding;
}

Schema convolution_schema(int axes) {
  const std::string n = std::to_string(axes);
  return parse_schema("aten::conv" + n +
                      "d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
                      "SymInt[" +
                      n + "] stride=1, str padding=\"valid\", SymInt[" + n +
                      "] dilation=1, SymInt groups=1) -> Tensor");
}

}  // namespace

bool GraphReader::read_composite(const Json& node, Symbol op) {
  static const auto* schemas = new std::map<std::string, Schema, std::less<>>{
      {"aten::conv1d.padding", convolution_schema(1)},
      {"aten::conv2d.padding", convolution_schema(2)},
      {"aten::conv3d.padding", convolution_schema(3)},
      {"aten::_weight_norm",
       parse_schema("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")}};
  const auto found = schemas->find(op.str());
  if (found == schemas->end()) return false;
  const Call call(found->second, arguments(node, found->second));
  const Names names = result_names(node);
  if (names.size() != 1) throw UserError("it gives one tensor");
  LazyTensors results;
  if (op == Symbol("aten::_weight_norm")) {
    const LazyTensor& v = call[0].tensor();
    const int64_t dim = call[2].data().as_int();
    // For other axes LibTorch has other steps.
    if (dim != 0 && dim != v.rank() - 1) throw UserError(reason_against(op));
    results = {make("aten::_weight_norm_interface", {v, call[1], dim})[0]};
  } else {
    const std::string& word = call["padding"].data().as<std::string>();
    const auto dilation = to_ints(call["dilation"].data());
    const auto padding = padding_of(word, call["weight"].tensor(), dilation);
    const std::string target = op.str().substr(0, op.str().find('.'));
    results = make(target, {call[0], call[1], call[2], call[3], padding, call[5], call[6]});
  }
  expect_said(names[0], results[0].type());
  bind(names, results);
  return true;
}

}  // namespace composit::pt2_read
