#include "tracer/trace_scope.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "composit/ir/error.h"
#include "tracer/dispatch_key.h"
#include "tracer/operator_watch.h"
#include "tracer/storage_lock.h"

namespace flashlight {
namespace {

using tracer::kBelowTraceKey;
using tracer::kTraceKey;
using tracer::Recorder;

constexpr std::string_view kScopeInfoName = "FLASHLIGHT_TRACE_SCOPE";
const c10::DebugInfoKind kScopeInfo(&kScopeInfoName);

// The recorders of all scopes around the running code. LibTorch carries it to its pool threads
// together with the dispatch key.
struct ScopeInfo : c10::DebugInfoBase {
  std::vector<std::shared_ptr<Recorder>> recorders;
  tracer::StorageLocks locks;  // of those that are strict
};

const ScopeInfo* scopes_here() {
  return static_cast<const ScopeInfo*>(c10::ThreadLocalDebugInfo::get(kScopeInfo));
}

// Set while an operator runs that overwrites what autograd may need: of the calls it makes in turn,
// only copies are recorded, since autograd keeps one and reads it in the backward pass.
thread_local bool only_copies = false;
struct OnlyCopies {
  explicit OnlyCopies(bool now) : before(std::exchange(only_copies, now)) {}
  ~OnlyCopies() { only_copies = before; }
  const bool before;
};

// What a recorder that fails does to the program is its own choice (TraceOptions::on_error).
template <class Call>
void ask(Recorder& recorder, Call call) {
  if (!recorder.tolerant()) return call();
  try {
    call();
  } catch (const c10::Error& error) {
    recorder.abandon(error.what_without_backtrace());
  } catch (const std::exception& error) {
    recorder.abandon(error.what());
  }
}

thread_local tracer::OperatorWatch* watch_here = nullptr;

// Calls the kernels below the tracer. What they call in turn is recorded for composite operators
// alone.
void call_below(const tracer::OpInfo& info, c10::DispatchKeySet keys, torch::jit::Stack* stack,
                bool autograd_copies) {
  if (info.composite) return info.handle.redispatchBoxed(keys & kBelowTraceKey, stack);
  const tracer::InsideOperator inside;
  if (autograd_copies) {
    const OnlyCopies copies(true);
    return info.handle.redispatchBoxed(keys & kBelowTraceKey, stack);
  }
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  info.handle.redispatchBoxed(keys & kBelowTraceKey, stack);
}

void call_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack, const ScopeInfo& scopes) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const tracer::OpInfo& info = tracer::op_info(op).of_call(arguments);
  c10::SmallVector<Recorder::Pending, 1> pending;
  const bool strict = !scopes.locks.empty();
  std::optional<tracer::OpenStorages> open;
  if (strict) open.emplace(scopes.locks, info, arguments);
  {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
    for (const auto& recorder : scopes.recorders)
      ask(*recorder,
          [&, &started = pending.emplace_back()] { started = recorder->before(info, arguments); });
  }
  if (info.composite) open.reset();  // its kernel is to call operators, like the program
  const size_t below = stack->size() - info.number_of_arguments();
  const bool autograd_copies =
      std::any_of(pending.begin(), pending.end(), [](const auto& p) { return p.requires_grad; });
  try {
    call_below(info, keys, stack, autograd_copies);
  } catch (...) {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
    for (size_t i = 0; i < pending.size(); ++i)
      ask(*scopes.recorders[i], [&] { scopes.recorders[i]->failed(pending[i]); });
    if (strict) tracer::blame_kernel(info);
    throw;
  }
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  const auto results = torch::jit::last(*stack, stack->size() - below);
  for (size_t i = 0; i < pending.size(); ++i)
    ask(*scopes.recorders[i], [&] { scopes.recorders[i]->after(pending[i], results); });
  if (!strict) return;
  if (!open) open.emplace(scopes.locks, info, c10::ArrayRef<c10::IValue>());
  open->add_results(results);
}

// Transforms of torch.func that are active, and tensors of theirs, which may outlive them; the
// older vmap, which autograd uses for batches of gradients.
constexpr c10::DispatchKeySet kTransformKeys({c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                                              c10::DispatchKey::FuncTorchDynamicLayerBackMode,
                                              c10::DispatchKey::FuncTorchGradWrapper,
                                              c10::DispatchKey::FuncTorchBatched,
                                              c10::DispatchKey::Batched});

// By FakeTensors torch.compile and torch.cond look ahead; they have sizes and compute nothing.
bool takes_fake_tensors(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto is_fake = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() && !tensor.is_meta() &&
           tensor.storage().device().is_meta();
  };
  const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
  return std::any_of(arguments.begin(), arguments.end(), [&](const c10::IValue& argument) {
    const auto tensors = tracer::tensors_of(argument);
    return std::any_of(tensors.begin(), tensors.end(), is_fake);
  });
}

void record_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  // A transform calls operators on what is inside of its tensors, and the tracer's key stays set
  // for them: the calls that no transform is around any more are recorded.
  if (keys.has_any(kTransformKeys)) return op.redispatchBoxed(keys & kBelowTraceKey, stack);
  const bool looks_ahead = keys.has(c10::DispatchKey::Python) && takes_fake_tensors(op, *stack);
  if (looks_ahead || (only_copies && !tracer::op_info(op).clone)) {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
    return op.redispatchBoxed(keys & kBelowTraceKey, stack);
  }
  // Autocast calls the operator again on casted arguments, without its own key: that call is
  // recorded.
  if (keys.has_any(c10::autocast_dispatch_keyset))
    return op.redispatchBoxed(keys & kBelowTraceKey, stack);
  if (watch_here != nullptr) {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    watch_here->before(tracer::op_info(op).of_call(arguments), arguments);
  }
  const ScopeInfo* scopes = scopes_here();
  if (scopes == nullptr)
    op.redispatchBoxed(keys & kBelowTraceKey, stack);
  else
    call_recorded(op, keys, stack, *scopes);
}

// One registration per process, at the first scope: at load time an error could not be caught.
void register_fallback() {
  static const auto library = [] {
    try {
      auto fresh = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kTraceKey, __FILE__,
                                                    __LINE__);
      fresh->fallback(torch::CppFunction::makeFromBoxedFunction<&record_operator>());
      return fresh;
    } catch (const c10::Error& error) {
      throw composit::UserError(
          "[trace] another library has registered a fallback on the dispatch key " +
          std::string(c10::toString(kTraceKey)) + ": " + error.what_without_backtrace());
    }
  }();
  (void)library;
}

std::shared_ptr<ScopeInfo> with_outer_scopes(const std::shared_ptr<Recorder>& recorder,
                                             const std::shared_ptr<tracer::StorageLock>& lock) {
  auto info = std::make_shared<ScopeInfo>();
  if (const ScopeInfo* outer = scopes_here()) {
    info->recorders = outer->recorders;
    info->locks = outer->locks;
  }
  info->recorders.push_back(recorder);
  if (lock != nullptr) info->locks.push_back(lock);
  return info;
}

tracer::RecorderOptions recorder_options(const TraceOptions& options) {
  tracer::RecorderOptions recorder;
  recorder.chains = options.chains;
  recorder.source_lines = options.source_lines;
  recorder.excerpt = options.excerpt;
  recorder.on_error = options.on_error;
  recorder.host_line = options.host_line;
  return recorder;
}

// For what the tracer reads itself; nothing where no scope is strict.
template <class... Which>
std::optional<tracer::OpenStorages> open_storages(const Which&... which) {
  const ScopeInfo* scopes = scopes_here();
  if (scopes == nullptr || scopes->locks.empty()) return std::nullopt;
  return std::optional<tracer::OpenStorages>(std::in_place, scopes->locks, which...);
}

}  // namespace

namespace tracer {

WatchOperators::WatchOperators(OperatorWatch& watch) : key_((register_fallback(), kTraceKey)) {
  watch_here = &watch;
}

WatchOperators::~WatchOperators() { watch_here = nullptr; }

}  // namespace tracer

struct TraceScope::Guards {
  Guards(const std::shared_ptr<Recorder>& recorder,
         const std::shared_ptr<tracer::StorageLock>& lock,
         const std::shared_ptr<tracer::AllocationWatch>& watch)
      : allocations(c10::DebugInfoKind::PROFILER_STATE, watch),
        scope(kScopeInfo, with_outer_scopes(recorder, lock)),
        key(kTraceKey) {}
  c10::DebugInfoGuard allocations;
  c10::DebugInfoGuard scope;
  c10::impl::IncludeDispatchKeyGuard key;
};

TraceScope::TraceScope(const TraceOptions& options) {
  register_fallback();
  // Casts of weights that were cached before the scope would be constants.
  at::autocast::clear_cache();
  auto watch = std::make_shared<tracer::AllocationWatch>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE));
  recorder_ = std::make_shared<Recorder>(recorder_options(options), watch);
  if (options.strict) lock_ = std::make_shared<tracer::StorageLock>();
  guards_ = std::make_unique<Guards>(recorder_, lock_, watch);
}

TraceScope::~TraceScope() { unlock(); }

// Threads of the pool may still know the lock.
void TraceScope::unlock() {
  if (lock_ != nullptr) lock_->release();
}

void TraceScope::name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind) {
  const auto open = open_storages(tensor, name);
  recorder_->add_input(tensor, name, kind);
}

composit::LazyTensor TraceScope::lazy(const at::Tensor& tensor) {
  const auto open = open_storages();
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  return recorder_->lazy(tensor);
}

void TraceScope::stop() {
  unlock();
  recorder_->forget_generators();
  guards_.reset();
}

std::unique_ptr<tracer::Recording> TraceScope::finish(const std::vector<at::Tensor>& outputs) {
  auto open = open_storages();
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  auto recording = recorder_->finish(outputs);
  unlock();
  open.reset();
  guards_.reset();
  return recording;
}

bool is_recording() {
  return scopes_here() != nullptr && c10::impl::tls_is_dispatch_key_included(kTraceKey) &&
         !c10::impl::tls_is_dispatch_key_excluded(kTraceKey);
}

void enter_module(const std::string& path) {
  if (const ScopeInfo* scopes = scopes_here())
    for (const auto& recorder : scopes->recorders) recorder->enter_module(path);
}

void leave_module() {
  if (const ScopeInfo* scopes = scopes_here())
    for (const auto& recorder : scopes->recorders) recorder->leave_module();
}

void watch_generator(const at::Generator& generator) {
  if (const ScopeInfo* scopes = scopes_here())
    for (const auto& recorder : scopes->recorders) recorder->watch(generator);
}

}  // namespace flashlight
