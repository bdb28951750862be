#include "tracer/trace_scope.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "composit/ir/error.h"
#include "tracer/dispatch_key.h"
#include "tracer/distributed.h"
#include "tracer/host_memory.h"
#include "tracer/operator_watch.h"
#include "tracer/recorder.h"
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

// Set while a call is on its way to a mode, that is, inside of no operator that is recorded in one
// piece.
thread_local bool modes_are_seen = false;
thread_local size_t modes_entered = 0;
struct ModesAreSeen {
  explicit ModesAreSeen(bool now) : before(std::exchange(modes_are_seen, now)) {}
  ~ModesAreSeen() { modes_are_seen = before; }
  const bool before;
};

// A recorder that fails decides itself what happens to the program (TraceOptions::on_error).
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
  const ModesAreSeen unseen_modes(false);
  if (autograd_copies) {
    const OnlyCopies copies(true);
    return info.handle.redispatchBoxed(keys & kBelowTraceKey, stack);
  }
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  info.handle.redispatchBoxed(keys & kBelowTraceKey, stack);
}

std::vector<std::shared_ptr<tracer::ForeignThreads>> foreign_threads(const ScopeInfo& scopes) {
  std::vector<std::shared_ptr<tracer::ForeignThreads>> all;
  for (const auto& recorder : scopes.recorders) all.push_back(recorder->foreign_threads());
  return all;
}

// A user's composite kernel that autograd takes part in is recorded as what it calls. Were it to
// look at elements itself, they would be constants of the capture: its memory is locked meanwhile.
// Parameters are not, other threads may be using them.
class LockedKernel {
 public:
  LockedKernel(const ScopeInfo& scopes, const tracer::OpInfo& info,
               c10::ArrayRef<c10::IValue> arguments)
      : info_(info),
        lock_(std::make_shared<tracer::StorageLock>([scopes](const at::Tensor& tensor) {
          const auto& all = scopes.recorders;
          return std::any_of(all.begin(), all.end(),
                             [&](const auto& recorder) { return recorder->is_own(tensor); });
        })) {
    auto locked = std::make_shared<ScopeInfo>(scopes);
    locked->locks.push_back(lock_);
    { const tracer::OpenStorages arguments_locked(locked->locks, info, arguments); }
    scope_.emplace(kScopeInfo, std::move(locked));
  }
  ~LockedKernel() { lock_->release(); }
  LockedKernel(const LockedKernel&) = delete;
  LockedKernel& operator=(const LockedKernel&) = delete;

  // In a catch block.
  void explain() const {
    try {
      throw;
    } catch (const std::exception& error) {
      if (!tracer::refused_access(error)) return;
    }
    throw composit::UserError(
        "[trace] the kernel of " + info_.name.str() +
        " accesses elements without an operator, and is registered for no backend, so that "
        "autograd looks into it: register it for CPU, or call it under no_grad");
  }

 private:
  const tracer::OpInfo& info_;
  const std::shared_ptr<tracer::StorageLock> lock_;
  std::optional<c10::DebugInfoGuard> scope_;
};

void call_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack, const ScopeInfo& scopes) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const tracer::OpInfo& info = tracer::op_info(op).of_call(arguments);
  c10::SmallVector<Recorder::Pending, 1> pending;
  const auto touched = tracer::HostMemory::before_operator(info, arguments);
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
  std::optional<tracer::ForeignCall> elsewhere;
  if (tracer::ForeignCall::is_one(scopes.recorders.size()))
    elsewhere.emplace(info, arguments, foreign_threads(scopes));
  const size_t below = stack->size() - info.number_of_arguments();
  std::optional<LockedKernel> locked;
  if (info.composite && info.foreign && !strict) locked.emplace(scopes, info, arguments);
  const bool autograd_copies =
      std::any_of(pending.begin(), pending.end(), [](const auto& p) { return p.requires_grad; });
  try {
    call_below(info, keys, stack, autograd_copies);
    if (info.asynchronous) {
      const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
      tracer::wait_for_work(info, torch::jit::last(*stack, stack->size() - below));
    }
  } catch (...) {
    const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
    for (size_t i = 0; i < pending.size(); ++i)
      ask(*scopes.recorders[i], [&] { scopes.recorders[i]->failed(pending[i]); });
    if (strict) tracer::blame_kernel(info);
    if (locked) locked->explain();
    throw;
  }
  tracer::HostMemory::after_operator(touched);
  locked.reset();
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  const auto results = torch::jit::last(*stack, stack->size() - below);
  if (elsewhere) elsewhere->finish(results);
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

// True if a mode of the program (TorchDispatchMode) handles the operator; the operators that the
// mode calls are recorded instead.
bool goes_to_a_mode(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Python) && scopes_here() != nullptr &&
         c10::impl::TorchDispatchModeTLS::any_modes_set(/*skip_infra_modes=*/true);
}

void call_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const size_t before = modes_entered;
  {
    const ModesAreSeen seen(true);
    op.redispatchBoxed(keys & kBelowTraceKey, stack);
  }
  if (modes_entered != before) return;
  for (const auto& recorder : scopes_here()->recorders)
    ask(*recorder, [&] {
      throw composit::UserError(
          "[trace] " + tracer::op_info(op).name.str() +
          " went to a mode (TorchDispatchMode), and what it does instead is not seen here: enter "
          "modes by a with block, in programs that flashlight.trace captures");
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
  if (goes_to_a_mode(keys)) return call_mode(op, keys, stack);
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
  recorder.keep_originals = options.keep_originals;
  recorder.follow_numbers = options.follow_numbers;
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

bool belongs_to_a_scope() { return scopes_here() != nullptr; }

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
        threads(recorder->foreign_threads()),
        key(kTraceKey) {}
  c10::DebugInfoGuard allocations;
  c10::DebugInfoGuard scope;
  tracer::WatchThreads threads;
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

InsideMode::InsideMode() {
  ++modes_entered;
  if (!modes_are_seen) return;
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  seen_.emplace(keys.included_, keys.excluded_.remove(kTraceKey));
}

bool is_recording() {
  return scopes_here() != nullptr && c10::impl::tls_is_dispatch_key_included(kTraceKey) &&
         !c10::impl::tls_is_dispatch_key_excluded(kTraceKey);
}

tracer::Recorder* innermost_recorder() {
  const ScopeInfo* scopes = scopes_here();
  return scopes == nullptr ? nullptr : scopes->recorders.back().get();
}

std::optional<std::pair<uintptr_t, tracer::ValueId>> recorded_value(const at::Tensor& tensor) {
  if (!is_recording() || only_copies) return std::nullopt;
  const auto open = open_storages();
  const c10::impl::ExcludeDispatchKeyGuard unseen(kTraceKey);
  Recorder& recorder = *scopes_here()->recorders.back();
  const auto value = recorder.held_value(tensor);
  if (!value) return std::nullopt;
  return std::pair(reinterpret_cast<uintptr_t>(&recorder), *value);
}

struct Unrecorded::Guards {
  c10::impl::ExcludeDispatchKeyGuard key{kTraceKey};
  std::optional<tracer::OpenStorages> open = open_storages();
};

Unrecorded::Unrecorded() : guards_(std::make_unique<Guards>()) {}
Unrecorded::~Unrecorded() = default;

void remark(const std::string& text) {
  if (const ScopeInfo* scopes = scopes_here())
    for (const auto& recorder : scopes->recorders) recorder->remark(text);
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
