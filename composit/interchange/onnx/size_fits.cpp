#include "composit/interchange/onnx/size_fits.h"

#include <algorithm>

#include "composit/family/cases.h"
#include "composit/family/unify.h"
#include "composit/ir/error.h"

namespace composit::onnx {
namespace {

using SizeFunction = SizeFormula::Kind;

std::string size_sign(SizeFunction function) {
  switch (function) {
    case SizeFunction::add:
      return " + ";
    case SizeFunction::subtract:
      return " - ";
    case SizeFunction::multiply:
      return " * ";
    default:
      return "";
  }
}

std::string size_function_name(SizeFunction function) {
  switch (function) {
    case SizeFunction::div:
      return "div";
    case SizeFunction::ceil_div:
      return "ceil_div";
    case SizeFunction::exact_div:
      return "exact_div";
    case SizeFunction::mod:
      return "mod";
    case SizeFunction::min:
      return "min";
    default:
      return "max";
  }
}

bool is_rounded(FitForm form) { return form >= FitForm::quotient; }

}  // namespace

bool all_equal(const Series& series) {
  return std::all_of(series.begin(), series.end(), [&](int64_t n) { return n == series[0]; });
}

SizeFits::SizeFits(const Family& family, const LazyTensors& inputs, std::vector<SizeValues> points,
                   const std::set<SizeValues>& closed)
    : points_(std::move(points)), grid_(grid_of(family.sizes)) {
  std::erase_if(grid_, [&](const SizeValues& sizes) { return closed.contains(sizes); });
  for (const FreeSize& size : family.sizes) {
    const InputAxis& axis = size.axes.at(0);
    SizeLeaf leaf{inputs.at(axis.input), axis.axis, {}, /*near=*/true};
    for (const SizeValues& point : points_) leaf.values.push_back(point.at(size.name));
    if (all_equal(leaf.values)) continue;
    seen_.insert(leaf.values);
    free_.push_back(leaf);
    names_.push_back(size.name);
  }
  all_ = free_;
}

void SizeFits::add(const LazyTensor& value, const std::vector<const Type*>& types) {
  for (size_t axis = 0; axis < types[0]->rank(); ++axis) {
    Series series;
    for (const Type* type : types) series.push_back(type->sizes[axis]);
    if (!all_equal(series) && seen_.insert(series).second)
      all_.push_back({value, axis, series, /*near=*/false});
  }
}

std::optional<SizeFormula> SizeFits::find_by_inputs(const Series& series) {
  const auto [known, added] = by_inputs_.try_emplace(series);
  if (!added) return known->second;
  try {
    if (auto formula = product(series, 3)) return known->second = formula;
    return known->second = quotient(series, free_);
  } catch (const ExampleWanted&) {
    by_inputs_.erase(series);
    throw;
  }
}

std::optional<SizeFormula> SizeFits::find_name(const Series& series) {
  try {
    return find_by_inputs(series);
  } catch (const ExampleWanted&) {
    return std::nullopt;
  }
}

std::optional<SizeFormula> SizeFits::find(const Series& series) {
  if (auto formula = product(series, 3)) return formula;
  for (const SizeLeaf& leaf : all_)
    if (leaf.values == series) return size_of(leaf.tensor, leaf.axis);
  if (auto formula = sum_or_product(series, all_)) return formula;
  if (auto formula = find_by_inputs(series)) return formula;
  return quotient(series, all_);
}

// Sums, multiples and products: what fits at all points and is none of these would have to be equal
// by chance.
std::optional<SizeFormula> SizeFits::sum_or_product(const Series& series,
                                                    const std::vector<SizeLeaf>& leaves) const {
  std::vector<Fit> found = fits(series, leaves);
  std::erase_if(found, [](const Fit& fit) { return is_rounded(fit.form); });
  if (found.empty()) return std::nullopt;
  expect_one_meaning(found);
  return found[0].formula;
}

// `fits` knows products of two sizes; here a size is taken out of a product of more.
std::optional<SizeFormula> SizeFits::product(const Series& series, size_t depth) const {
  if (all_equal(series)) return SizeFormula(series.at(0));
  if (auto formula = sum_or_product(series, free_)) return formula;
  for (const SizeLeaf& leaf : free_) {
    Series rest;
    for (size_t i = 0; i < series.size(); ++i)
      if (leaf.values[i] != 0 && series[i] % leaf.values[i] == 0)
        rest.push_back(series[i] / leaf.values[i]);
    if (depth == 0 || rest.size() != series.size()) continue;
    if (const auto factor = product(rest, depth - 1))
      return size_of(leaf.tensor, leaf.axis) * *factor;
  }
  return std::nullopt;
}

std::optional<SizeFormula> SizeFits::quotient(const Series& series,
                                              const std::vector<SizeLeaf>& leaves) {
  std::vector<Fit> found = fits(series, leaves);
  std::erase_if(found, [](const Fit& fit) { return !is_rounded(fit.form); });
  if (found.empty()) return std::nullopt;
  expect_one_meaning(found);
  expect_all_remainders(found[0].formula);
  return found[0].formula;
}

bool SizeFits::is_free(const SizeFormula& formula) const {
  bool free = true;
  formula.for_each_size([&](const LazyTensor& tensor, size_t axis) {
    free = free && std::any_of(free_.begin(), free_.end(), [&](const SizeLeaf& leaf) {
             return leaf.tensor == tensor && leaf.axis == axis;
           });
  });
  return free;
}

Series SizeFits::values_of(const SizeFormula& formula) const {
  Series values;
  for (size_t i = 0; i < points_.size(); ++i)
    values.push_back(formula.evaluate([&](const LazyTensor& tensor, size_t axis) {
      for (const SizeLeaf& leaf : all_)
        if (leaf.tensor == tensor && leaf.axis == axis) return leaf.values[i];
      throw InternalError("a size that no point has", __FILE__, __LINE__);
    }));
  return values;
}

// A formula that rounds is known where each remainder was seen: div(x + 1, 4) and div(x, 4) differ
// for one of four.
void SizeFits::expect_all_remainders(const SizeFormula& formula) const {
  const SizeFunction kind = formula.kind();
  if (kind == SizeFunction::constant || kind == SizeFunction::size) return;
  expect_all_remainders(formula.left());
  expect_all_remainders(formula.right());
  const bool rounds =
      kind == SizeFunction::div || kind == SizeFunction::ceil_div || kind == SizeFunction::mod;
  if (!rounds || formula.right().kind() != SizeFunction::constant) return;
  const int64_t divisor = formula.right().constant();
  const auto rest = [&](int64_t number) { return ((number % divisor) + divisor) % divisor; };
  std::set<int64_t> seen;
  for (const int64_t number : values_of(formula.left())) seen.insert(rest(number));
  if (static_cast<int64_t>(seen.size()) == divisor) return;
  const bool free = is_free(formula.left());
  for (const SizeValues& sizes : grid_)
    if (free ? !seen.contains(rest(at(formula.left(), sizes)))
             : std::find(points_.begin(), points_.end(), sizes) == points_.end())
      throw ExampleWanted("a size that is divided by " + std::to_string(divisor) +
                              " has a remainder at " + text_of(sizes) + " that is not known",
                          sizes);
}

void SizeFits::expect_one_meaning(const std::vector<Fit>& found) const {
  for (size_t i = 1; i < found.size(); ++i) {
    if (!is_free(found[0].formula) || !is_free(found[i].formula)) continue;
    for (const SizeValues& sizes : grid_) {
      int64_t first = 0, other = 0;
      try {
        first = at(found[0].formula, sizes);
        other = at(found[i].formula, sizes);
      } catch (const UserError&) {
        continue;  // a division that leaves a remainder
      }
      if (first != other)
        throw ExampleWanted("a size is " + text(found[0].formula) + " or " +
                                text(found[i].formula) + ", which differ at " + text_of(sizes),
                            sizes);
    }
  }
}

const std::string& SizeFits::name_of(const LazyTensor& tensor, size_t axis) const {
  for (size_t i = 0; i < free_.size(); ++i)
    if (free_[i].tensor == tensor && free_[i].axis == axis) return names_[i];
  throw InternalError("a formula over a size that is no input's", __FILE__, __LINE__);
}

int64_t SizeFits::at(const SizeFormula& formula, const SizeValues& sizes) const {
  return formula.evaluate(
      [&](const LazyTensor& tensor, size_t axis) { return sizes.at(name_of(tensor, axis)); });
}

std::string SizeFits::text(const SizeFormula& formula) const {
  if (formula.kind() == SizeFunction::constant) return std::to_string(formula.constant());
  if (formula.kind() == SizeFunction::size) return name_of(formula.tensor(), formula.axis());
  const auto part = [&](const SizeFormula& of) {
    const bool is_leaf = of.kind() == SizeFunction::constant || of.kind() == SizeFunction::size;
    return is_leaf || size_sign(of.kind()).empty() ? text(of) : "(" + text(of) + ")";
  };
  const std::string sign = size_sign(formula.kind());
  if (!sign.empty()) return part(formula.left()) + sign + part(formula.right());
  return size_function_name(formula.kind()) + "(" + text(formula.left()) + ", " +
         text(formula.right()) + ")";
}

}  // namespace composit::onnx
