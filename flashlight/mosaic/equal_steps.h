// Steps that are equal but for which values they read and write, as those of a model's layers are:
// what is found about one holds for all.
//
//   const StepKey key = step_key(routine, nest, is_frozen), other = step_key(routine, next, …);
//   if (key.hash == other.hash) product = with_values(*product, key.values, other.values);
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "composit/ir/hash.h"
#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct StepKey {
  composit::Hash hash;  // of the statement, and of types and freezing of its values
  ValueIds values;      // that it reads and writes, each once, in an order that the hash follows
};

StepKey step_key(const loops::Routine& routine, const loops::Nest& nest,
                 const std::function<bool(ValueId value)>& is_frozen);

// The same product of other values: of each in `from` the one at its place in `to`.
Product with_values(Product product, const ValueIds& from, const ValueIds& to);

// Products, each recognised once for all steps that are equal.
class ProductsOnce {
 public:
  // As of product_of. Both must outlive this.
  ProductsOnce(const loops::Routine& routine, const std::function<bool(ValueId value)>& is_frozen,
               bool joins_batch)
      : routine_(routine), is_frozen_(is_frozen), joins_batch_(joins_batch) {}
  std::optional<Product> of(const loops::Nest& nest);

 private:
  struct Known {
    ValueIds values;
    std::optional<Product> product;
  };
  const loops::Routine& routine_;
  const std::function<bool(ValueId value)>& is_frozen_;
  const bool joins_batch_;
  std::unordered_map<composit::Hash, Known> known_;
};

}  // namespace flashlight::mosaic
