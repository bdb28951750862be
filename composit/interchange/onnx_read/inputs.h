// Types of a model's inputs, with the sizes that it leaves open.
//
//   Sizes sizes(options.sizes);
//   const Type type = sizes.type_of(model.graph->inputs[0]);
//   sizes.expect_all_given();
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "composit/interchange/onnx_read/proto.h"
#include "composit/ir/type.h"

namespace composit::onnx_read {

class Sizes {
 public:
  explicit Sizes(const std::map<std::string, int64_t>& given) : given_(given) {}

  // The type of an input; sizes that are open and not given are 1, and noted. UserError for what
  // is no tensor, or has no known number of axes.
  Type type_of(const ValueInfoProto& input);
  // The value of an input that is one integer, where it is given by its name: it is part of the
  // program then, as sampling rates are.
  std::optional<int64_t> value_of(const ValueInfoProto& input, const Type& type);
  // UserError that names all sizes that are open and not given, and those that are given and that
  // the model does not have.
  void expect_all_given() const;

 private:
  int64_t size_of(const ValueInfoProto& input, size_t axis);

  const std::map<std::string, int64_t>& given_;
  std::set<std::string> used_, missing_, known_;
};

}  // namespace composit::onnx_read
