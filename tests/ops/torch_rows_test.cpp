// Walks all rows of the table and compares with LibTorch: schemas, values, dtypes, sizes, and first
// and second derivatives in float64.
#include <ATen/ops/arange.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>

#include "composit/ad/chain_rule.h"
#include "composit/ad/vjp.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/draws.h"
#include "composit/ops/functions.h"
#include "tests/ops/known_differences.h"
#include "tests/ops/torch_call.h"
#include "tests/test_name.h"
#include "tracer/convert.h"
#include "tracer/geometry.h"

namespace composit {
namespace {

using Row = const Operation*;
using test::What;

// `where`: "result 1", "first derivative by tensor 0". Empty where they agree, or differ as
// known_differences.cpp says.
std::string difference(const Operation& operation, What what, const std::string& where,
                       const Array& ours, const at::Tensor& torch) {
  const std::string name = operation.schema.name.str();
  // Values in memory: zeros that torch never wrote down become some.
  const Array expected = flashlight::tracer::to_array(torch.resolve_conj().resolve_neg().clone());
  const std::string apart =
      test::difference(ours, expected, test::torch_tolerance(name, what, expected.type().dtype));
  if (apart.empty()) return apart;
  const std::string wrong = where + ": " + apart;
  return test::verdict(name, what, wrong) == test::Verdict::fails ? wrong : "";
}

class TorchRows : public testing::TestWithParam<Row> {
 protected:
  void for_each_sample(
      DType floats,
      const std::function<void(const c10::OperatorHandle&, const SampleCall&)>& check) {
    const Operation& operation = *GetParam();
    const auto op = torch_operator(operation.schema);
    if (!op) return;
    // LibTorch computes scales of losses in float32 alone.
    const bool is_scaling = operation.schema.name.base_name().starts_with("_amp_");
    if (is_scaling && floats != DType::float32) return;
    for (const std::string& text : split_samples(operation.row.samples)) {
      SCOPED_TRACE(operation.schema.name.str() + ": " + text);
      try {
        check(*op, parse_sample(operation.schema, text, floats));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

// Defaults may be written in another way: `1` and `[1, 1]`, `1e-05` and `1.0000000000000001e-05`.
void expect_same(const SchemaArgument& ours, const SchemaArgument& torch) {
  EXPECT_EQ(ours.name, torch.name);
  EXPECT_EQ(ours.type_name, torch.type_name) << ours.name;
  EXPECT_EQ(ours.list, torch.list) << ours.name;
  EXPECT_EQ(ours.optional, torch.optional) << ours.name;
  EXPECT_EQ(ours.optional_items, torch.optional_items) << ours.name;
  EXPECT_EQ(ours.keyword_only, torch.keyword_only) << ours.name;
  ASSERT_EQ(ours.default_text.has_value(), torch.default_text.has_value()) << ours.name;
  // Operators that are compiled in print enumerations as their numbers.
  if (ours.default_text && ours.type != ArgumentType::memory_format) {
    EXPECT_EQ(*default_of(ours), *default_of(torch)) << ours.name;
  }
}

void expect_same(const Schema& ours, const c10::OperatorHandle& op) {
  const Schema torch = parse_schema(c10::toString(op.schema()));
  ASSERT_GE(ours.arguments.size(), torch.arguments.size()) << print(torch);
  // Further ones are `execution` attributes of captured nodes, which no call has.
  for (size_t i = torch.arguments.size(); i < ours.arguments.size(); ++i)
    EXPECT_TRUE(ours.arguments[i].keyword_only && ours.arguments[i].optional)
        << ours.arguments[i].name;
  for (size_t i = 0; i < torch.arguments.size(); ++i)
    expect_same(ours.arguments[i], torch.arguments[i]);
  ASSERT_EQ(ours.results.size(), torch.results.size()) << print(torch);
  for (size_t i = 0; i < ours.results.size(); ++i) expect_same(ours.results[i], torch.results[i]);
}

TEST_P(TorchRows, schema_is_the_dispatchers) {
  const Schema& schema = GetParam()->schema;
  if (schema.name.domain() != "aten") GTEST_SKIP() << "LibTorch has no such operator";
  const auto op = torch_operator(schema);
  ASSERT_TRUE(op) << "LibTorch has no " << schema.name.str();
  expect_same(schema, *op);
}

void expect_values(const c10::OperatorHandle& op, const SampleCall& sample) {
  const Operation& operation = *find_operation(sample.call.schema().name);
  const c10::AutoGradMode no_grad(false);
  const TorchCall torch = torch_call(op, sample, false, {});
  const auto ours = evaluate(operation, sample.call, sample.values);
  ASSERT_GE(ours.size(), torch.results.size());
  for (size_t i = 0; i < torch.results.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), torch.results[i].defined()) << "result " << i;
    if (ours[i].defined()) {
      const std::string where = "result " + std::to_string(i);
      EXPECT_EQ(difference(operation, What::value, where, ours[i], torch.results[i]), "");
    }
  }
}

TEST_P(TorchRows, values_are_torchs_in_float32) { for_each_sample(DType::float32, expect_values); }
TEST_P(TorchRows, values_are_torchs_in_float64) { for_each_sample(DType::float64, expect_values); }

// As under autocast.
TEST(TorchMixedRows, norms_of_16_bits_have_parameters_of_float32) {
  const std::pair<const char*, const char*> calls[] = {
      {"aten::native_layer_norm", "H[2,3,4] [4] f32[4] f32[4] 1e-05 | H[2,3] [3] f32[3] None 0.1"},
      {"aten::native_layer_norm_backward",
       "H[2,3,4] H[2,3,4] [4] f32[2,3,1] f32[2,3,1] f32[4] f32[4] [True,True,True]"},
      {"aten::native_batch_norm",
       "H[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05 | H[4,3,2] None None f32[3] "
       "f32[3]=0.5..2 True 0.1 1e-05"},
      {"aten::native_batch_norm_backward",
       "H[4,3,2] H[4,3,2] f32[3] None None f32[3] f32[3]=0.5..2 True 0.1 [True,True,True]"},
      {"aten::native_group_norm", "H[2,4,3] f32[4] f32[4] 2 4 3 2 1e-05"},
      {"aten::native_group_norm_backward",
       "H[2,4,3] H[2,4,3] f32[2,2] f32[2,2] f32[4] 2 4 3 2 [True,True,True]"}};
  for (const char* const half : {"bf16", "f16"})
    for (const auto& [name, texts] : calls)
      for (std::string text : split_samples(texts)) {
        for (size_t at = text.find('H'); at != text.npos; at = text.find('H'))
          text.replace(at, 1, half);
        SCOPED_TRACE(std::string(name) + ": " + text);
        const Operation& operation = *find_operation(Symbol(name));
        const SampleCall sample = parse_sample(operation.schema, text, DType::float32);
        const TorchCall torch = torch_call(*torch_operator(operation.schema), sample, false, {});
        const auto ours = evaluate(operation, sample.call, sample.values);
        // LibTorch adds up gradients of parameters in 16 bits, we in float32.
        for (size_t i = 0; i < torch.results.size(); ++i)
          EXPECT_EQ(test::difference(ours.at(i), flashlight::tracer::to_array(torch.results[i]),
                                     test::tolerance_of(sample.values[0].type().dtype)),
                    "")
              << "result " << i;
      }
}

TEST_P(TorchRows, other_names_mean_the_same) {
  for (std::string_view name : GetParam()->row.also) {
    SCOPED_TRACE(name);
    Schema other = GetParam()->schema;
    other.name = Symbol(name);
    const auto op = torch_operator(other);
    ASSERT_TRUE(op) << "LibTorch has no " << name;
    expect_same(other, *op);
    for_each_sample(DType::float32, [&](const c10::OperatorHandle&, const SampleCall& sample) {
      expect_values(*op, sample);
    });
  }
}

// ---- derivatives --------------------------------------------------------------------------------

at::Tensor torch_weights(const at::Tensor& like, double phase) {
  return at::sin(at::arange(like.numel(), like.options()) * 0.7 + 1.0 + phase).view(like.sizes());
}
LazyTensor weights(const LazyTensor& like, double phase) {
  return reshape(sin(arange(like.numel(), like.dtype()) * 0.7 + 1.0 + phase), like.sizes());
}

// The float64 inputs of a sample: as our tensors and as torch's leaves.
struct Leaves {
  LazyTensors ours;
  std::vector<at::Tensor> torch;
  Values values;
};

Leaves leaves_of(const SampleCall& sample, const TorchCall& torch) {
  Leaves leaves;
  for (size_t place = 0; place < torch.places.size(); ++place) {
    if (!torch.places[place].defined()) continue;
    const LazyTensor& tensor = sample.call.tensors()[place];
    if (is_input(*tensor.node)) leaves.values.set(tensor, sample.values[place]);
    if (!torch.places[place].requires_grad()) continue;
    leaves.ours.push_back(tensor);
    leaves.torch.push_back(torch.places[place]);
  }
  return leaves;
}

void expect_gradients(const Operation& operation, const Leaves& leaves, const LazyTensors& ours,
                      const std::vector<at::Tensor>& torch, const char* what) {
  const auto values = evaluate(ours, leaves.values);
  for (size_t i = 0; i < ours.size(); ++i) {
    const at::Tensor expected =
        torch[i].defined() ? torch[i].detach() : at::zeros_like(leaves.torch[i]);
    const std::string where = what + (" by tensor " + std::to_string(i));
    EXPECT_EQ(difference(operation, What::derivative, where, values[i], expected), "");
  }
}

// Nothing where torch has no such derivative.
std::optional<std::vector<at::Tensor>> torch_grad(const at::Tensor& loss, const Leaves& leaves,
                                                  bool again) {
  try {
    return torch::autograd::grad({loss}, leaves.torch, {}, again, again, /*allow_unused=*/true);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (what.find("not implemented") == std::string::npos &&
        what.find("not supported") == std::string::npos)
      throw;
    return std::nullopt;
  }
}

void expect_derivatives(const c10::OperatorHandle& op, const SampleCall& sample) {
  const Operation& operation = *find_operation(sample.call.schema().name);
  const TorchCall torch = torch_call(op, sample, true, operation.row.nondifferentiable);
  const Leaves leaves = leaves_of(sample, torch);
  const NodePtr node = sample.call.node(infer(operation, sample.call));
  LazyTensor loss;
  at::Tensor torch_loss;
  for (uint32_t i = 0; i < torch.results.size(); ++i) {
    const at::Tensor& y = torch.results[i];
    if (!y.defined() || !y.is_floating_point() || !y.requires_grad()) continue;
    const LazyTensor our_y = LazyTensor{node, i};
    const LazyTensor part = sum(our_y * weights(our_y, i));
    const at::Tensor torch_part = (y * torch_weights(y, i)).sum();
    loss = loss.defined() ? loss + part : part;
    torch_loss = torch_loss.defined() ? torch_loss + torch_part : torch_part;
  }
  if (!loss.defined() || leaves.ours.empty()) return;
  const auto first = grad(loss, leaves.ours);
  const auto torch_first = torch_grad(torch_loss, leaves, true);
  if (!torch_first) return;
  expect_gradients(operation, leaves, first, *torch_first, "first derivative");
  LazyTensor second;
  at::Tensor torch_second;
  for (size_t i = 0; i < first.size(); ++i) {
    const at::Tensor& gradient = (*torch_first)[i];
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    const LazyTensor part = sum(first[i] * weights(first[i], 0.3));
    const at::Tensor torch_part = (gradient * torch_weights(gradient, 0.3)).sum();
    second = second.defined() ? second + part : part;
    torch_second = torch_second.defined() ? torch_second + torch_part : torch_part;
  }
  if (!second.defined()) return;
  if (const auto expected = torch_grad(torch_second, leaves, false))
    expect_gradients(operation, leaves, grad(second, leaves.ours), *expected, "second derivative");
}

TEST_P(TorchRows, derivatives_are_autograds) {
  for_each_sample(DType::float64, expect_derivatives);
}

// ---- draws --------------------------------------------------------------------------------------

class TorchDraws : public testing::TestWithParam<const Draw*> {};

TEST_P(TorchDraws, schema_is_the_dispatchers) {
  const Schema& schema = GetParam()->schema;
  if (schema.name.domain() != "aten") return;
  const auto op = torch_operator(schema);
  ASSERT_TRUE(op) << "LibTorch has no " << schema.name.str();
  EXPECT_TRUE(op->hasTag(at::Tag::nondeterministic_seeded));
  expect_same(schema, *op);
}

TEST_P(TorchDraws, derivatives_are_zero_as_autograds) {
  const Schema& schema = GetParam()->schema;
  for (const std::string& text : split_samples(GetParam()->row.samples)) {
    SCOPED_TRACE(schema.name.str() + ": " + text);
    const SampleCall sample = parse_sample(schema, text, DType::float64);
    const TorchCall torch = torch_call(*torch_operator(schema), sample, true, {});
    const Leaves leaves = leaves_of(sample, torch);
    ASSERT_EQ(torch.results.size(), 1U);
    const at::Tensor& drawn = torch.results[0];
    const LazyTensor ours{sample.call.node({flashlight::tracer::type_of(drawn)}), 0};
    const auto gradients = evaluate(grad(sum(ours), leaves.ours), leaves.values);
    const auto expected =
        drawn.requires_grad() ? torch_grad(drawn.sum(), leaves, false) : std::nullopt;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor zeros = at::zeros_like(leaves.torch[i]);
      if (expected && (*expected)[i].defined()) EXPECT_TRUE((*expected)[i].equal(zeros));
      EXPECT_TRUE(flashlight::tracer::to_tensor(gradients[i]).equal(zeros));
    }
  }
}

// Each operator that LibTorch calls random, and that takes tensors alone, is a draw or stands here.
TEST(TorchDraws, are_all_there_are) {
  // Functions of their input, or compositions of operators.
  const std::set<std::string, std::less<>> others = {"alpha_dropout",
                                                     "dropout",
                                                     "feature_alpha_dropout",
                                                     "feature_dropout",
                                                     "native_dropout",
                                                     "_fused_dropout",
                                                     "rrelu",
                                                     "rrelu_with_noise",
                                                     "rrelu_with_noise_functional",
                                                     "gru",
                                                     "lstm",
                                                     "rnn_relu",
                                                     "rnn_tanh",
                                                     "_lstm_mps",
                                                     "_cudnn_rnn",
                                                     "miopen_rnn",
                                                     "_standard_gamma",
                                                     "_sample_dirichlet",
                                                     "_nested_tensor_softmax_with_shape"};
  // Autograd refuses it, too.
  const std::set<std::string, std::less<>> refused = {"binomial"};
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !op->hasTag(at::Tag::nondeterministic_seeded) || op->schema().is_mutable()) continue;
    const Schema schema = parse_schema(c10::toString(op->schema()));
    const auto is_tensor = [](const auto& argument) { return argument.is_tensor(); };
    const std::string_view base = schema.name.base_name();
    if (std::none_of(schema.arguments.begin(), schema.arguments.end(), is_tensor) ||
        base.find("attention") != std::string_view::npos ||
        base.find("sdp_choice") != std::string_view::npos || others.contains(base) ||
        refused.contains(base))
      continue;
    EXPECT_NE(find_draw(schema.name), nullptr) << print(schema);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TorchDraws, testing::ValuesIn(all_draws()), [](const auto& one) {
  return test::test_name(one.param->schema.name.str());
});

INSTANTIATE_TEST_SUITE_P(All, TorchRows, testing::ValuesIn(all_operations()), [](const auto& one) {
  return test::test_name(one.param->schema.name.str());
});

}  // namespace
}  // namespace composit
