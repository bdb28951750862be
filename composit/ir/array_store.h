// A store for arrays that are too large to be printed in the text of a graph.
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

  // Keeps `array` and returns the name under which `get` finds it: `hint` if that name is still
  // free. The same array may be put several times.
  virtual std::string put(const Array& array, std::string_view hint) = 0;

  // The array of that name, exactly of that type (strides too: see Array::with_strides). UserError
  // if there is no such array, or if its dtype or sizes differ.
  virtual Array get(std::string_view name, const Type& type) const = 0;
};

}  // namespace composit
