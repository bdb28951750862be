#include "composit/interchange/stablehlo/forms.h"

#include <map>
#include <set>

namespace composit::stablehlo {

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

namespace {

std::string numbers_text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::vector<int64_t> ints(const Node& node, std::string_view name) {
  return to_ints(node.attribute(name));
}

}  // namespace

std::string listed(const Node& node, std::string_view name) {
  return "[" + numbers_text(ints(node, name)) + "]";
}

namespace {

std::string array_text(const std::vector<int64_t>& numbers) {
  return "array<i64" + std::string(numbers.empty() ? "" : ": ") + numbers_text(numbers) + ">";
}

std::string array_attribute(const Node& node, std::string_view name) {
  return std::string(name) + " = " + array_text(ints(node, name));
}

std::string bool_attribute(const Node& node, std::string_view name, std::string_view written) {
  return std::string(written) + " = " + (node.attribute(name).as<bool>() ? "true" : "false");
}

// Pairs [before, behind] per axis.
std::string pads_text(const Node& node) {
  const std::vector<int64_t> low = ints(node, "low"), high = ints(node, "high");
  std::string text;
  for (size_t i = 0; i < low.size(); ++i)
    text += (i == 0 ? "[" : ", [") + numbers_text({low[i], high[i]}) + "]";
  return "[" + text + "]";
}

// ---- attributes of operators in the general form ------------------------------------------------

std::string gather_text(const Node& node) {
  return "dimension_numbers = #stablehlo.gather<offset_dims = " + listed(node, "offset_dims") +
         ", collapsed_slice_dims = " + listed(node, "collapsed_slice_dims") +
         ", start_index_map = " + listed(node, "start_index_map") +
         ", index_vector_dim = " + std::to_string(node.attribute("index_vector_dim").as_int()) +
         ">, indices_are_sorted = false, " + array_attribute(node, "slice_sizes");
}

std::string scatter_text(const Node& node) {
  return "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = " +
         listed(node, "update_window_dims") +
         ", inserted_window_dims = " + listed(node, "inserted_window_dims") +
         ", scatter_dims_to_operand_dims = " + listed(node, "scatter_dims_to_operand_dims") +
         ", index_vector_dim = " + std::to_string(node.attribute("index_vector_dim").as_int()) +
         ">, indices_are_sorted = false, unique_indices = false";
}

std::string window_text(const Node& node) {
  const std::vector<int64_t> low = ints(node, "low");
  return array_attribute(node, "window_dimensions") + ", " +
         array_attribute(node, "window_strides") + ", " +
         array_attribute(node, "window_dilations") + ", padding = dense<" + pads_text(node) +
         "> : tensor<" + std::to_string(low.size()) + "x2xi64>";
}

std::string sort_text(const Node& node) {
  return "dimension = " + std::to_string(node.attribute("dimension").as_int()) +
         " : i64, is_stable = true";
}

std::string triangular_text(const Node& node) {
  return "left_side = true, " + bool_attribute(node, "lower", "lower") + ", " +
         bool_attribute(node, "unit", "unit_diagonal") +
         ", transpose_a = #stablehlo<transpose NO_TRANSPOSE>";
}

using FormTable = std::map<std::string_view, std::string (*)(const Node& node)>;

std::string nothing(const Node&) { return {}; }

const FormTable& general_forms() {
  static const auto* table = new FormTable{
      {"gather", gather_text},
      {"scatter", scatter_text},
      {"reduce_window", window_text},
      {"sort", sort_text},
      {"triangular_solve", triangular_text},
      {"reduce", [](const Node& node) { return array_attribute(node, "dimensions"); }},
      {"cholesky", [](const Node& node) { return bool_attribute(node, "lower", "lower"); }},
      {"dynamic_slice",
       [](const Node& node) { return "slice_sizes = " + array_text(ints(node, "sizes")); }},
      {"dynamic_update_slice", nothing}};
  return *table;
}

// ---- operators with a form of their own ---------------------------------------------------------

std::string slice_ranges(const Node& node) {
  const auto begin = ints(node, "begin"), end = ints(node, "end"), step = ints(node, "step");
  std::vector<std::string> ranges;
  for (size_t i = 0; i < begin.size(); ++i)
    ranges.push_back(std::to_string(begin[i]) + ":" + std::to_string(end[i]) +
                     (step[i] == 1 ? "" : ":" + std::to_string(step[i])));
  return " [" + joined(ranges) + "]";
}

std::string pad_form(const Node& node) {
  const std::vector<int64_t> none(ints(node, "low").size(), 0);
  return ", low = " + listed(node, "low") + ", high = " + listed(node, "high") + ", interior = [" +
         numbers_text(none) + "]";
}

std::string dot_form(const Node& node) {
  std::string text;
  if (!ints(node, "batching_of_left").empty())
    text += ", batching_dims = " + listed(node, "batching_of_left") + " x " +
            listed(node, "batching_of_right");
  return text + ", contracting_dims = " + listed(node, "contracting_of_left") + " x " +
         listed(node, "contracting_of_right") + ", precision = [HIGHEST, HIGHEST]";
}

// What follows the operands, by operator; all of these end in the type of a function.
const FormTable& own_forms() {
  static const auto* table = new FormTable{
      {"reshape", nothing},
      {"convert", nothing},
      {"bitcast_convert", nothing},
      {"abs", nothing},
      {"complex", nothing},
      {"real", nothing},
      {"imag", nothing},
      {"transpose", [](const Node& node) { return ", dims = " + listed(node, "dims"); }},
      {"broadcast_in_dim", [](const Node& node) { return ", dims = " + listed(node, "dims"); }},
      {"slice", slice_ranges},
      {"pad", pad_form},
      {"concatenate",
       [](const Node& node) {
         return ", dim = " + std::to_string(node.attribute("dim").as_int());
       }},
      {"dot_general", dot_form}};
  return *table;
}

// `before`, the axes, `behind`: "[b, f, 0, 1]".
std::string labels(const std::string& first, const std::string& second, size_t axes) {
  std::vector<std::string> all = {first, second};
  for (size_t i = 0; i < axes; ++i) all.push_back(std::to_string(i));
  return "[" + joined(all) + "]";
}

std::optional<std::string> found(const FormTable& table, std::string_view op, const Node& node) {
  const auto form = table.find(op);
  return form == table.end() ? std::nullopt : std::optional(form->second(node));
}

}  // namespace

std::optional<std::string> own_form(std::string_view op, const Node& node) {
  return found(own_forms(), op, node);
}

std::optional<std::string> general_form(std::string_view op, const Node& node) {
  return found(general_forms(), op, node);
}

bool is_chlo(std::string_view op) {
  static const auto* names = new std::set<std::string_view>{
      "asin",  "acos", "atan", "sinh",    "cosh",   "asinh",   "acosh",
      "atanh", "erf",  "erfc", "erf_inv", "lgamma", "digamma", "next_after"};
  return names->contains(op);
}

std::string compare_kind(const Type& type) {
  if (is_floating_point(type.dtype) || is_complex(type.dtype)) return "FLOAT";
  const bool is_unsigned = name(type.dtype).starts_with("uint") || type.dtype == DType::bool_;
  return is_unsigned ? "UNSIGNED" : "SIGNED";
}

std::string convolution_form(const Node& node) {
  const size_t axes = ints(node, "stride").size();
  const std::string& kernel = node.attribute("kernel").as<std::string>();
  std::vector<std::string> flips;
  for (const int64_t flip : ints(node, "reverse")) flips.emplace_back(flip != 0 ? "true" : "false");
  return " dim_numbers = " + labels("b", "f", axes) + "x" +
         labels(kernel.substr(0, 1), kernel.substr(1), axes) + "->" + labels("b", "f", axes) +
         ", window = {stride = " + listed(node, "stride") + ", pad = " + pads_text(node) +
         ", lhs_dilate = " + listed(node, "lhs_dilate") +
         ", rhs_dilate = " + listed(node, "rhs_dilate") + ", reverse = [" + joined(flips) +
         "]} {batch_group_count = 1 : i64, feature_group_count = " +
         std::to_string(node.attribute("groups").as_int()) +
         " : i64, precision_config = [#stablehlo<precision HIGHEST>, "
         "#stablehlo<precision HIGHEST>]}";
}

}  // namespace composit::stablehlo
