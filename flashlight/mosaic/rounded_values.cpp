#include "flashlight/mosaic/rounded_values.h"

#include <algorithm>
#include <map>
#include <memory>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/kernels/attention.h"
#include "flashlight/mosaic/kernels/compressed.h"
#include "flashlight/mosaic/kernels/form.h"
#include "flashlight/mosaic/kernels/loops.h"
#include "flashlight/mosaic/kernels/product.h"

namespace flashlight::mosaic {
namespace {

using composit::DType;

class RoundedValues {
 public:
  RoundedValues(Plan& plan, DType values) : plan_(plan), values_(values) {
    for (size_t i = 0; i < plan.run.size(); ++i) {
      const Kernel& kernel = plan.run[i];
      for (const ValueId value : kernel.form->touched(plan, kernel)) add(kernels_[value], i);
      for (const StepId step : kernel.steps)
        for (const ValueId value : loops::writes(plan.routine.steps[step])) ++writes_[value];
    }
    for (const Kernel& kernel : plan.prepare)
      for (const ValueId value : kernel.form->touched(plan, kernel)) ++writes_[value];
  }

  void run() {
    for (Kernel& kernel : plan_.run)
      if (const AttentionData* data = attention_data(kernel)) round_attention(kernel, *data);
    for (const ValueId value : plan_.routine.values.ids())
      if (is_free(value) && kernels_[value].size() > 1 && !is_of_attention(value) &&
          are_rows_of_all_readers(value))
        round(value);
    for (const ValueId value : plan_.routine.values.ids())
      if (is_wanted(value) && is_free(value) && can_be_read(value)) round(value);
    check_choices();
  }

 private:
  static void add(std::vector<size_t>& list, size_t one) {
    if (std::count(list.begin(), list.end(), one) == 0) list.push_back(one);
  }

  // True for a temporary of float32 that one step computes, as elements or sums.
  bool is_free(ValueId value) {
    const loops::Value& one = plan_.routine.values[value];
    if (one.role != loops::Role::temporary || one.type.dtype != DType::float32 ||
        choice_of(plan_, value).stored == DType::float32 || writes_[value] != 1 ||
        kernels_[value].empty())
      return false;
    const Kernel& writer = plan_.run[kernels_[value][0]];
    for (const StepId step : writer.steps) {
      const ValueIds written = loops::writes(plan_.routine.steps[step]);
      if (!loops::contains(written, value)) continue;
      const auto* nest = std::get_if<loops::Nest>(&plan_.routine.steps[step]);
      if (nest == nullptr) return false;
      const auto& stores = nest->statement.stores;
      return std::none_of(stores.begin(), stores.end(), [&](const composit::Store& store) {
        return value_of(store) == value && store.add;
      });
    }
    return false;
  }

  // Attention stores what it reads.
  bool is_of_attention(ValueId value) {
    return attention_data(plan_.run[kernels_[value][0]]) != nullptr;
  }
  bool are_rows_of_all_readers(ValueId value) {
    const std::vector<size_t>& kernels = kernels_[value];
    return !reads_by_steps(plan_.run[kernels[0]], value) &&
           std::all_of(kernels.begin() + 1, kernels.end(),
                       [&](size_t i) { return reads_as_rounded_rows(plan_.run[i], value); });
  }
  bool reads_by_steps(const Kernel& kernel, ValueId value) const {
    return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](StepId step) {
      return loops::contains(loops::reads(plan_.routine.steps[step]), value);
    });
  }
  // True for a product whose rows this is, and that reads it nowhere else.
  static bool reads_as_rounded_rows(const Kernel& kernel, ValueId value) {
    const ProductData* const data = product_data(kernel);
    if (data == nullptr || (kernel.form != &kProduct && kernel.form != &kCompressed)) return false;
    const Product& product = data->product;
    if (product.left != value || product.right == value || product.operand != DType::bfloat16 ||
        product.accumulator != DType::float32)
      return false;
    return !loads(product.statement.stores[0].value, value);
  }

  // ---- what is stored as bfloat16 by choice -----------------------------------------------------

  // Smaller values stay in the first caches anyway; what others are scaled by is among them.
  static constexpr int64_t kFewBytes = int64_t{1} << 15;
  bool is_wanted(ValueId value) const {
    const auto& choice = choice_of(plan_, value).stored;
    const bool is_large = plan_.routine.values[value].type.nbytes() >= kFewBytes;
    return choice ? *choice == DType::bfloat16 : values_ == DType::bfloat16 && is_large;
  }
  bool can_be_read(ValueId value) {
    const std::vector<size_t>& kernels = kernels_[value];
    return !is_of_attention(value) && !reads_by_steps(plan_.run[kernels[0]], value) &&
           std::all_of(kernels.begin() + 1, kernels.end(),
                       [&](size_t i) { return can_read(plan_.run[i], value); });
  }
  // True for loops, and for products that read its elements, or its rows as bfloat16.
  bool can_read(const Kernel& kernel, ValueId value) const {
    if (kernel.form == &kLoops)
      return std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](StepId step) {
        return std::holds_alternative<loops::Nest>(plan_.routine.steps[step]);
      });
    if (kernel.form != &kProduct && kernel.form != &kCompressed) return false;
    const Product& product = product_data(kernel)->product;
    return product.right != value &&
           (product.left != value ||
            (product.operand == DType::bfloat16 && product.accumulator == DType::float32));
  }
  void check_choices() const {
    for (const auto& [value, choice] : plan_.choices)
      if (choice.stored == DType::bfloat16 &&
          plan_.routine.values[value].type.dtype != DType::bfloat16)
        refuse_choice(plan_, value,
                      "cannot be stored as bfloat16: it is no value of float32 that one kernel "
                      "leaves for loops and for products of bfloat16 alone");
  }

  // ---- changes ----------------------------------------------------------------------------------

  void store_as_bfloat16(ValueId value) {
    plan_.routine.values[value].type.dtype = DType::bfloat16;
    remake(plan_.run[kernels_[value][0]]);
  }
  // Loops have the types of their values.
  void remake(Kernel& kernel) const {
    if (kernel.form == &kLoops)
      kernel =
          loops_kernel(plan_.routine, kernel.steps, /*alone=*/kernel.split.parts == 0, kernel.ends);
  }
  void round(ValueId value) {
    store_as_bfloat16(value);
    for (size_t i = 1; i < kernels_[value].size(); ++i) {
      Kernel& kernel = plan_.run[kernels_[value][i]];
      if (kernel.form == &kLoops)
        read_rounded(kernel, value);
      else if (kernel.form == &kCompressed)
        take_rounded<CompressedData>(kernel, value);
      else
        take_rounded<ProductData>(kernel, value);
    }
  }
  // Elements are computed with as float32, as before.
  static composit::ReplaceExpr widened(ValueId value) {
    return [value](const composit::Expr& part) {
      if (part.kind() != composit::ExprKind::load || value_of(part) != value ||
          part.dtype() == DType::bfloat16)
        return composit::Expr();
      return cast(composit::Expr::load(part.number(), DType::bfloat16, part.arguments()),
                  DType::float32);
    };
  }
  void read_rounded(Kernel& kernel, ValueId value) {
    for (const StepId step : kernel.steps) {
      auto& nest = std::get<loops::Nest>(plan_.routine.steps[step]);
      nest.statement = loops::replaced(std::move(nest.statement), widened(value));
    }
    remake(kernel);
  }
  template <class Data>
  static void take_rounded(Kernel& kernel, ValueId value) {
    const auto data = std::make_shared<Data>(data_of<Data>(kernel));
    if (data->product.left == value) data->product.element = DType::bfloat16;
    for (composit::Store& store : data->product.statement.stores)
      store.value = composit::replace(store.value, widened(value));
    kernel.data = data;
  }

  // Queries, keys, values and results are of one type: all of them, or none.
  void round_attention(Kernel& kernel, const AttentionData& data) {
    const Attention& attention = data.attention;
    const Product &scores = attention.scores, &results = attention.results;
    if (scores.operand != DType::bfloat16 || scores.element != DType::float32 || !has_pairs(scores))
      return;
    const auto number = static_cast<size_t>(&kernel - plan_.run.data());
    for (const ValueId value : {scores.left, scores.right, results.right}) {
      const std::vector<size_t>& kernels = kernels_[value];
      const bool is_bias = attention.bias.defined() && loads(attention.bias, value);
      if (!is_free(value) || is_bias || kernels.size() != 2 || kernels[1] != number ||
          reads_by_steps(plan_.run[kernels[0]], value))
        return;
    }
    if (!is_free(attention.result) || !are_rows_of_all_readers(attention.result)) return;
    for (const ValueId value : {scores.left, scores.right, results.right}) store_as_bfloat16(value);
    round(attention.result);
    const auto rounded = std::make_shared<AttentionData>(data);
    rounded->attention.scores.element = rounded->attention.results.element = DType::bfloat16;
    kernel.data = rounded;
  }
  static bool loads(const composit::Expr& x, ValueId value) {
    const auto parts = composit::parts_of({x});
    return std::any_of(parts.begin(), parts.end(), [&](const composit::Expr& part) {
      return part.kind() == composit::ExprKind::load && value_of(part) == value;
    });
  }

  Plan& plan_;
  const DType values_;
  std::map<ValueId, std::vector<size_t>> kernels_;  // of `run`, that touch a value
  std::map<ValueId, int> writes_;                   // steps that write it, and preparation
};

}  // namespace

void store_rounded(Plan& plan, DType values) { RoundedValues(plan, values).run(); }

}  // namespace flashlight::mosaic
