#include "examples/zoo/llama.h"

#include <torch/torch.h>

#include <mutex>
#include <optional>

#include "composit/ir/error.h"
#include "examples/models/random_weights.h"
#include "examples/zoo/subject.h"

namespace zoo {
namespace {

using composit::UserError;
// (tokens, positions, slots) to logits.
using Program = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;

models::LlamaDecoder make_decoder(const LlamaOptions& options) {
  if (options.batch < 1 || options.block < 1 || options.capacity < 3 * options.block ||
      options.capacity % options.block != 0 || options.most_tokens < 4 ||
      options.most_tokens > options.capacity)
    throw UserError(
        "[llama] expected a cache of three blocks or more, and calls of 4 tokens to "
        "the cache's size; received capacity = " +
        std::to_string(options.capacity) + ", block = " + std::to_string(options.block) +
        ", most_tokens = " + std::to_string(options.most_tokens) +
        ", batch = " + std::to_string(options.batch));
  models::LlamaForCausalLM model(options.config);
  models::fill_random_weights(*model, options.seed);
  model->to(options.dtype);
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  // One position is never used: so all that are read are a slice, which LibTorch leaves out of a
  // whole cache, and one family is for them, too.
  return models::LlamaDecoder(model, options.batch, options.capacity + 1, options.all_logits);
}

}  // namespace

struct Llama::State {
  explicit State(LlamaOptions chosen)
      : options(std::move(chosen)),
        decoder(make_decoder(options)),
        slots(torch::arange(options.capacity)) {}

  Family trace();

  LlamaOptions options;
  models::LlamaDecoder decoder;
  at::Tensor slots;  // (capacity)
  std::mutex mutex;
  std::optional<Family> family;
};

// Sizes of 1 are never fitted, since LibTorch leaves out operators there: one token is checked.
Llama::Family Llama::State::trace() {
  const torch::NoGradGuard no_grad;
  flashlight::TraceSettings settings;
  settings.seen_once = true;                              // examples are each other's second looks
  std::vector<std::pair<at::Tensor, at::Tensor>> before;  // of the cache, which examples write
  for (const at::Tensor& tensor : decoder->cache->buffers())
    before.emplace_back(tensor, tensor.clone());
  const auto arguments = [&](int64_t count, int64_t length) {
    return std::tuple(tokens({options.batch, count}, options.config.vocab_size, 1),
                      slots.slice(0, 0, count).unsqueeze(0).repeat({options.batch, 1}),
                      slots.slice(0, 0, length));
  };
  std::vector<flashlight::CaptureBase> captures;
  const auto add = [&](int64_t count, int64_t length) {
    const auto [own, positions, read] = arguments(count, length);
    captures.push_back(flashlight::trace(settings, decoder, own, positions, read));
  };
  const int64_t block = options.block, most = options.most_tokens;
  add(2, block);
  add(3, 2 * block);
  add(most, options.capacity);
  Family family(std::move(captures), {.names = {"tokens", "length"}});
  for (const int64_t length : {block, options.capacity}) {
    const auto [own, positions, read] = arguments(1, length);
    const flashlight::CheckReport report = family.check(own, positions, read);
    if (!report) throw UserError("[llama] one token: " + flashlight::str(report));
  }
  for (auto& [tensor, old] : before) tensor.copy_(old);
  return family;
}

Llama::Llama(LlamaOptions options) : state_(std::make_shared<State>(std::move(options))) {}

const models::LlamaDecoder& Llama::decoder() const { return state_->decoder; }
const LlamaOptions& Llama::options() const { return state_->options; }

const Llama::Family& Llama::family() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->family) state_->family = state_->trace();
  return *state_->family;
}

at::Tensor Llama::slots(const at::Tensor& positions) const {
  const LlamaOptions& options = state_->options;
  const auto last = positions.max().item<int64_t>();
  if (last >= options.capacity || positions.min().item<int64_t>() < 0)
    throw UserError("[llama] expected positions from 0 to " + std::to_string(options.capacity - 1) +
                    ", which the cache has, received one of " + std::to_string(last));
  return state_->slots.slice(0, 0, (last / options.block + 1) * options.block);
}

namespace {

// Calls of at most so many tokens.
LlamaStep step_of(const Llama& llama, Program program) {
  return [llama, program = std::move(program)](const at::Tensor& tokens,
                                               const at::Tensor& positions) {
    const LlamaOptions& options = llama.options();
    if (tokens.dim() != 2 || tokens.size(0) != options.batch || tokens.size(1) < 1 ||
        tokens.sizes() != positions.sizes() || tokens.scalar_type() != at::kLong ||
        positions.scalar_type() != at::kLong)
      throw UserError("[llama] expected tokens and positions of int64 for " +
                      std::to_string(options.batch) + " sequences, received sizes " +
                      c10::str(tokens.sizes(), " and ", positions.sizes()));
    const torch::NoGradGuard no_grad;
    llama.slots(positions);  // refuses all before it writes some
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < tokens.size(1); first += options.most_tokens) {
      const at::Tensor own = positions.slice(1, first, first + options.most_tokens).contiguous();
      parts.push_back(program(tokens.slice(1, first, first + options.most_tokens).contiguous(), own,
                              llama.slots(own)));
    }
    return options.all_logits ? torch::cat(parts, 1) : parts.back();
  };
}

}  // namespace

LlamaStep Llama::eager() const {
  return step_of(*this, [decoder = decoder()](const at::Tensor& tokens, const at::Tensor& positions,
                                              const at::Tensor& slots) mutable {
    return decoder->forward(tokens, positions, slots);
  });
}

LlamaStep Llama::captured() const { return step_of(*this, family()); }

LlamaStep Llama::compiled(flashlight::CompileSettings settings) const {
  return step_of(*this, flashlight::compile(family(), std::move(settings)));
}

}  // namespace zoo
