// torch's dtype promotion (https://pytorch.org/docs/stable/tensor_attributes.html).
//
//   promote(DType::int64, DType::float32) == DType::float32;
//
//   Promotion p;
//   p.add(x.type());
//   p.add_number(DType::float64);
//   p.result() == DType::float32;
#pragma once

#include <optional>

#include "composit/ir/type.h"

namespace composit {

// The dtype of integers that are cast because a float is needed.
inline constexpr DType kDefaultFloat = DType::float32;

// bool < integer < float < complex.
enum class DTypeCategory { boolean, integer, floating, complex };
DTypeCategory category(DType dtype);

// The dtype both can be cast to: torch.promote_types. Both must be computable.
DType promote(DType a, DType b);
// The dtype in which a float operation computes with `dtype`: `kDefaultFloat` for integers and
// bool, `dtype` itself otherwise.
DType to_float(DType dtype);
// The dtype of the real and the imaginary part.
DType real_dtype(DType dtype);
// The complex dtype whose parts are `dtype`.
DType complex_dtype(DType dtype);

// The common dtype of the operands of one operation: torch.result_type for any number of them.
// Tensors with axes count before zero-dimensional ones, these before numbers: the lesser counts
// only where its category is higher.
class Promotion {
 public:
  // A tensor among the operands.
  void add(const Type& tensor);
  // A number the program wrote beside tensors ("wrapped"). `dtype`: bool_, int64, float64 or
  // complex128 by its kind.
  void add_number(DType dtype);
  // UserError when nothing was added.
  DType result() const;

 private:
  std::optional<DType> tensors_, zero_dim_, numbers_;
};

}  // namespace composit
