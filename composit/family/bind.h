// The graph of a family at other sizes.
//
//   Graph graph = bind(family, {{"batch", 4}, {"tokens", 21}});
//
// One walk: the integers of each node by their formulas, then the types of its results by its row.
// What does not depend on sizes is shared with the example.
#pragma once

#include <vector>

#include "composit/family/family.h"

namespace composit {

// UserError for a size or number that is missing, is not there, or for a size that lies outside of
// what was shown; and where a row refuses the sizes, with the node.
Graph bind(const Family& family, const SizeValues& sizes, const NumberValues& numbers = {});
// UserError where a number is missing, is none of the family, or is read by the program itself, so
// that a bound graph has no place for it.
void expect_numbers(const Family& family, const NumberValues& numbers);

// True where each size is there, within what was shown or checked.
bool is_within(const Family& family, const SizeValues& sizes);

// The types of the inputs at these sizes, in the order of the inputs; whatever was shown.
std::vector<Type> types_at(const Family& family, const SizeValues& sizes);
// The same. UserError as above.
std::vector<Type> input_types(const Family& family, const SizeValues& sizes);
// The sizes that inputs of these types have. UserError where they fit no sizes: another rank,
// dtype, or two numbers for one size, or a size that is not free.
SizeValues sizes_of_inputs(const Family& family, const std::vector<Type>& types);

// UserError where inputs of these types are not those of these sizes.
void expect_inputs(const Family& family, const SizeValues& sizes, const std::vector<Type>& types);

// A bound graph, and the values in it of those of the example.
struct Binding {
  Graph graph;  // at these sizes
  // Outputs of nodes of the example, those within regions left out.
  FlatMap<const Node*, LazyTensors> values;
  LazyTensor of(const LazyTensor& value) const;  // absent for a value that was left out
};
// The number of an operator, for a graph that has it in place of the example's.
using NumberOfUse = std::function<double(const NumberUse& use)>;
// Bound to inputs of these types, whatever was shown. `value_sizes`: a number for each of the
// family's. Without `number_of`, numbers that are no sizes stay those of the example.
Binding bind_types(const Family& family, const std::vector<Type>& types,
                   const std::vector<int64_t>& value_sizes = {},
                   const NumberOfUse& number_of = nullptr);

// Bound to these sizes, with numbers that are no sizes as in the example. UserError as of `bind`.
Binding bind_sizes(const Family& family, const SizeValues& sizes,
                   const NumberOfUse& number_of = nullptr);
// The numbers of the family that `graph`, which has the structure of the example, shows by
// themselves.
NumberValues numbers_in(const Family& family, const Graph& graph);

// True for branches and loops: the types that their regions take follow from their operands.
bool has_typed_regions(const Node& node);

// The part of the example that these values need, with what formulas in it read.
Graph part_of(const Family& family, const LazyTensors& values);
// The same as `bind_types` for a part of the example: a graph of fewer outputs, without effects. It
// holds the values that formulas of its nodes read.
Binding bind_part(const Family& family, const Graph& part, const std::vector<Type>& types,
                  const std::vector<int64_t>& value_sizes);

// The sizes that depend on values in `graph`, which has the structure of the example: a number for
// each of the family's. UserError where the structure is another.
std::vector<int64_t> value_sizes_in(const Family& family, const Graph& graph);

}  // namespace composit
