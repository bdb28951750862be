// How a value lies in memory, and programs in terms of that.
//
//   Layout layout = row_major(type);        // [1, 64, 56, 56]
//   layout.order = {0, 2, 3, 1};            // channels innermost
//   layout.before = layout.after = {0, 0, 1, 1};   // zeros around each row and column
//   lay_out(routine, {{value, layout}});
//
// Laying out is a change of the program: the value gets the sizes it has in memory, and whoever
// touches it other indices. What comes after knows nothing of layouts.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "flashlight/cpp/program.h"

namespace flashlight::mosaic {

struct Layout {
  std::vector<size_t> order;           // dimensions from the outside in
  std::vector<int64_t> before, after;  // zeros around the elements of the value, per dimension
  int64_t apart = 0;                   // elements behind the innermost dimension, nobody's
  bool operator==(const Layout&) const = default;
};

Layout row_major(const composit::Type& type);
// Whether it has zeros around it, which somebody has to write.
bool has_border(const Layout& layout);
// The sizes in memory.
composit::Type physical_type(const composit::Type& type, const Layout& layout);

// Each value in its layout, in all nests of the routine.
void lay_out(cpp::Routine& routine, const std::map<size_t, Layout>& layouts);

// The number of the element that `at` says, in row-major order.
composit::Expr flat_index(const std::vector<composit::Expr>& at, const composit::Type& type);

}  // namespace flashlight::mosaic
