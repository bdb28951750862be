#include "flashlight/mosaic/flat_writer.h"

#include <spdlog/fmt/fmt.h>

#include "composit/ir/scope.h"
#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {

using text::Code;
using text::open_number;

FlatWriter::FlatWriter(const Plan& plan) : plan_(plan) {}

void FlatWriter::reserve(const std::vector<std::string>& words) {
  taken_.insert(words.begin(), words.end());
}

void FlatWriter::add(ValueId value, const std::string& name) {
  if (names_.contains(value)) return;
  const std::string text =
      name.empty() ? text::identifier(local_name(plan_.routine.values[value], "z")) : name;
  names_[value] = composit::unused_name(text, taken_);
  values_.push_back(value);
}

std::vector<std::string> FlatWriter::parameters(ValueId result) const {
  std::vector<std::string> list = {"const fl::Team& team"};
  for (const ValueId value : values_) {
    const std::string type = text::type_name(plan_.routine.values[value].type.dtype);
    list.push_back((value == result ? type + "* __restrict " : "const " + type + "* ") +
                   names_.at(value));
  }
  return list;
}

std::string FlatWriter::place(const composit::Affine& at, const AxisIds& over) const {
  std::string text;
  for (const AxisId axis : over) {
    const int64_t factor = at.coefficients[axis];
    if (factor == 0) continue;
    if (!text.empty()) text += " + ";
    text += factor == 1 ? axes.at(axis) : open_number(factor) + " * " + axes.at(axis);
  }
  return text;
}

std::string FlatWriter::address(ValueId value, const composit::Affine& at,
                                const AxisIds& over) const {
  std::string text = name(value);
  if (at.constant != 0) text += " + " + open_number(at.constant);
  const std::string more = place(at, over);
  return more.empty() ? text : text + " + " + more;
}

Code FlatWriter::decoded(const Product& product, const AxisIds& over, const std::string& counter,
                         const std::string& letter) {
  Code code;
  if (over.size() == 1) axes[over[0]] = counter;
  if (over.size() < 2) return code;
  std::vector<Code> lines;
  int64_t below = 1;
  for (size_t i = over.size(); i-- > 0;) {
    std::string text = below == 1 ? counter : counter + " / " + open_number(below);
    if (i > 0) text += " % " + open_number(product.extent(over[i]));
    axes[over[i]] = letter + std::to_string(i);
    lines.push_back(text::assignment("[[maybe_unused]] const int64_t " + axes[over[i]], text));
    below *= product.extent(over[i]);
  }
  for (size_t i = lines.size(); i-- > 0;) code += lines[i];
  return code;
}

text::Leaves FlatWriter::leaves(const loops::Statement& statement) const {
  text::Leaves leaves;
  leaves.axes.resize(statement.axes.size(), "0");
  for (const auto& [axis, text] : axes) leaves.axes[axis] = text;
  leaves.element = [this](ValueId value, const std::vector<std::string>& indices) {
    return text::Element{names_.at(value), {indices[0]}};
  };
  leaves.type = [this](ValueId value) -> const composit::Type& {
    const auto [known, is_new] = types_.try_emplace(value);
    const composit::Type& type = plan_.routine.values[value].type;
    if (is_new) known->second = composit::tensor_type(type.dtype, {type.numel()});
    return known->second;
  };
  leaves.range = [](ValueId) { return std::nullopt; };
  leaves.index_type = "int64_t";
  return leaves;
}

}  // namespace flashlight::mosaic
