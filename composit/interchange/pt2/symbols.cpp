#include "composit/interchange/pt2/symbols.h"

#include <algorithm>

#include "composit/family/bind.h"
#include "composit/family/cases.h"
#include "composit/family/fit.h"
#include "composit/ir/error.h"

namespace composit::pt2 {
namespace {

using Function = SizeFormula::Kind;

constexpr size_t kTried = 6;  // sizes at which types are worked out

const std::vector<int64_t>& sizes_of(const Type& type) { return type.sizes; }
const std::vector<int64_t>& strides_of(const Type& type) { return type.strides; }

}  // namespace

std::string expression(const SizeFormula& formula,
                       const std::function<std::string(const LazyTensor&, size_t axis)>& size) {
  if (formula.kind() == Function::constant)
    return "Integer(" + std::to_string(formula.constant()) + ")";
  if (formula.kind() == Function::size) return size(formula.tensor(), formula.axis());
  const std::string left = expression(formula.left(), size);
  const std::string right = expression(formula.right(), size);
  const auto call = [](const std::string& function, const std::string& a, const std::string& b) {
    return function + "(" + a + ", " + b + ")";
  };
  const std::string minus = "Integer(-1)";
  switch (formula.kind()) {
    case Function::add:
      return call("Add", left, right);
    case Function::subtract:
      return call("Add", left, call("Mul", minus, right));
    case Function::multiply:
      return call("Mul", left, right);
    case Function::ceil_div:
      return call("Mul", minus, call("FloorDiv", call("Mul", minus, left), right));
    case Function::mod:
      return call("PythonMod", left, right);
    case Function::min:
      return call("Min", left, right);
    case Function::max:
      return call("Max", left, right);
    default:
      return call("FloorDiv", left, right);
  }
}

namespace {

// Sizes at which the family holds, the example's first.
std::vector<SizeValues> sizes_to_try(const Family& family, const std::vector<SizeValues>& points) {
  std::vector<SizeValues> tried;
  for (size_t i = 0; i < kTried && !points.empty(); ++i)
    tried.push_back(points[i * (points.size() - 1) / (kTried - 1)]);
  if (points.empty()) {
    Cases cases;
    cases.cases.push_back(family);
    tried = spread_sizes(cases, {0}, kTried);
  }
  SizeValues example;
  for (const FreeSize& size : family.sizes) example[size.name] = size.shown.at(0);
  tried.insert(tried.begin(), example);
  return tried;
}

}  // namespace

Symbols::Symbols(const Family& family, const std::vector<SizeValues>& points, size_t first)
    : family_(family), first_(first) {
  for (size_t i = 0; i < family.sizes.size(); ++i) {
    const InputAxis& axis = family.sizes[i].axes.at(0);
    leaves_.push_back({family.example.inputs().at(axis.input), axis.axis, {}, /*near=*/true});
  }
  for (const ValueSize& size : family.value_sizes)
    leaves_.push_back({size.value, size.axis, {}, /*near=*/true});
  std::vector<int64_t> shown;
  for (const ValueSize& size : family.value_sizes) shown.push_back(size.shown.at(0));
  int64_t number = 0;
  for (const SizeValues& sizes : sizes_to_try(family, points)) {
    // Any numbers where values decide: types are worked out, and no value.
    std::vector<int64_t> others = shown;
    for (size_t i = 0; i < others.size(); ++i) others[i] += number * static_cast<int64_t>(1 + i);
    ++number;
    const std::vector<Type> types = types_at(family, sizes);
    try {
      add(sizes, others, bind_types(family, types, others));
    } catch (const UserError&) {
      if (others == shown) throw;
      add(sizes, shown, bind_types(family, types, shown));  // those go together in no run
    }
  }
}

void Symbols::add(const SizeValues& sizes, const std::vector<int64_t>& value_sizes,
                  const Binding& binding) {
  const size_t free = family_.sizes.size();
  for (size_t i = 0; i < leaves_.size(); ++i)
    leaves_[i].values.push_back(i < free ? sizes.at(family_.sizes[i].name) : value_sizes[i - free]);
  for (const NodePtr& node : family_.example.nodes())
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (const LazyTensor bound = binding.of({node, i}))
        types_[{node.get(), i}].push_back(bound.type());
}

Json Symbols::integer(const Series& series) const {
  if (const auto known = known_.find(series); known != known_.end()) return known->second;
  Json json = {{"as_int", series.at(0)}};
  if (std::any_of(series.begin(), series.end(), [&](int64_t n) { return n != series[0]; })) {
    const auto symbol = [&](const LazyTensor& tensor, size_t axis) {
      for (size_t i = 0; i < leaves_.size(); ++i)
        if (leaves_[i].tensor == tensor && leaves_[i].axis == axis) return leaf_text(i);
      throw InternalError("a size that is not free", __FILE__, __LINE__);
    };
    const std::vector<Fit> found = fits(series, leaves_);
    if (found.empty()) return known_[series] = unknown(series[0]);
    const std::string text = expression(found[0].formula, symbol);
    json = {{"as_expr", {{"expr_str", text}, {"hint", {{"as_int", series[0]}}}}}};
  }
  return known_[series] = json;
}

std::string Symbols::leaf_text(size_t leaf) const {
  const size_t free = family_.sizes.size();
  return leaf < free ? "Symbol('s" + std::to_string(leaf) + "', positive=True, integer=True)"
                     : unknown_text(leaf - free);
}

std::string Symbols::unknown_text(size_t number) const {
  return "Symbol('u" + std::to_string(first_ + number) + "', integer=True)";
}

Json Symbols::unknown(int64_t here) const {
  const std::string text = unknown_text(family_.value_sizes.size() + unknown_++);
  return {{"as_expr", {{"expr_str", text}, {"hint", {{"as_int", here}}}}}};
}

Json Symbols::tensor_meta(const Node* node, uint32_t output, bool requires_grad) const {
  const auto found = types_.find({node, output});
  if (found == types_.end())
    return pt2::tensor_meta(node->outputs().at(output), requires_grad);  // in a region
  const std::vector<Type>& types = found->second;
  Json meta = pt2::tensor_meta(types.at(0), requires_grad);
  const auto put = [&](const char* key, const std::vector<int64_t>& (*part)(const Type&)) {
    for (size_t axis = 0; axis < part(types[0]).size(); ++axis) {
      Series series;
      for (const Type& type : types) series.push_back(part(type).at(axis));
      meta[key][axis] = integer(series);
    }
  };
  put("sizes", &sizes_of);
  put("strides", &strides_of);
  return meta;
}

bool Symbols::has_one_size(const Node& node, uint32_t output, size_t axis) const {
  const auto found = types_.find({&node, output});
  return found != types_.end() &&
         std::all_of(found->second.begin(), found->second.end(), [&](const Type& type) {
           return type.sizes.at(axis) == found->second[0].sizes.at(axis);
         });
}

Json Symbols::size_json(const LazyTensor& value, size_t axis) const {
  const auto found = types_.find({value.node.get(), value.index});
  if (found == types_.end()) return unknown(value.sizes().at(axis));  // in a region
  Series series;
  for (const Type& type : found->second) series.push_back(type.sizes.at(axis));
  return integer(series);
}

Json Symbols::range_constraints() const {
  Json ranges = Json::object();
  for (size_t i = 0; i < family_.sizes.size(); ++i)
    ranges["s" + std::to_string(i)] = {{"min_val", family_.sizes[i].low},
                                       {"max_val", family_.sizes[i].high}};
  for (size_t i = 0; i < family_.value_sizes.size() + unknown_; ++i)
    ranges["u" + std::to_string(first_ + i)] = {{"min_val", 0}, {"max_val", nullptr}};
  return ranges;
}

}  // namespace composit::pt2
