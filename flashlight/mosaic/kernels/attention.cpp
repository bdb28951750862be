#include "flashlight/mosaic/kernels/attention.h"

#include <spdlog/fmt/fmt.h>

#include "flashlight/mosaic/flat_writer.h"
#include "flashlight/mosaic/kernels/product.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

using composit::Affine;
using composit::Expr;
using text::Code;

class AttentionWriter {
 public:
  AttentionWriter(const Plan& plan, const Attention& attention)
      : attention_(attention), flat_(plan) {
    dtype_ = attention.scores.accumulator;
    type_ = text::type_name(dtype_);
    element_ = text::type_name(attention.scores.element);
    operand_ = text::type_name(attention.scores.operand);
    flat_.reserve({"team", "of", "b", "i", "j"});
  }

  KernelText write() {
    const Product& scores = attention_.scores;
    flat_.add(scores.left, "queries");
    flat_.add(scores.right, "keys");
    flat_.add(attention_.results.right, "values");
    for (const ValueId value : attention_.reads) flat_.add(value);
    flat_.add(attention_.result, "y");
    const int64_t heads = scores.size(scores.batch), queries = scores.extent(scores.rows[0]),
                  keys = scores.extent(*scores.columns), width = scores.extent(scores.terms[0]);
    return {.name = fmt::format("attention_{}x{}x{}x{}", heads, queries, keys, width),
            .function = text::Function{.parameters = flat_.parameters(attention_.result),
                                       .body = call(heads)},
            .values = flat_.values(),
            .by_pointer = true,
            .first = "team"};
  }

 private:
  Affine store() const {
    composit::IndexAnalysis analysis(attention_.results.statement.axes);
    return *analysis.affine(attention_.results.statement.stores[0].at[0]);
  }

  std::string shape() const {
    const Product &scores = attention_.scores, &results = attention_.results;
    const auto number = [](int64_t one) { return text::open_number(one); };
    return fmt::format(
        "{{{}, {}, {}, {}, {}, {}, {}, {}, {}{}}}", number(scores.extent(scores.rows[0])),
        number(scores.extent(*scores.columns)), number(scores.extent(scores.terms[0])),
        number(results.extent(*results.columns)),
        number(scores.left_at.coefficients[scores.rows[0]]),
        number(scores.right_at.coefficients[*scores.columns]),
        number(results.right_at.coefficients[results.terms[0]]),
        number(store().coefficients[results.rows[0]]), text::open_real(attention_.scale, dtype_),
        attention_.gives_zeros ? ", true" : "");
  }

  Code call(int64_t heads) {
    const Product &scores = attention_.scores, &results = attention_.results;
    Code code = text::assignment("const fl::Attention<" + type_ + "> of", shape());
    Code place = flat_.decoded(results, results.batch, "b", "b");
    const std::string value = flat_.address(results.right, results.right_at, results.batch),
                      result = flat_.address(attention_.result, store(), results.batch);
    flat_.axes.clear();
    flat_.decoded(scores, scores.batch, "b", "b");
    place += text::returned("{" + flat_.address(scores.left, scores.left_at, scores.batch) + ", " +
                            flat_.address(scores.right, scores.right_at, scores.batch) + ", " +
                            value + ", " + result + "}");
    const std::string head = scores.batch.empty() ? "int64_t" : "int64_t b";
    std::string types = type_;
    if (element_ != type_ || operand_ != element_) types += ", " + element_;
    if (operand_ != element_) types += ", " + operand_;
    code += text::call(
        {.function = "fl::attend_all<" + types + ">",
         .arguments = {"team", "of", text::open_number(heads),
                       text::Lambda{"[&](" + head + ") -> fl::Heads<" + element_ + ">", true,
                                    place},
                       text::Lambda{.head = "[&]([[maybe_unused]] int64_t b)", .body = bias()}},
         .lambdas_apart = true});
    return code;
  }

  Code bias() {
    if (!attention_.bias.defined()) return text::returned("fl::NoBias()");
    const Product& scores = attention_.scores;
    flat_.axes[scores.rows[0]] = "i";
    flat_.axes[*scores.columns] = "j";
    Code code = flat_.decoded(scores, scores.batch, "b", "b");
    const text::Leaves leaves = flat_.leaves(scores.statement);
    text::ExpressionWriter text(leaves, scores.statement.axes, flat_.taken());
    text.plan({attention_.bias});
    Code body = text.locals(attention_.bias);
    body += text::returned(text.expression(attention_.bias));
    code += text::braced("return [=]([[maybe_unused]] int64_t i, [[maybe_unused]] int64_t j)", body,
                         "};");
    return code;
  }

  const Attention& attention_;
  FlatWriter flat_;
  composit::DType dtype_;  // of scores and sums
  // Types of scores, of what is read, and of what that is rounded to.
  std::string type_, element_, operand_;
};

const Attention& attention_of(const Kernel& kernel) {
  return data_of<AttentionData>(kernel).attention;
}

struct AttentionForm {
  static ValueIds touched(const Plan&, const Kernel& kernel) {
    ValueIds values = attention_of(kernel).reads;
    values.push_back(attention_of(kernel).result);
    return values;
  }
  static ValueIds written(const Plan&, const Kernel& kernel) {
    return {attention_of(kernel).result};
  }

  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    const Product &scores = attention_of(kernel).scores, &results = attention_of(kernel).results;
    const std::string rounded =
        scores.operand == scores.element
            ? ""
            : ", multiplied as " + std::string(composit::name(scores.operand));
    return fmt::format(
        "{} heads x {} queries (threads), in blocks of keys: {} keys, {} wide, values {} wide{}",
        scores.size(scores.batch), scores.extent(scores.rows[0]), scores.extent(*scores.columns),
        scores.extent(scores.terms[0]), results.extent(*results.columns), rounded);
  }

  static int64_t operations(const Kernel& kernel) {
    return attention_of(kernel).scores.operations() + attention_of(kernel).results.operations();
  }
  static int64_t flops(const Plan&, const Kernel& kernel) { return operations(kernel); }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    return AttentionWriter(plan, attention_of(kernel)).write();
  }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    const Product& scores = attention_of(kernel).scores;
    if (!scores.has_one_dtype()) add_tiles(scores, units);
    add_form(scores, "FLASHLIGHT_ATTENTION({0}, {1}, {2});\n", units);
  }
};

}  // namespace

const KernelForm kAttention = {.name = "attention",
                               .touched = AttentionForm::touched,
                               .written = AttentionForm::written,
                               .loops = AttentionForm::loops,
                               .write = AttentionForm::write,
                               .flops = AttentionForm::flops,
                               .product_operations = AttentionForm::operations,
                               .add_units = AttentionForm::add_units};

const AttentionData* attention_data(const Kernel& kernel) {
  return dynamic_cast<const AttentionData*>(kernel.data.get());
}

Kernel attention_kernel(Attention attention) {
  const Product& scores = attention.scores;
  Kernel kernel = {.form = &kAttention, .steps = attention.steps};
  kernel.split = {Split::Of::queries, scores.size(scores.batch) * scores.extent(scores.rows[0])};
  kernel.data = std::make_shared<AttentionData>(std::move(attention));
  return kernel;
}

}  // namespace flashlight::mosaic
