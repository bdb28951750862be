// Products as calls of fl::contract and its like: where rows lie, and what is done with the sums of
// a tile.
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/flat_writer.h"
#include "flashlight/mosaic/kernels/product.h"

namespace flashlight::mosaic {

class ProductWriter {
 public:
  ProductWriter(const Plan& plan, const Kernel& kernel);

  // The call of fl::`function`, over the batch. `fetches`: also what is read after it.
  text::Code contraction(const std::string& function, bool fetches);
  // The same of this function with its template arguments, and of these panels.
  text::Code contraction(const std::string& callee, const std::string& panels, bool fetches);
  // The kernel "`form`_relu_784x64x576" with that body.
  KernelText text(const std::string& form, const text::Code& body, bool fetches);

  // Parts of the body of another algorithm: "float", "fl::Split::rows", the address of the first
  // element that is read by rows, and the lambda that gets the sums, for all row axes but the
  // innermost.
  const std::string& type() const { return type_; }
  std::string split() const { return data_.by_columns ? "fl::Split::columns" : "fl::Split::rows"; }
  std::string rows_address() const { return flat_.address(product_.left, product_.left_at, {}); }
  text::Lambda finish(const std::string& outer, const AxisIds& outer_axes);

 private:
  text::Code offsets() const;
  std::string shape(bool fetches) const;
  std::string panels() const;
  text::Code over_batches(const text::Code& call);
  bool has_whole_panels() const { return product_.column_count() % 32 == 0; }
  text::Code finish_body(const AxisIds& outer);
  bool follows_columns(const composit::Expr& place) const;
  bool stores_bytes() const;
  text::Code rounded_row(const text::Leaves& leaves, const composit::Expr& value,
                         const std::string& columns);
  std::string first_of_row(text::Leaves leaves, ValueId value, const composit::Expr& place);
  composit::Expr with_loaded_bytes(const composit::Expr& value, const std::string& columns,
                                   text::Leaves& leaves, text::Code& code);
  text::Code bytes_of_row(const text::Leaves& leaves, const composit::Expr& stored,
                          const std::string& columns);

  const Plan& plan_;
  const Kernel& kernel_;
  const ProductData& data_;
  const Product& product_;
  FlatWriter flat_;
  std::string type_;
};

// Words that the text of products and of their packed sides uses.
extern const std::vector<std::string> kProductWords;
// fl::Packing of its right side.
std::string packing_of(const Product& product);
// "fl::packed_size<float>(kPacking)": the elements of the panels of one product of a batch.
std::string panel_size_of(const Product& product);
// `body` for each batch that a thread has.
text::Code in_batches(const Product& product, const text::Code& body);
// All axes but the innermost.
AxisIds without_last(AxisIds axes);

}  // namespace flashlight::mosaic
