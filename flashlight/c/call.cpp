#include "flashlight/c/call.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "flashlight/version.h"

namespace flashlight::c {
namespace {

using composit::UserError;

// A pointer to a variable that holds a TensorImpl* is a handle, too.
static_assert(sizeof(at::Tensor) == sizeof(void*));

std::string& last_error() {
  thread_local std::string text;
  return text;
}

void note(const char* function, const char* what) noexcept {
  try {
    const std::string text = what;
    last_error() = text.starts_with('[') ? text : "[" + std::string(function) + "] " + text;
  } catch (...) {  // no memory for the text
    last_error().clear();
  }
}

std::string counted(size_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

flashlight_status note_failure(const char* function) noexcept {
  try {
    throw;
  } catch (const UserError& error) {
    note(function, error.what());
    return FLASHLIGHT_ERROR;
  } catch (const composit::InternalError& error) {
    note(function, error.what());
    return FLASHLIGHT_INTERNAL_ERROR;
  } catch (const c10::Error& error) {
    note(function, error.what_without_backtrace());
    return FLASHLIGHT_TORCH_ERROR;
  } catch (const std::bad_alloc&) {
    note(function, "there is not enough memory");
    return FLASHLIGHT_TORCH_ERROR;
  } catch (const std::exception& error) {
    note(function, error.what());
    return FLASHLIGHT_TORCH_ERROR;
  } catch (...) {
    note(function, "something was thrown that is no std::exception");
    return FLASHLIGHT_INTERNAL_ERROR;
  }
}

void expect_place(const void* place, const char* what) {
  if (place == nullptr)
    throw UserError("expected a place where to store the " + std::string(what) + ", received NULL");
}

std::string text_from(const char* text, const std::string& what) {
  if (text == nullptr) throw UserError("expected a text for the " + what + ", received NULL");
  return text;
}

bool flag_from(int32_t flag, const char* what) {
  if (flag != 0 && flag != 1)
    throw UserError("expected 0 or 1 for `" + std::string(what) + "`, received " +
                    std::to_string(flag));
  return flag != 0;
}

void store_text(const std::string& text, char** place) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *place = copy;
}

at::Tensor tensor_from(flashlight_tensor tensor, const std::string& what) {
  if (tensor == nullptr) throw UserError("expected a tensor for " + what + ", received NULL");
  if (reinterpret_cast<uintptr_t>(tensor) % alignof(at::Tensor) != 0)
    throw UserError("expected a pointer to an at::Tensor for " + what +
                    ", received one that no at::Tensor can have");
  const auto& known = *static_cast<const at::Tensor*>(tensor);
  void* content = nullptr;
  std::memcpy(&content, tensor, sizeof content);
  if (content == nullptr || !known.defined())
    throw UserError("expected a tensor for " + what + ", received an undefined one");
  return known;
}

std::vector<at::Tensor> tensors_from(const flashlight_tensor* tensors, size_t count,
                                     size_t expected) {
  if (count != expected)
    throw UserError("expected " + counted(expected, "input") + ", received " +
                    std::to_string(count));
  if (count > 0 && tensors == nullptr)
    throw UserError("expected an array of " + counted(count, "input") + ", received NULL");
  std::vector<at::Tensor> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i)
    all.push_back(tensor_from(tensors[i], "input " + std::to_string(i)));
  return all;
}

void expect_outputs(const flashlight_tensor* outputs, size_t count, size_t expected) {
  if (count != expected)
    throw UserError("expected an array for " + counted(expected, "output") + ", received one for " +
                    std::to_string(count));
  if (count > 0 && outputs == nullptr)
    throw UserError("expected an array for " + counted(count, "output") + ", received NULL");
}

void store_tensors(const std::vector<at::Tensor>& tensors, flashlight_tensor* outputs) {
  std::vector<std::unique_ptr<at::Tensor>> made;
  made.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors)
    made.push_back(tensor.defined() ? std::make_unique<at::Tensor>(tensor) : nullptr);
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
}

}  // namespace flashlight::c

int32_t flashlight_c_version(void) { return FLASHLIGHT_C_VERSION; }
const char* flashlight_version(void) { return flashlight::kVersion.data(); }
const char* flashlight_torch_version(void) { return flashlight::kTorchVersion.data(); }
const char* flashlight_last_error(void) { return flashlight::c::last_error().c_str(); }
void flashlight_string_free(char* text) { std::free(text); }
void flashlight_tensor_free(flashlight_tensor tensor) { delete static_cast<at::Tensor*>(tensor); }
