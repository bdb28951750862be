// Scopes of flashlight/c.h. Each belongs to the thread that began it, and ends before those that
// began before it.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "composit/ir/error.h"
#include "flashlight/c.h"
#include "flashlight/c/call.h"
#include "flashlight/c/handles.h"
#include "flashlight/c/objects.h"
#include "flashlight/open_capture.h"
#include "tracer/trace_scope.h"

namespace flashlight::c {
namespace {

using composit::InputKind;
using composit::UserError;

struct Scope {
  static constexpr const char* kName = "a scope";
  explicit Scope(TraceOptions options) : open(std::in_place, std::move(options)) {}

  std::optional<OpenCapture> open;
  const std::thread::id thread = std::this_thread::get_id();
};

struct OpenScope {
  flashlight_scope handle;
  std::shared_ptr<Scope> scope;
};

// The open scopes of a thread. What a thread leaves open when it ends, ends with it.
class ScopesHere {
 public:
  ~ScopesHere() {
    while (!open_.empty()) {
      try {
        handles().take<Scope>(open_.back().handle);
      } catch (const std::exception&) {  // there is nobody to tell
      }
      drop_last();
    }
  }

  bool empty() const { return open_.empty(); }
  void add(OpenScope scope) { open_.push_back(std::move(scope)); }
  bool is_last(const Scope& scope) const {
    return !open_.empty() && open_.back().scope.get() == &scope;
  }
  // The scope ends where its capture ends, or here.
  std::shared_ptr<Scope> drop_last() {
    std::shared_ptr<Scope> scope = std::move(open_.back().scope);
    open_.pop_back();
    if (open_.empty()) modules_ = 0;
    return scope;
  }

  size_t& modules() { return modules_; }

 private:
  std::vector<OpenScope> open_;
  size_t modules_ = 0;  // entered and not left
};

ScopesHere& scopes_here() {
  thread_local ScopesHere scopes;
  return scopes;
}

std::shared_ptr<Scope> scope_of_thread(flashlight_scope handle) {
  std::shared_ptr<Scope> scope = handles().find<Scope>(handle);
  if (scope->thread != std::this_thread::get_id())
    throw UserError(
        "expected a scope of this thread, received one that another thread began: only that one "
        "can use it");
  return scope;
}

// Its handle is none any more.
std::shared_ptr<Scope> end_of(flashlight_scope handle) {
  const std::shared_ptr<Scope> scope = scope_of_thread(handle);
  if (!scopes_here().is_last(*scope))
    throw UserError(
        "expected the scope that began last on this thread, received one with an open scope "
        "inside: end that one first");
  handles().take<Scope>(handle);
  return scopes_here().drop_last();
}

TraceOptions trace_options(const flashlight_scope_options* given) {
  constexpr size_t kFirst = 32;
  const auto options = options_from(given, kFirst, "flashlight_scope_options");
  TraceOptions trace;
  trace.strict = flag_from(options.strict, "strict");
  trace.source_lines = flag_from(options.source_lines, "source_lines");
  if (options.line != nullptr)
    trace.host_line = [line = options.line, context = options.context] {
      const char* text = line(context);
      return std::string(text == nullptr ? "" : text);
    };
  return trace;
}

std::string name_or_none(const char* name) { return name == nullptr ? "" : name; }

void add_state(flashlight_scope handle, flashlight_tensor tensor, const char* name,
               InputKind kind) {
  const auto scope = scope_of_thread(handle);
  const std::string text = text_from(name, "name");
  scope->open->state(tensor_from(tensor, "'" + text + "'"), text, kind);
}

void expect_scope_here() {
  if (scopes_here().empty())
    throw UserError("expected an open scope on this thread, there is none");
}

}  // namespace
}  // namespace flashlight::c

using namespace flashlight::c;

flashlight_status flashlight_scope_begin(const flashlight_scope_options* options,
                                         flashlight_scope* scope) {
  return guarded(__func__, [&] {
    expect_place(scope, "scope");
    auto made = std::make_shared<Scope>(trace_options(options));
    // After the scope's own data of the thread, which then outlives it when the thread ends.
    ScopesHere& here = scopes_here();
    const auto handle = handles().add<flashlight_scope>(made);
    here.add({handle, std::move(made)});
    *scope = handle;
  });
}

flashlight_status flashlight_scope_input(flashlight_scope scope, flashlight_tensor tensor,
                                         const char* name) {
  return guarded(__func__, [&] {
    const std::string text = name_or_none(name);
    const auto known = scope_of_thread(scope);
    known->open->input(tensor_from(tensor, "an input '" + text + "'"), text);
  });
}

flashlight_status flashlight_scope_parameter(flashlight_scope scope, flashlight_tensor tensor,
                                             const char* name) {
  return guarded(__func__, [&] { add_state(scope, tensor, name, InputKind::parameter); });
}

flashlight_status flashlight_scope_buffer(flashlight_scope scope, flashlight_tensor tensor,
                                          const char* name) {
  return guarded(__func__, [&] { add_state(scope, tensor, name, InputKind::buffer); });
}

flashlight_status flashlight_scope_output(flashlight_scope scope, flashlight_tensor tensor,
                                          const char* name) {
  return guarded(__func__, [&] {
    const std::string text = name_or_none(name);
    const auto known = scope_of_thread(scope);
    known->open->output(tensor_from(tensor, "an output '" + text + "'"), text);
  });
}

flashlight_status flashlight_enter_module(const char* path) {
  return guarded(__func__, [&] {
    const std::string text = text_from(path, "path");
    expect_scope_here();
    flashlight::enter_module(text);
    ++scopes_here().modules();
  });
}

flashlight_status flashlight_leave_module(void) {
  return guarded(__func__, [&] {
    expect_scope_here();
    if (scopes_here().modules() == 0)
      throw composit::UserError("expected a module that was entered, there is none");
    flashlight::leave_module();
    --scopes_here().modules();
  });
}

flashlight_status flashlight_scope_end(flashlight_scope scope, flashlight_capture* capture) {
  return guarded(__func__, [&] {
    expect_place(capture, "capture");
    const auto ended = end_of(scope);
    *capture =
        handles().add<flashlight_capture>(std::make_shared<Captured>(Captured{ended->open->end()}));
  });
}

flashlight_status flashlight_scope_check(flashlight_scope scope, flashlight_capture capture,
                                         int32_t* same, char** report) {
  return guarded(__func__, [&] {
    expect_place(same, "answer");
    const auto known = handles().find<Captured>(capture);
    const auto ended = end_of(scope);
    const flashlight::CheckReport found = ended->open->check(known->capture);
    if (report != nullptr) store_text(str(found), report);
    *same = found.ok() ? 1 : 0;
  });
}

flashlight_status flashlight_scope_cancel(flashlight_scope scope) {
  return guarded(__func__, [&] {
    if (scope == nullptr || handles().is_gone(scope)) return;
    end_of(scope);
  });
}
