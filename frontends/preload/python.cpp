// Calls of modules in a Python process. Python's C interface is looked up when it is needed, since
// most programs have none; what is used of it is stable.
//
// `torch.nn.Module.__call__` becomes a function of C, not of Python: it has no line in tracebacks.
#include <ATen/core/Tensor.h>
#include <c10/core/impl/PyInterpreter.h>  // declares PyObject
#include <dlfcn.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontends/preload/library.h"
#include "frontends/preload/session.h"
#include "tracer/dispatch_key.h"
#include "tracer/trace_scope.h"

namespace flashlight::preload {
namespace {

// Copied from CPython's Include/methodobject.h.
struct PyMethodDef {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject*, PyObject*);
  int flags;
  const char* documentation;
};
constexpr int kVarargsKeywords = 1 | 2;
constexpr int kFileInput = 257;

template <class Function>
Function* python(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  decltype(python<int()>("")) is_initialized = python<int()>("Py_IsInitialized");
  PyObject* (*dict)() = python<PyObject*()>("PyDict_New");
  int (*set_item)(PyObject*, const char*, PyObject*) =
      python<int(PyObject*, const char*, PyObject*)>("PyDict_SetItemString");
  PyObject* (*builtins)() = python<PyObject*()>("PyEval_GetBuiltins");
  PyObject* (*text)(const char*) = python<PyObject*(const char*)>("PyUnicode_FromString");
  PyObject* (*run)(const char*, int, PyObject*, PyObject*) =
      python<PyObject*(const char*, int, PyObject*, PyObject*)>("PyRun_String");
  void (*print_error)() = python<void()>("PyErr_Print");
  void (*fetch)(PyObject**, PyObject**,
                PyObject**) = python<void(PyObject**, PyObject**, PyObject**)>("PyErr_Fetch");
  void (*restore)(PyObject*, PyObject*,
                  PyObject*) = python<void(PyObject*, PyObject*, PyObject*)>("PyErr_Restore");
  int (*ensure)() = python<int()>("PyGILState_Ensure");
  void (*release)(int) = python<void(int)>("PyGILState_Release");
  PyObject* (*descriptor)(PyObject*, PyMethodDef*) =
      python<PyObject*(PyObject*, PyMethodDef*)>("PyDescr_NewMethod");
  PyObject* (*attribute)(PyObject*, const char*) =
      python<PyObject*(PyObject*, const char*)>("PyObject_GetAttrString");
  int (*set_attribute)(PyObject*, const char*, PyObject*) =
      python<int(PyObject*, const char*, PyObject*)>("PyObject_SetAttrString");
  PyObject* (*call)(PyObject*, PyObject*, PyObject*) =
      python<PyObject*(PyObject*, PyObject*, PyObject*)>("PyObject_Call");
  PyObject* (*build)(const char*, ...) = python<PyObject*(const char*, ...)>("Py_BuildValue");
  const char* (*utf8)(PyObject*) = python<const char*(PyObject*)>("PyUnicode_AsUTF8");
  PyObject* (*frame)() = python<PyObject*()>("PyEval_GetFrame");
  PyObject* (*back)(PyObject*) = python<PyObject*(PyObject*)>("PyFrame_GetBack");
  PyObject* (*code)(PyObject*) = python<PyObject*(PyObject*)>("PyFrame_GetCode");
  int (*line)(PyObject*) = python<int(PyObject*)>("PyFrame_GetLineNumber");
  void (*drop)(PyObject*) = python<void(PyObject*)>("Py_DecRef");
  void (*keep)(PyObject*) = python<void(PyObject*)>("Py_IncRef");
};

const Python& py() {
  static const Python functions;
  return functions;
}

PyObject *on_begin = nullptr, *on_end = nullptr;
std::string folder_of_torch;
int depth = 0;
std::unordered_map<PyObject*, std::string> modules;  // inside of the one called from outside
std::vector<at::Tensor> results;

// A mistake in hooks.py must not become one of the program.
void tell(PyObject* hook, PyObject* arguments) {
  PyObject* result = arguments == nullptr ? nullptr : py().call(hook, arguments, nullptr);
  if (result == nullptr)
    py().print_error();
  else
    py().drop(result);
  if (arguments != nullptr) py().drop(arguments);
}

std::string text_of(PyObject* object, const char* attribute) {
  PyObject* value = py().attribute(object, attribute);
  const char* text = value == nullptr ? nullptr : py().utf8(value);
  const std::string copy = text == nullptr ? "" : text;
  if (value != nullptr) py().drop(value);
  return copy;
}

// The innermost line outside of LibTorch's Python.
std::string line_here() {
  for (PyObject* frame = py().frame(); frame != nullptr;) {
    PyObject* code = py().code(frame);
    const std::string file = text_of(code, "co_filename");
    const std::string function = text_of(code, "co_name");
    py().drop(code);
    if (file.rfind(folder_of_torch, 0) != 0)
      return file.substr(file.rfind('/') + 1) + ':' + std::to_string(py().line(frame)) + " in " +
             function;
    frame = py().back(frame);
    if (frame != nullptr) py().drop(frame);  // the one below holds it
  }
  return "";
}

// Operators let go of the interpreter's lock while they run.
std::string host_line() {
  const int state = py().ensure();
  PyObject *type, *value, *trace;
  py().fetch(&type, &value, &trace);
  std::string line = line_here();
  py().restore(type, value, trace);
  py().release(state);
  return line;
}

// Around a module inside of another one.
class InModule {
 public:
  explicit InModule(PyObject* module) {
    const auto found = modules.find(module);
    if (found == modules.end()) return;
    inside_ = true;
    enter_module(found->second);
  }
  ~InModule() {
    if (inside_) leave_module();
  }
  InModule(const InModule&) = delete;

 private:
  bool inside_ = false;
};

// `Module.__call__`
PyObject* call_module(PyObject* module, PyObject* args, PyObject* kwargs) {
  PyObject* implementation = py().attribute(module, "_wrapped_call_impl");
  if (implementation == nullptr) return nullptr;
  const bool seen = session_here() != nullptr;
  const bool outermost = seen && depth == 0;
  if (seen) ++depth;
  if (outermost) {
    PyObject* none = kwargs == nullptr ? py().build("") : nullptr;
    tell(on_begin, py().build("(OOO)", module, args, kwargs == nullptr ? none : kwargs));
    if (none != nullptr) py().drop(none);
  }
  PyObject* result = nullptr;
  {
    std::optional<InModule> inside;
    if (seen) inside.emplace(module);
    result = py().call(implementation, args, kwargs);
  }
  py().drop(implementation);
  if (seen) --depth;
  if (!outermost) return result;
  modules.clear();
  PyObject *type, *value, *trace;
  py().fetch(&type, &value, &trace);
  tell(on_end, result == nullptr ? py().build("(si)", "", 0) : py().build("(Oi)", result, 1));
  py().restore(type, value, trace);
  return result;
}

PyMethodDef call_definition = {"__call__", call_module, kVarargsKeywords, nullptr};

at::Tensor tensor_at(void* implementation) {
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
      static_cast<c10::TensorImpl*>(implementation)));
}

constexpr const char* kHooks =
#include <flashlight_preload_hooks.inc>
    ;

}  // namespace

void install_python_hooks(const char* library) {
  if (py().is_initialized == nullptr || py().is_initialized() == 0) return;
  const int state = py().ensure();
  PyObject* names = py().dict();
  PyObject* path = py().text(library);
  py().set_item(names, "LIBRARY", path);
  py().set_item(names, "__builtins__", py().builtins());
  PyObject* result = py().run(kHooks, kFileInput, names, names);
  if (result == nullptr)
    py().print_error();
  else
    py().drop(result);
  py().drop(path);
  py().release(state);
}

}  // namespace flashlight::preload

// ---- for hooks.py -------------------------------------------------------------------------------

using flashlight::preload::session_here;

FLASHLIGHT_EXPORTED void flashlight_wrap_calls(PyObject* module_class, PyObject* begin,
                                               PyObject* end, const char* torch) {
  using namespace flashlight::preload;
  auto* session = session_here();
  if (session == nullptr) return;
  on_begin = begin;
  on_end = end;
  folder_of_torch = torch;
  for (PyObject* hook : {begin, end}) py().keep(hook);
  PyObject* descriptor = py().descriptor(module_class, &call_definition);
  if (descriptor == nullptr || py().set_attribute(module_class, "__call__", descriptor) != 0)
    return py().print_error();
  py().drop(descriptor);
  session->use_host(host_line);
}

FLASHLIGHT_EXPORTED const char* flashlight_trace_key() {
  return c10::toString(flashlight::tracer::kTraceKey);
}

// A line of index.txt.
FLASHLIGHT_EXPORTED void flashlight_remark(const char* text) {
  if (auto* session = session_here()) session->write_line(text);
}

FLASHLIGHT_EXPORTED int flashlight_done() {
  const auto* session = session_here();
  return session == nullptr || session->done();
}

FLASHLIGHT_EXPORTED int flashlight_forward_begins(int training) {
  auto* session = session_here();
  return session != nullptr && session->forward_begins(training != 0);
}

FLASHLIGHT_EXPORTED void flashlight_name(void* tensor, const char* name, int kind) {
  using composit::InputKind;
  constexpr InputKind kKinds[] = {InputKind::parameter, InputKind::buffer, InputKind::user_input};
  if (auto* session = session_here())
    session->name(flashlight::preload::tensor_at(tensor), name, kKinds[kind]);
}

FLASHLIGHT_EXPORTED void flashlight_result(void* tensor) {
  flashlight::preload::results.push_back(flashlight::preload::tensor_at(tensor));
}

FLASHLIGHT_EXPORTED void flashlight_forward_ends(int returned) {
  using flashlight::preload::results;
  if (auto* session = session_here()) {
    if (returned != 0)
      session->forward_ends(results);
    else
      session->forward_ends(std::nullopt);
  }
  results.clear();
}

FLASHLIGHT_EXPORTED void flashlight_module(PyObject* module, const char* path) {
  flashlight::preload::modules.emplace(module, path);
}
