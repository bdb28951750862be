// Where the arrays of a graph are kept that are too large to stand in its text.
//
//   print(graph, {.arrays = &store});   // calls put() and prints `array(float32[1000] @ "name")`
//   parse(text, &store);                // calls get()
#pragma once

#include <string>
#include <string_view>

#include "composit/ir/array.h"

namespace composit {

class ArrayStore {
 public:
  virtual ~ArrayStore() = default;

  // Keeps `array` and returns the name under which `get` finds it: `hint` where that is still free.
  // The same array may be put several times.
  virtual std::string put(const Array& array, std::string_view hint) = 0;

  // The array of that name, exactly of that type (strides too: see Array::with_strides). UserError
  // when there is none, or its dtype or sizes are others.
  virtual Array get(std::string_view name, const Type& type) const = 0;
};

}  // namespace composit
