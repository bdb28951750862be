#include "frontends/preload/session.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>
#include <unistd.h>

#include <cstdio>

#include "composit/ir/error.h"
#include "tracer/allocation_watch.h"
#include "tracer/recorder.h"

namespace flashlight::preload {
namespace {

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage()
             ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
             : nullptr;
}

// A backward pass restores the thread's state when it ends: no scope can begin or end inside.
bool in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

// The arguments of this process, as text.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == 0) text.pop_back();
  for (char& c : text)
    if (c == 0 || c == '\n') c = ' ';
  return text;
}

std::string step_name(int64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%03lld", static_cast<long long>(number));
  return name;
}

}  // namespace

// The allocator knows which memory a scope has made since it is told from the begin; told in the
// middle of a program it warns of memory it has not heard of, which would be an output.
struct Session::Watching {
  explicit Watching(Session& session)
      : allocations(c10::DebugInfoKind::PROFILER_STATE,
                    std::make_shared<tracer::AllocationWatch>(
                        c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE))),
        operators(std::in_place, session) {}
  c10::DebugInfoGuard allocations;
  std::optional<tracer::WatchOperators> operators;
};

Session::Session(Settings settings, const std::string& torch)
    : settings_(std::move(settings)), cut_(settings_.cut) {
  folder_ = settings_.folder / ("process_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder_);
  index_.open(folder_ / "index.txt");
  if (!index_)
    throw composit::UserError("[capture] cannot write " + (folder_ / "index.txt").string());
  write_line("process " + std::to_string(getpid()) + ", LibTorch " + torch + ": " + command_line());
  watching_ = std::make_unique<Watching>(*this);
  if (cut_ == Cut::run) begin();
}

Session::~Session() = default;

void Session::write_line(const std::string& line) { index_ << line << std::endl; }

void Session::use_host(HostLine line) {
  host_ = true;
  host_line_ = line;
}

// ---- steps --------------------------------------------------------------------------------------

void Session::begin() {
  running_ = true;
  updated_ = updating_ = false;
  first_ = nullptr;
  if (settings_.step && *settings_.step != number_) return;
  step_.emplace(settings_.lines, cut_ == Cut::run, host_line_, folder_ / step_name(number_));
}

void Session::finish(const std::optional<std::vector<at::Tensor>>& results,
                     const std::string& note) {
  running_ = false;
  if (step_) {
    if (updating_) step_->extend();
    write_line(step_name(number_) + "  " + step_->finish(results, kept_, before_) + note);
    before_ = step_->captured();
    step_.reset();
    ++captured_;
  }
  ++number_;
  const bool enough = settings_.step ? captured_ > 0 : captured_ == settings_.steps;
  if (enough) stop();
}

void Session::stop() {
  if (done()) return;
  watching_.reset();
  write_line("captured " + std::to_string(captured_) + " of " + std::to_string(number_) +
             " steps, cut by " + flashlight::preload::name(cut_) +
             (settings_.step || (settings_.steps > 0 && captured_ == settings_.steps)
                  ? "; the rest ran without being looked at"
                  : ""));
  parameters_.clear();
}

void Session::end(const std::string& why) {
  if (done()) return;
  const bool whole = why.empty() && (cut_ != Cut::optimizer || updated_);
  if (running_)
    finish(std::nullopt,
           whole ? "" : "; unfinished: " + (why.empty() ? "no parameter was written" : why));
  stop();
}

// The recording stays where it is: nothing of it is the child's.
void Session::forget() {
  running_ = false;
  watching_.reset();
}

void Session::choose_cut(bool gradients) {
  if (cut_ == Cut::automatic) cut_ = gradients ? Cut::optimizer : Cut::forward;
}

// ---- by calls of modules ------------------------------------------------------------------------

bool Session::forward_begins(bool training) {
  if (done() || cut_ == Cut::run || in_backward()) return step_.has_value();
  const bool gradients = at::GradMode::is_enabled();
  choose_cut(gradients && training);
  if (cut_ == Cut::forward) {
    watching_->operators.reset();  // calls say it all
    begin();
  } else if (gradients && (!running_ || updated_)) {
    if (running_) finish(std::nullopt);
    if (!done()) begin();
  }
  return step_.has_value();
}

void Session::name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind) {
  if (step_) step_->name(tensor, name, kind);
}

void Session::forward_ends(const std::optional<std::vector<at::Tensor>>& results) {
  if (!done() && cut_ == Cut::forward && running_) finish(results);
}

// ---- by operators -------------------------------------------------------------------------------

void Session::note(const tracer::OpInfo& info, size_t argument, const at::Tensor& tensor,
                   Use& use) {
  if (!tensor.defined()) return;
  const c10::StorageImpl* storage = storage_of(tensor);
  if (storage == nullptr) return;
  if (tensor.requires_grad() && tensor.is_leaf()) {
    const auto [known, fresh] = parameters_.try_emplace(
        storage, tensor.unsafeGetTensorImpl()->unsafe_storage().getWeakStorageImpl());
    if (fresh && cut_ == Cut::run) kept_.push_back(tensor);
    if (!info.writes[argument] && use.read == nullptr) use.read = storage;
  }
  if (info.writes[argument] && parameters_.count(storage) > 0) use.writes = true;
}

Session::Use Session::parameters_of(const tracer::OpInfo& info,
                                    c10::ArrayRef<c10::IValue> arguments) {
  Use use;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i] == tracer::ArgumentKind::other) continue;
    if (arguments[i].isTensor())
      note(info, i, arguments[i].toTensor(), use);
    else
      for (const at::Tensor& tensor : tracer::tensors_of(arguments[i])) note(info, i, tensor, use);
  }
  return use;
}

void Session::before(const tracer::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  if (info.metadata || in_backward()) return;
  if (std::exchange(updating_, false) && step_) step_->extend();
  const Use use = parameters_of(info, arguments);
  if (use.read != nullptr && !host_) choose_cut(at::GradMode::is_enabled());
  if (cut_ == Cut::optimizer)
    cut_by_optimizer(use, !info.detach && !info.value_query);
  else if (cut_ == Cut::forward && !host_ && use.read != nullptr)
    cut_by_forward(use);
}

void Session::cut_by_optimizer(const Use& use, bool content) {
  if (use.read != nullptr && content && at::GradMode::is_enabled() && (!running_ || updated_)) {
    if (running_) finish(std::nullopt);
    if (!done()) begin();
  }
  if (running_ && use.writes) updated_ = updating_ = true;
}

void Session::cut_by_forward(const Use& use) {
  if (running_ && use.read != first_) return;
  if (running_) finish(std::nullopt);
  if (done()) return;
  begin();
  first_ = use.read;
}

}  // namespace flashlight::preload
