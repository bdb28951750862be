#include "tests/tracer/capture_helpers.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <unordered_map>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tracer/allocation_watch.h"
#include "tracer/memory_view.h"

namespace flashlight::testing {
namespace {

// The elements as they lie in memory (a bool may be other than 0 and 1), in row-major order.
at::Tensor plain_bytes(const at::Tensor& tensor) {
  at::Tensor plain = tensor.detach();
  if (plain.layout() != c10::Layout::Strided) plain = plain.to_dense();
  const auto dtype = plain.scalar_type() == at::kBool ? at::kByte : plain.scalar_type();
  return tracer::view_memory(plain, dtype, plain.sizes(), plain.strides(), 0).contiguous();
}

std::string type_text(const at::Tensor& tensor) {
  std::string text = c10::str(tensor.scalar_type(), " ", tensor.sizes());
  if (tensor.layout() == c10::Layout::Strided) text += c10::str(" strides ", tensor.strides());
  if (tensor.is_conj()) text += " conj";
  if (tensor.is_neg()) text += " neg";
  return text;
}

}  // namespace

at::Tensor ones() { return at::ones({3}); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensors Captured::replay(const Tensors& inputs) const {
  Tensors all;
  size_t next = 0;
  for (const tracer::RecordedInput& input : published.inputs)
    all.push_back(input.kind == composit::InputKind::user_input ? inputs.at(next++) : input.tensor);
  return plan.run(all);
}

size_t Captured::count(const std::string& op) const {
  size_t count = 0;
  for (const auto& node : published.graph.nodes()) count += node->op().str() == op ? 1 : 0;
  return count;
}

Captured captured_from(tracer::Recording& recording) {
  tracer::Published published = tracer::publish(recording);
  std::map<std::string, at::Generator> generators;
  for (const tracer::RecordedGenerator& generator : published.generators)
    if (auto live = generator.live.lock())
      generators.emplace(generator.role, at::Generator(std::move(live)));
  tracer::Plan plan(published.graph, {published.grad, std::move(generators)});
  return {std::move(published), std::move(plan)};
}

Captured capture(const Function& function, Tensors inputs, const TraceOptions& options,
                 const std::vector<std::pair<std::string, at::Tensor>>& named) {
  // Watches on its own: the scope passes on what it is told.
  const auto watch = std::make_shared<tracer::AllocationWatch>(nullptr);
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
  TraceScope scope(options);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.name(inputs[i], std::to_string(i), composit::InputKind::user_input);
  for (const auto& [name, tensor] : named)
    scope.name(
        tensor, name,
        tensor.requires_grad() ? composit::InputKind::parameter : composit::InputKind::buffer);
  const Tensors outputs = function(inputs);
  const auto recording = scope.finish(outputs);
  Captured captured = captured_from(*recording);
  for (const tracer::RecordedConstant& constant : captured.published.constants) {
    if (constant.number || !constant.tensor.has_storage()) continue;
    EXPECT_EQ(watch->origin(constant.tensor.storage().data()),
              tracer::AllocationWatch::Origin::outside)
        << "a constant was allocated inside the scope: " << constant.tensor.toString();
  }
  return captured;
}

Captured expect_replays(const Function& function, const Tensors& inputs, const Tensors& fresh,
                        const Check& check) {
  at::manual_seed(check.seed);
  Captured captured = capture(function, copies(inputs), check.options);
  composit::verify(captured.published.graph);
  EXPECT_TRUE(composit::parse(composit::print(captured.published.graph)) ==
              captured.published.graph)
      << composit::print(captured.published.graph);
  Tensors eager = copies(fresh), replayed = copies(fresh);
  at::manual_seed(check.seed + 1);
  const Tensors expected = function(eager);
  at::manual_seed(check.seed + 1);
  const Tensors received = captured.replay(replayed);
  EXPECT_EQ(difference(received, expected), "") << composit::print(captured.published.graph);
  EXPECT_EQ(difference(replayed, eager), "") << "inputs afterwards\n"
                                             << composit::print(captured.published.graph);
  return captured;
}

Captured expect_replays(const Function& function, const Tensors& inputs, const Check& check) {
  return expect_replays(function, inputs, random_like(inputs, check.seed + 2), check);
}

Tensors random_like(const Tensors& tensors, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  Tensors result = copies(tensors);
  for (at::Tensor& tensor : result) {
    if (tensor.is_floating_point() || tensor.is_complex())
      tensor.copy_(at::randn(tensor.sizes(), generator, tensor.scalar_type()));
    else
      tensor.copy_(at::randint(0, tensor.scalar_type() == at::kBool ? 2 : 3, tensor.sizes(),
                               generator, at::kLong));
  }
  return result;
}

std::string user_error(const std::function<void()>& function) {
  try {
    function();
  } catch (const composit::UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a UserError";
  return {};
}

std::string difference(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined())
    return a.defined() == b.defined() ? "" : "one of the tensors is undefined";
  if (type_text(a) != type_text(b)) return type_text(a) + " against " + type_text(b);
  const at::Tensor x = plain_bytes(a), y = plain_bytes(b);
  if (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0)
    return "";
  return c10::str("other values: ", x, "\nagainst ", y);
}

std::string difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return c10::str(a.size(), " tensors against ", b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (const std::string text = difference(a[i], b[i]); !text.empty())
      return c10::str("tensor ", i, ": ", text);
  return "";
}

Tensors copies(const Tensors& tensors) {
  std::unordered_map<const c10::StorageImpl*, at::Tensor> bytes;
  Tensors result;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.has_storage()) {
      result.push_back(tensor.detach().clone());
      continue;
    }
    at::Tensor& copy = bytes[tensor.storage().unsafeGetStorageImpl()];
    if (!copy.defined()) copy = tracer::all_bytes(tensor).clone();
    at::Tensor view =
        tracer::view_memory(copy, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                            tensor.storage_offset(), tensor.is_conj(), tensor.is_neg());
    result.push_back(view);
  }
  return result;
}

}  // namespace flashlight::testing
