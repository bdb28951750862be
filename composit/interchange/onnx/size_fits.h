// Formulas over the sizes of a family for integers that were seen at several sizes.
//
//   SizeFits fits(family, inputs, points);
//   fits.find({32, 46, 60});              // 2 * tokens, where tokens are 16, 23, 30 at the points
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "composit/family/family.h"
#include "composit/family/fit.h"

namespace composit::onnx {

// By point.
using Series = std::vector<int64_t>;

bool all_equal(const Series& series);

class SizeFits {
 public:
  // `inputs`: of the graph in whose terms formulas are. `points`: sizes, one per integer of a
  // series. At sizes that are `closed` the family does not hold, whatever its ranges say.
  SizeFits(const Family& family, const LazyTensors& inputs, std::vector<SizeValues> points,
           const std::set<SizeValues>& closed);

  // A value made by the graph, whose sizes formulas may read from now on.
  void add(const LazyTensor& value, const std::vector<const Type*>& types);
  // The simplest formula: a number, sums and products of sizes of inputs, a size of another value,
  // or a quotient. Nothing: there is none. ExampleWanted where another formula fits as well and
  // gives another integer elsewhere, and where a divisor leaves remainders that no point shows.
  std::optional<SizeFormula> find(const Series& series);
  // The same over sizes of inputs only.
  std::optional<SizeFormula> find_by_inputs(const Series& series);
  // The same for people; nothing where more examples would be wanted.
  std::optional<SizeFormula> find_name(const Series& series);
  // A formula over sizes of inputs for people: "2 * tokens".
  std::string text(const SizeFormula& formula) const;

 private:
  std::optional<SizeFormula> product(const Series& series, size_t depth) const;
  std::optional<SizeFormula> quotient(const Series& series, const std::vector<SizeLeaf>& leaves);
  std::optional<SizeFormula> sum_or_product(const Series& series,
                                            const std::vector<SizeLeaf>& leaves) const;
  void expect_one_meaning(const std::vector<Fit>& found) const;
  void expect_all_remainders(const SizeFormula& formula) const;
  Series values_of(const SizeFormula& formula) const;
  bool is_free(const SizeFormula& formula) const;
  int64_t at(const SizeFormula& formula, const SizeValues& sizes) const;
  const std::string& name_of(const LazyTensor& tensor, size_t axis) const;

  std::vector<std::string> names_;    // of free leaves
  std::vector<SizeLeaf> free_, all_;  // sizes of inputs; and those of other values
  std::vector<SizeValues> points_;
  std::vector<SizeValues> grid_;
  std::map<Series, std::optional<SizeFormula>> by_inputs_;
  std::set<Series> seen_;
};

}  // namespace composit::onnx
