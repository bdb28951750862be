// Which algorithm computes a product, and the kernels that it takes.
//
//   Products products(plan, options, is_frozen);
//   products.add(step, product);       // its packed side, unless another one has it, and itself
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "flashlight/mosaic/compressed.h"
#include "flashlight/mosaic/kernels/product.h"

namespace flashlight::mosaic {

class Products {
 public:
  // All outlive this.
  Products(Plan& plan, const PlanOptions& options, const std::function<bool(ValueId)>& is_frozen)
      : plan_(plan), options_(options), is_frozen_(is_frozen) {}

  // Adds the product of a step of the routine. UserError for a choice that cannot be made.
  void add(StepId step, Product product);

 private:
  const ProductForm& form_of(const Product& product, bool known) const;
  double time_of(const ProductForm& form, const Product& product) const;
  double bfloat16_time() const;
  bool is_rounded(const Product& product, bool known) const;
  bool is_allowed(const ProductForm& form, const Choice& choice) const;
  void check_choice(const Product& product, bool known) const;
  bool by_columns(const ProductForm& form, const ProductData& data) const;
  // The packed side as integers with scales, if it is known to be some.
  std::optional<CompressedWeight> compressed(const Product& product);
  void add_compressed(StepId step, Product product, CompressedWeight weight);
  ValueId add_prepared(loops::Statement statement, size_t value, composit::DType dtype,
                       const std::string& name);
  std::optional<ValueId> fold_factor(Product& product);
  ValueId add_column_value(const Product& product, const composit::Expr& x,
                           const std::string& name);
  ValueId add_panels(const Product& product, int pixels);
  bool has_large_weights(const Product& product, int pixels) const;

  Plan& plan_;
  const PlanOptions& options_;
  const std::function<bool(ValueId)>& is_frozen_;
  std::map<std::string, ValueId> packed_;             // by what makes panels the same
  std::map<ValueId, std::optional<StepId>> writers_;  // of values that one step alone writes
};

}  // namespace flashlight::mosaic
