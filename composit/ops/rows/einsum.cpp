// Einstein summation: the equation read, and written as one nest of loops.
#include <algorithm>
#include <map>

#include "composit/ops/functions.h"

namespace composit {
namespace {

using Labels =
    std::string;  // one letter per axis; digits: axes of the ellipsis, counted from the end

struct Equation {
  std::vector<Labels> operands;
  std::optional<Labels> result;
};

Labels labels_of(std::string_view term) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i, 3) == "...") {
      labels += '.';
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels += term[i];
    } else {
      throw UserError("expected letters and '...' in the equation, received '" + std::string(term) +
                      "'");
    }
  }
  if (std::count(labels.begin(), labels.end(), '.') > 1)
    throw UserError("expected '...' once, received '" + std::string(term) + "'");
  return labels;
}

Equation read(std::string text) {
  std::erase(text, ' ');
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos)
    equation.result = labels_of(std::string_view(text).substr(arrow + 2));
  std::string_view rest = std::string_view(text).substr(0, arrow);
  while (true) {
    const size_t comma = rest.find(',');
    equation.operands.push_back(labels_of(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return equation;
    rest.remove_prefix(comma + 1);
  }
}

// Axes of the ellipsis of an operand have the labels "…210", so that they align from the right.
Labels with_ellipsis(const Labels& labels, int64_t count) {
  const size_t dots = labels.find('.');
  if (dots == std::string::npos) return labels;
  Labels result = labels.substr(0, dots);
  while (count > 0) result += static_cast<char>('0' + --count);
  return result + labels.substr(dots + 1);
}

// Without "->": the ellipsis, then the letters that stand once, in alphabetical order.
Labels implied_result(const std::vector<Labels>& operands, int64_t ellipsis) {
  std::map<char, int> counts;
  for (const Labels& labels : operands)
    for (char label : labels) ++counts[label];
  Labels result = with_ellipsis(".", ellipsis);
  for (const auto& [label, count] : counts)
    if (std::isalpha(static_cast<unsigned char>(label)) && count == 1) result += label;
  return result;
}

// The size of each label; axes of size 1 broadcast.
std::map<char, int64_t> sizes_of(const std::vector<Labels>& operands,
                                 const std::vector<In>& tensors) {
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t axis = 0; axis < operands[i].size(); ++axis) {
      int64_t& size = sizes.try_emplace(operands[i][axis], 1).first->second;
      const int64_t own = tensors[i].sizes()[axis];
      if (size != own && size != 1 && own != 1)
        throw UserError("label '" + std::string(1, operands[i][axis]) + "' has sizes " +
                        std::to_string(size) + " and " + std::to_string(own));
      if (size == 1) size = own;
    }
  return sizes;
}

// The labels of each operand with its ellipsis resolved; the greatest ellipsis goes to `ellipsis`.
std::vector<Labels> resolved(const Equation& equation, const std::vector<In>& tensors,
                             int64_t& ellipsis) {
  if (equation.operands.size() != tensors.size())
    throw UserError("expected " + std::to_string(equation.operands.size()) +
                    " tensors for the equation, received " + std::to_string(tensors.size()));
  std::vector<Labels> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Labels& labels = equation.operands[i];
    const bool open = labels.find('.') != std::string::npos;
    const int64_t named = static_cast<int64_t>(labels.size()) - (open ? 1 : 0);
    const int64_t rest = tensors[i].rank() - named;
    if (rest < 0 || (!open && rest > 0) || rest > 10)
      throw UserError("'" + labels + "' has " + std::to_string(named) +
                      " labels, received a tensor of sizes " + str(tensors[i].sizes()));
    ellipsis = std::max(ellipsis, rest);
    operands.push_back(with_ellipsis(labels, rest));
  }
  return operands;
}

Loops einsum(const std::string& text, const std::vector<In>& tensors) {
  const Equation equation = read(text);
  int64_t ellipsis = 0;
  const std::vector<Labels> operands = resolved(equation, tensors, ellipsis);
  const std::map<char, int64_t> sizes = sizes_of(operands, tensors);
  const Labels result = equation.result ? with_ellipsis(*equation.result, ellipsis)
                                        : implied_result(operands, ellipsis);
  Nest nest;
  std::map<char, Expr> axes;
  for (char label : result) {
    if (!sizes.contains(label) || axes.contains(label))
      throw UserError("label '" + std::string(1, label) +
                      "' of the result must stand in an operand, and once in the result");
    axes[label] =
        nest.parallel(sizes.at(label),
                      std::isalpha(static_cast<unsigned char>(label)) ? std::string(1, label) : "");
  }
  for (const auto& [label, size] : sizes)
    if (!axes.contains(label))
      axes[label] = nest.reduction(
          size, std::isalpha(static_cast<unsigned char>(label)) ? std::string(1, label) : "");
  Expr product;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Index at;
    for (size_t axis = 0; axis < operands[i].size(); ++axis)
      at.push_back(tensors[i].sizes()[axis] == 1 ? Expr(0) : axes[operands[i][axis]]);
    const Expr element = tensors[i](at);
    product = product.defined() ? product * element : element;
  }
  return nest.store(axes.size() > result.size() ? nest.sum(product) : product).loops();
}

// The gradient of an operand is an einsum of the cotangent and the other operands, where every
// label of the operand stands in one of these: labels summed out of the operand alone, those that
// stand twice in it, and axes that broadcast are left to the loop form.
Gradients einsum_gradients(const Vjp& v, const std::string& text, const LazyTensors& tensors) {
  const Equation equation = read(text);
  std::vector<Labels> operands = equation.operands;
  const auto has_ellipsis = [](const Labels& labels) { return labels.find('.') != labels.npos; };
  if (std::any_of(operands.begin(), operands.end(), has_ellipsis)) return {};
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t axis = 0; axis < operands[i].size(); ++axis)
      if (const int64_t size = tensors[i].size(static_cast<int64_t>(axis));
          sizes.try_emplace(operands[i][axis], size).first->second != size)
        return {};
  const Labels result = equation.result.value_or(implied_result(operands, 0));
  Gradients gradients(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!v.wanted[i]) continue;
    Labels inputs = result;
    LazyTensors factors{v.cotangents[0]};
    for (size_t k = 0; k < tensors.size(); ++k)
      if (k != i) {
        inputs += ',' + operands[k];
        factors.push_back(conj(tensors[k]));
      }
    for (char label : operands[i])
      if (std::count(operands[i].begin(), operands[i].end(), label) > 1 ||
          inputs.find(label) == inputs.npos)
        return {};
    gradients[i] = apply_one("aten::einsum", {inputs + "->" + operands[i], factors});
  }
  return gradients;
}

}  // namespace

void add_einsum_rows(OperationTable& rows) {
  rows.add({.schema = "aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
            .kind = OpKind::contraction,
            .loops = [](std::string equation,
                        std::vector<In> tensors) { return einsum(equation, tensors); },
            .vjp = [](Vjp v, std::string equation,
                      LazyTensors tensors) { return einsum_gradients(v, equation, tensors); },
            .samples = "'ij,jk->ik' [f32[2,3],f32[3,4]] | 'bhid,bhjd->bhij' "
                       "[f32[1,2,3,4],f32[1,2,5,4]] | 'ij,jk' [f32[2,3],f32[3,2]] | 'ii->i' "
                       "[f32[3,3]] | 'ii' [f32[3,3]] | '...ij,...jk->...ik' "
                       "[f32[2,2,3],f32[3,2]] | 'i,j' [f32[2],f32[3]] | 'ijk->kij' [f32[2,3,4]] | "
                       "'ij,kj,ki->k' [f32[2,3],f32[4,3],f32[4,2]] | 'b...,b...->b' "
                       "[f32[2,3,1],f32[2,3,4]] | 'ij->' [i64[2,3]]",
            .bad = "'ij,jk->ik' [f32[2,3],f32[2,4]]: label 'j' | 'ij->k' [f32[2,2]]: label 'k' | "
                   "'i' [f32[2,2]]: 1 labels | 'i,j->ij' [f32[2]]: 2 tensors | 'i+j' [f32[2]]: "
                   "letters"});
}

}  // namespace composit
