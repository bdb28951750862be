#include <algorithm>
#include <map>
#include <string>

#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;
using Axes = std::vector<int64_t>;

// The axes of the result: those of the batch, the others of x, the others of y.
LazyTensor dot(const LazyTensor& x, const LazyTensor& y, const Axes& x_batch, const Axes& y_batch,
               const Axes& x_summed, const Axes& y_summed) {
  const auto has = [](const Axes& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  Dims sizes;
  for (const int64_t axis : x_batch) sizes.push_back(x.size(axis));
  for (size_t i = 0; i < x.sizes().size(); ++i)
    if (!has(x_batch, i) && !has(x_summed, i)) sizes.push_back(x.sizes()[i]);
  for (size_t i = 0; i < y.sizes().size(); ++i)
    if (!has(y_batch, i) && !has(y_summed, i)) sizes.push_back(y.sizes()[i]);
  return stablehlo::call(
      "dot_general", {x, y},
      {list("batching_of_left", x_batch), list("batching_of_right", y_batch),
       list("contracting_of_left", x_summed), list("contracting_of_right", y_summed)},
      tensor_type(x.dtype(), sizes));
}

LazyTensors mm(const Call& call, const Types& results) {
  const LazyTensor &a = tensor_of(call, "self"), &b = tensor_of(call, "mat2");
  if (a.dtype() != results[0].dtype) return {};
  return {dot(a, b, {}, {}, {1}, {0})};
}

LazyTensors bmm(const Call& call, const Types& results) {
  const LazyTensor &a = tensor_of(call, "self"), &b = tensor_of(call, "mat2");
  if (a.dtype() != results[0].dtype) return {};
  return {dot(a, b, {0}, {0}, {2}, {1})};
}

LazyTensors linear(const Call& call, const Types& results) {
  const LazyTensor &x = tensor_of(call, "input"), &weight = tensor_of(call, "weight");
  const LazyTensor& bias = tensor_of(call, "bias");
  if (weight.rank() != 2 || x.rank() == 0 || x.dtype() != results[0].dtype) return {};
  const LazyTensor y = dot(x, weight, {}, {}, {x.rank() - 1}, {1});
  return {bias ? binary("add", y, bias) : y};
}

// ---- einsum -------------------------------------------------------------------------------------

struct Term {
  LazyTensor tensor;
  std::string letters;
};

bool repeats(const std::string& letters) {
  std::string sorted = letters;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

// Sums over the letters that nobody asks for.
Term summed(const Term& term, const std::string& wanted) {
  Axes axes;
  std::string left;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (wanted.find(term.letters[i]) == std::string::npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      left += term.letters[i];
  }
  const LazyTensor& x = term.tensor;
  return {reduced("add", x, number(0, x.dtype()), axes, false), left};
}

// Of two terms; letters that neither `wanted` nor the other term has are summed before.
Term product(Term x, Term y, const std::string& wanted) {
  x = summed(x, wanted + y.letters);
  y = summed(y, wanted + x.letters);
  Axes x_batch, y_batch, x_summed, y_summed;
  std::string batch, x_only, y_only;
  for (size_t i = 0; i < x.letters.size(); ++i) {
    const char letter = x.letters[i];
    const size_t other = y.letters.find(letter);
    const bool is_wanted = wanted.find(letter) != std::string::npos;
    if (other == std::string::npos) {
      x_only += letter;
      continue;
    }
    (is_wanted ? x_batch : x_summed).push_back(static_cast<int64_t>(i));
    (is_wanted ? y_batch : y_summed).push_back(static_cast<int64_t>(other));
    if (is_wanted) batch += letter;
  }
  for (const char letter : y.letters)
    if (x.letters.find(letter) == std::string::npos) y_only += letter;
  return {dot(x.tensor, y.tensor, x_batch, y_batch, x_summed, y_summed), batch + x_only + y_only};
}

// Letters alone, each of one size, none twice in a term: what tensorize.h writes. Others have a
// definition.
std::vector<std::string> letters_of(const std::string& equation, const LazyTensors& tensors,
                                    std::string& result) {
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return {};
  std::vector<std::string> terms(1);
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ',')
      terms.emplace_back();
    else if (letter != ' ')
      terms.back() += letter;
  }
  for (const char letter : equation.substr(arrow + 2))
    if (letter != ' ') result += letter;
  std::map<char, int64_t> sizes;
  if (terms.size() != tensors.size()) return {};
  for (size_t i = 0; i < terms.size(); ++i) {
    if (repeats(terms[i]) || terms[i].size() != tensors[i].sizes().size()) return {};
    for (size_t k = 0; k < terms[i].size(); ++k)
      if (sizes.emplace(terms[i][k], tensors[i].sizes()[k]).first->second != tensors[i].sizes()[k])
        return {};
  }
  for (const char letter : result)
    if (!sizes.contains(letter)) return {};
  return repeats(result) ? std::vector<std::string>() : terms;
}

LazyTensors einsum(const Call& call, const Types& results) {
  const LazyTensors& tensors = call["tensors"].tensors();
  std::string result;
  const auto terms = letters_of(call["equation"].data().as<std::string>(), tensors, result);
  if (terms.empty() || tensors[0].dtype() != results[0].dtype) return {};
  Term all{tensors[0], terms[0]};
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string wanted = result;
    for (size_t k = i + 1; k < terms.size(); ++k) wanted += terms[k];
    all = product(all, {tensors[i], terms[i]}, wanted);
  }
  all = summed(all, result);
  Axes order;
  for (const char letter : result) order.push_back(static_cast<int64_t>(all.letters.find(letter)));
  return {transposed(all.tensor, order)};
}

}  // namespace

void add_product_rows(std::vector<Row>& rows) {
  rows.insert(
      rows.end(),
      {{"aten::mm", mm}, {"aten::bmm", bmm}, {"aten::linear", linear}, {"aten::einsum", einsum}});
}

}  // namespace composit::stablehlo
