// What no compiler of C checks: each mistake is an error with a text, and no crash.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flashlight/c.h"
#include "tests/flashlight/c/c_calls.h"

namespace {

using namespace flashlight::test;
using testing::HasSubstr;

// Pointers that are handles of nothing.
template <class Handle>
Handle stray(uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

TEST(Misuse, a_place_to_store_is_missing) {
  EXPECT_EQ(error_of(flashlight_scope_begin(nullptr, nullptr)),
            "[flashlight_scope_begin] expected a place where to store the scope, received NULL");
  const flashlight_scope scope = begun();
  EXPECT_THAT(error_of(flashlight_scope_end(scope, nullptr)), HasSubstr("received NULL"));
  expect_done(flashlight_scope_cancel(scope));  // it is still open
  EXPECT_THAT(error_of(flashlight_capture_load("/tmp", nullptr)), HasSubstr("received NULL"));
  const flashlight_capture capture = captured(at::ones(3));
  EXPECT_THAT(error_of(flashlight_capture_graph(capture, nullptr)), HasSubstr("received NULL"));
  EXPECT_THAT(error_of(flashlight_capture_counts(capture, nullptr, nullptr)),
              HasSubstr("received NULL"));
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_scope_that_is_none) {
  flashlight_capture capture = nullptr;
  for (const flashlight_scope scope :
       {static_cast<flashlight_scope>(nullptr), stray<flashlight_scope>(1),
        stray<flashlight_scope>(UINTPTR_MAX), stray<flashlight_scope>(uintptr_t{0xf1} << 33)}) {
    const std::string what = scope == nullptr ? "NULL" : "a pointer that is no handle";
    EXPECT_EQ(error_of(flashlight_scope_end(scope, &capture)),
              "[flashlight_scope_end] expected a scope, received " + what);
    at::Tensor x = at::ones(2);
    EXPECT_THAT(error_of(flashlight_scope_input(scope, &x, "x")), HasSubstr(what));
  }
  EXPECT_EQ(capture, nullptr);
}

TEST(Misuse, a_scope_ends_once) {
  flashlight_capture capture = nullptr;
  const flashlight_scope scope = recorded(at::ones(3));
  expect_done(flashlight_scope_end(scope, &capture));
  const flashlight_capture first = capture;
  EXPECT_EQ(error_of(flashlight_scope_end(scope, &capture)),
            "[flashlight_scope_end] expected a scope, received a handle that was freed or has "
            "ended");
  EXPECT_EQ(capture, first);
  int32_t same = -1;
  EXPECT_THAT(error_of(flashlight_scope_check(scope, capture, &same, nullptr)),
              HasSubstr("has ended"));
  EXPECT_EQ(same, -1);
  expect_done(flashlight_scope_cancel(scope));  // may be called in any case
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_handle_of_another_kind) {
  const flashlight_capture capture = captured(at::ones(3));
  EXPECT_EQ(error_of(flashlight_compiled_free(reinterpret_cast<flashlight_compiled>(capture))),
            "[flashlight_compiled_free] expected compiled code, received a capture");
  const flashlight_scope scope = begun();
  EXPECT_EQ(error_of(flashlight_capture_free(reinterpret_cast<flashlight_capture>(scope))),
            "[flashlight_capture_free] expected a capture, received a scope");
  expect_done(flashlight_scope_cancel(scope));
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_capture_that_was_freed) {
  const flashlight_capture capture = captured(at::ones(3));
  flashlight_gradient gradient = nullptr;
  expect_done(flashlight_capture_free(capture));
  const std::string gone = "expected a capture, received a handle that was freed or has ended";
  EXPECT_THAT(error_of(flashlight_capture_free(capture)), HasSubstr(gone));
  EXPECT_THAT(error_of(flashlight_capture_save(capture, "/tmp/never")), HasSubstr(gone));
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 0, nullptr, 0, &gradient)),
              HasSubstr(gone));
  EXPECT_EQ(gradient, nullptr);
  char* text = nullptr;
  const flashlight_capture other = captured(at::ones(3));  // does not get the number of the first
  EXPECT_THAT(error_of(flashlight_capture_graph(capture, &text)), HasSubstr(gone));
  expect_done(flashlight_capture_free(other));
  expect_done(flashlight_capture_free(nullptr));
  flashlight_tensor_free(nullptr);
  flashlight_string_free(nullptr);
}

TEST(Misuse, a_scope_belongs_to_its_thread) {
  const flashlight_scope scope = recorded(at::ones(3));
  flashlight_capture capture = nullptr;
  const std::string before = flashlight_last_error();
  std::thread([&] {
    EXPECT_EQ(error_of(flashlight_scope_end(scope, &capture)),
              "[flashlight_scope_end] expected a scope of this thread, received one that another "
              "thread began: only that one can use it");
    at::Tensor x = at::ones(3);
    EXPECT_THAT(error_of(flashlight_scope_input(scope, &x, "z")), HasSubstr("of this thread"));
    EXPECT_THAT(error_of(flashlight_scope_cancel(scope)), HasSubstr("of this thread"));
    EXPECT_THAT(error_of(flashlight_enter_module("m")), HasSubstr("there is none"));
  }).join();
  EXPECT_EQ(flashlight_last_error(), before);  // each thread has its own
  expect_done(flashlight_scope_end(scope, &capture));
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_thread_that_ends_ends_its_scopes) {
  flashlight_scope outer = nullptr, inner = nullptr;
  std::thread([&] {
    at::Tensor x = at::ones(3);
    outer = begun();
    inner = begun();
    expect_done(flashlight_scope_input(inner, &x, "x"));
    twice(x);
  }).join();
  flashlight_capture capture = nullptr;
  for (const flashlight_scope scope : {outer, inner})
    EXPECT_THAT(error_of(flashlight_scope_end(scope, &capture)), HasSubstr("has ended"));
  expect_done(flashlight_capture_free(captured(at::ones(3))));
}

TEST(Misuse, scopes_end_in_the_reverse_order) {
  at::Tensor x = at::ones(3);
  const flashlight_scope outer = begun();
  expect_done(flashlight_scope_input(outer, &x, "x"));
  const flashlight_scope inner = recorded(x);
  at::Tensor y = x * x;
  expect_done(flashlight_scope_output(outer, &y, "y"));
  flashlight_capture of_outer = nullptr, of_inner = nullptr;
  EXPECT_EQ(error_of(flashlight_scope_end(outer, &of_outer)),
            "[flashlight_scope_end] expected the scope that began last on this thread, received "
            "one with an open scope inside: end that one first");
  EXPECT_THAT(error_of(flashlight_scope_cancel(outer)), HasSubstr("end that one first"));
  expect_done(flashlight_scope_end(inner, &of_inner));
  expect_done(flashlight_scope_end(outer, &of_outer));
  const at::Tensor other = at::arange(3.0f);
  EXPECT_TRUE(at::equal(replayed(of_inner, other), other + other));
  EXPECT_TRUE(at::equal(replayed(of_outer, other), other * other));
  char* text = nullptr;  // what the inner scope did for itself is no part of the outer one
  expect_done(flashlight_capture_graph(of_outer, &text));
  const std::string graph = taken(text);
  EXPECT_THAT(graph, testing::Not(HasSubstr("copy_")));
  EXPECT_THAT(graph, testing::Not(HasSubstr("clone")));
  expect_done(flashlight_capture_free(of_outer));
  expect_done(flashlight_capture_free(of_inner));
}

TEST(Misuse, scopes_inside_of_a_strict_one_read_what_they_need) {
  flashlight_scope_options strict{};
  strict.struct_size = sizeof strict;
  strict.strict = 1;
  at::Tensor x = at::ones(3);
  const flashlight_scope outer = begun(&strict);
  expect_done(flashlight_scope_input(outer, &x, "x"));
  flashlight_capture capture = captured(x, [](const at::Tensor& y) { return y.view({3, 1}); });
  int32_t same = -1;
  expect_done(flashlight_scope_check(recorded(x), capture, &same, nullptr));
  EXPECT_EQ(same, 0);
  at::Tensor y = twice(x);
  expect_done(flashlight_scope_output(outer, &y, "y"));
  expect_done(flashlight_capture_free(capture));
  expect_done(flashlight_scope_end(outer, &capture));
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_tensor_that_is_none) {
  const flashlight_scope scope = begun();
  at::Tensor undefined, x = at::ones(3);
  void* no_content = nullptr;
  EXPECT_EQ(error_of(flashlight_scope_input(scope, nullptr, "x")),
            "[flashlight_scope_input] expected a tensor for an input 'x', received NULL");
  for (void* tensor : {static_cast<void*>(&undefined), static_cast<void*>(&no_content)})
    EXPECT_EQ(error_of(flashlight_scope_input(scope, tensor, "x")),
              "[flashlight_scope_input] expected a tensor for an input 'x', received an undefined "
              "one");
  EXPECT_THAT(error_of(flashlight_scope_parameter(scope, reinterpret_cast<char*>(&x) + 1, "w")),
              HasSubstr("that no at::Tensor can have"));
  EXPECT_THAT(error_of(flashlight_scope_output(scope, &undefined, nullptr)),
              HasSubstr("undefined"));
  expect_done(flashlight_scope_cancel(scope));

  const flashlight_capture capture = captured(x);
  flashlight_tensor input = &undefined, output = nullptr;
  EXPECT_EQ(error_of(flashlight_capture_replay(capture, &input, 1, &output, 1)),
            "[flashlight_capture_replay] expected a tensor for input 0, received an undefined one");
  EXPECT_EQ(output, nullptr);
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, a_pointer_to_a_tensor_impl_is_a_tensor) {
  const at::Tensor x = at::arange(3.0f);
  void* impl = x.unsafeGetTensorImpl();
  const auto owners = x.use_count();
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &impl, "x"));
  at::Tensor y = twice(x);
  expect_done(flashlight_scope_output(scope, &y, nullptr));
  flashlight_capture capture = nullptr;
  expect_done(flashlight_scope_end(scope, &capture));
  EXPECT_TRUE(at::equal(replayed(capture, at::ones(3)), 2 * at::ones(3)));
  expect_done(flashlight_capture_free(capture));
  EXPECT_EQ(x.use_count(), owners);
}

TEST(Misuse, wrong_numbers_of_tensors) {
  const flashlight_capture capture = captured(at::ones(3));
  at::Tensor x = at::ones(3);
  flashlight_tensor inputs[] = {&x, &x}, output = nullptr;
  EXPECT_EQ(error_of(flashlight_capture_replay(capture, inputs, 2, &output, 1)),
            "[flashlight_capture_replay] expected 1 input, received 2");
  EXPECT_THAT(error_of(flashlight_capture_replay(capture, inputs, SIZE_MAX, &output, 1)),
              HasSubstr("expected 1 input"));
  EXPECT_THAT(error_of(flashlight_capture_replay(capture, nullptr, 1, &output, 1)),
              HasSubstr("received NULL"));
  EXPECT_THAT(error_of(flashlight_capture_replay(capture, inputs, 1, &output, SIZE_MAX)),
              HasSubstr("expected an array for 1 output"));
  EXPECT_THAT(error_of(flashlight_capture_replay(capture, inputs, 1, nullptr, 1)),
              HasSubstr("received NULL"));
  at::Tensor other = at::ones(4);
  inputs[0] = &other;
  EXPECT_THAT(error_of(flashlight_capture_replay(capture, inputs, 1, &output, 1)),
              HasSubstr("[3]"));
  EXPECT_EQ(output, nullptr);
  expect_done(flashlight_capture_free(capture));
}

TEST(Misuse, names) {
  at::Tensor x = at::ones(3), w = at::ones(3), made;
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &x, "x"));
  EXPECT_EQ(error_of(flashlight_scope_parameter(scope, &w, "x")),
            "[scope] expected a name that no other input has, received 'x' once more");
  EXPECT_THAT(error_of(flashlight_scope_parameter(scope, &w, nullptr)), HasSubstr("received NULL"));
  EXPECT_THAT(error_of(flashlight_scope_buffer(scope, &w, "")), HasSubstr("an empty one"));
  EXPECT_THAT(error_of(flashlight_scope_output(scope, &w, "y")),
              HasSubstr("one that the scope has not seen"));
  made = x + w;
  EXPECT_THAT(error_of(flashlight_scope_input(scope, &made, "z")), HasSubstr("has read or made"));
  expect_done(flashlight_scope_output(scope, &made, "y"));
  EXPECT_THAT(error_of(flashlight_scope_output(scope, &made, "y")),
              HasSubstr("no other output has"));
  EXPECT_THAT(error_of(flashlight_scope_output(scope, &made, nullptr)),
              HasSubstr("for all outputs or for none"));
  EXPECT_THAT(error_of(flashlight_scope_buffer(scope, &w, "late")),
              HasSubstr("'late': expected a tensor that no operator of the scope has read"));
  expect_done(flashlight_scope_cancel(scope));
}

TEST(Misuse, modules) {
  EXPECT_EQ(error_of(flashlight_enter_module("m")),
            "[flashlight_enter_module] expected an open scope on this thread, there is none");
  EXPECT_THAT(error_of(flashlight_leave_module()), HasSubstr("there is none"));
  at::Tensor x = at::ones(3);
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &x, "x"));
  EXPECT_THAT(error_of(flashlight_enter_module(nullptr)), HasSubstr("received NULL"));
  expect_done(flashlight_enter_module("encoder.layer.0"));
  at::Tensor y = twice(x);
  expect_done(flashlight_leave_module());
  EXPECT_THAT(error_of(flashlight_leave_module()), HasSubstr("expected a module"));
  expect_done(flashlight_scope_output(scope, &y, nullptr));
  flashlight_capture capture = nullptr;
  char* text = nullptr;
  expect_done(flashlight_scope_end(scope, &capture));
  expect_done(flashlight_capture_graph(capture, &text));
  EXPECT_THAT(taken(text), HasSubstr("encoder.layer.0"));
  expect_done(flashlight_capture_free(capture));
}

const char* line_of(void* context) {
  return ++*static_cast<int*>(context) > 1 ? "model.rs:12" : nullptr;
}

TEST(Options, lines_of_the_program) {
  int calls = 0;
  flashlight_scope_options options{};
  options.struct_size = sizeof options;
  options.line = line_of;
  options.context = &calls;
  at::Tensor x = at::ones(3);
  const flashlight_scope scope = begun(&options);
  expect_done(flashlight_scope_input(scope, &x, "x"));
  at::Tensor y = (x + x) * x;
  expect_done(flashlight_scope_output(scope, &y, nullptr));
  flashlight_capture capture = nullptr;
  char* text = nullptr;
  expect_done(flashlight_scope_end(scope, &capture));
  expect_done(flashlight_capture_graph(capture, &text));
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(taken(text), HasSubstr("model.rs:12"));
  expect_done(flashlight_capture_free(capture));
}

TEST(Options, of_another_version) {
  struct Later {
    flashlight_scope_options known;
    int64_t further;
  } later{};
  flashlight_scope scope = nullptr;
  EXPECT_EQ(error_of(flashlight_scope_begin(&later.known, &scope)),
            "[flashlight_scope_begin] expected options whose struct_size is "
            "sizeof(flashlight_scope_options), received 0");
  later.known.struct_size = SIZE_MAX;
  EXPECT_THAT(error_of(flashlight_scope_begin(&later.known, &scope)), HasSubstr("struct_size"));
  later.known.struct_size = sizeof later;
  expect_done(flashlight_scope_begin(&later.known, &scope));  // nothing that is new is asked for
  expect_done(flashlight_scope_cancel(scope));
  later.further = 1;
  EXPECT_THAT(error_of(flashlight_scope_begin(&later.known, &scope)),
              HasSubstr("use a newer libflashlight_c"));
  later.known.strict = 7;
  later.known.struct_size = sizeof later.known;
  EXPECT_THAT(error_of(flashlight_scope_begin(&later.known, &scope)),
              HasSubstr("expected 0 or 1 for `strict`, received 7"));
}

TEST(Options, of_files) {
  const flashlight_capture capture = captured(at::ones(3));
  flashlight_export_options options{};
  options.struct_size = sizeof options;
  options.opset = 21;
  EXPECT_EQ(error_of(flashlight_capture_export(capture, "/tmp/never.pt2", &options)),
            "[flashlight_capture_export] .pt2 has no option `opset`: expected 0");
  flashlight_export_options shared{};
  shared.struct_size = sizeof shared;
  shared.weights_in = "/tmp/nowhere";
  EXPECT_EQ(error_of(flashlight_capture_export(capture, "/tmp/never.mlir", &shared)),
            "[flashlight_capture_export] .mlir has no option `weights_in`: expected 0");
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &shared)),
              HasSubstr("/tmp/nowhere"));
  flashlight_export_options blocks{};
  blocks.struct_size = sizeof blocks;
  blocks.matmul_nbits = 1;
  EXPECT_EQ(error_of(flashlight_capture_export(capture, "/tmp/never.pt2", &blocks)),
            "[flashlight_capture_export] .pt2 has no option `matmul_nbits`: expected 0");
  blocks.matmul_nbits = 4;
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &blocks)),
              HasSubstr("expected 0 or 1 for `matmul_nbits`, received 4"));
  // A program of version 2: what it has behind its struct is its own.
  blocks.struct_size = offsetof(flashlight_export_options, matmul_nbits);
  blocks.weights_in = "/tmp/nowhere";
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &blocks)),
              HasSubstr("/tmp/nowhere"));
  blocks = {};
  blocks.struct_size = sizeof blocks;
  blocks.reserved = 5;
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &blocks)),
              HasSubstr("expected 0 for `reserved`, received 5"));
  options.opset = 7;
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &options)),
              HasSubstr("expected an opset from 20 to 24"));
  options = {};
  options.struct_size = sizeof options;
  options.parameters_as_buffers = 1;
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/tmp/never.onnx", &options)),
              HasSubstr("parameters_as_buffers"));
  for (const char* file : {"/tmp/never.tflite", "/tmp/never", ""})
    EXPECT_THAT(error_of(flashlight_capture_export(capture, file, nullptr)),
                HasSubstr("expected a file that ends in .onnx, .pt2 or .mlir"));
  EXPECT_THAT(error_of(flashlight_capture_export(capture, nullptr, nullptr)),
              HasSubstr("received NULL"));
  EXPECT_THAT(error_of(flashlight_capture_export(capture, "/nowhere/at/all.onnx", nullptr)),
              HasSubstr("/nowhere/at/all.onnx"));
  expect_done(flashlight_capture_free(capture));
}

TEST(Options, of_backends) {
  const flashlight_capture capture = captured(at::ones(3));
  flashlight_compiled code = nullptr;
  EXPECT_THAT(error_of(flashlight_capture_compile(capture, "none", nullptr, &code)),
              HasSubstr("none"));
  EXPECT_THAT(error_of(flashlight_capture_compile(capture, nullptr, nullptr, &code)),
              HasSubstr("received NULL"));
  for (const auto& [option, text] :
       std::vector<std::pair<const char*, const char*>>{{"threads", "expected an option as"},
                                                        {"threads=many", "expected an integer"},
                                                        {"colour=red", "received 'colour'"},
                                                        {nullptr, "received NULL"}}) {
    const flashlight_compile_options options{sizeof options, nullptr, &option, 1};
    EXPECT_THAT(error_of(flashlight_capture_compile(capture, "mosaic", &options, &code)),
                HasSubstr(text));
  }
  const flashlight_compile_options many{sizeof many, nullptr, nullptr, SIZE_MAX};
  EXPECT_THAT(error_of(flashlight_capture_compile(capture, "cpp", &many, &code)),
              HasSubstr("at most"));
  EXPECT_EQ(code, nullptr);
  EXPECT_THAT(error_of(flashlight_capture_write_program(capture, "aten", nullptr, "/tmp/never")),
              HasSubstr("aten"));
  expect_done(flashlight_capture_free(capture));
}

TEST(Gradients, names_and_numbers) {
  const flashlight_capture capture =
      captured(at::ones(3), [](const at::Tensor& x) { return (x * x).sum(); });
  flashlight_gradient gradient = nullptr;
  const char* names[] = {"x", "nobody", nullptr};
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 0, nullptr, 0, &gradient)),
              HasSubstr("no parameter"));
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 7, names, 1, &gradient)),
              HasSubstr("there is no result 7"));
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 0, names + 1, 1, &gradient)),
              HasSubstr("nobody"));
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 0, names + 2, 1, &gradient)),
              HasSubstr("received NULL"));
  EXPECT_THAT(error_of(flashlight_capture_gradient(capture, 0, names, SIZE_MAX, &gradient)),
              HasSubstr("at most 1"));
  expect_done(flashlight_capture_gradient(capture, 0, names, 1, &gradient));
  expect_done(flashlight_capture_free(capture));  // the gradient has its own
  at::Tensor x = at::arange(3.0f);
  flashlight_tensor input = &x, outputs[2] = {};
  expect_done(flashlight_gradient_run(gradient, &input, 1, outputs, 2));
  EXPECT_EQ(static_cast<at::Tensor*>(outputs[0])->item<float>(), 5);
  EXPECT_TRUE(at::equal(*static_cast<at::Tensor*>(outputs[1]), 2 * x));
  for (const flashlight_tensor output : outputs) flashlight_tensor_free(output);
  char* name = nullptr;
  EXPECT_THAT(error_of(flashlight_gradient_name(gradient, 1, &name)), HasSubstr("received 1"));
  EXPECT_THAT(error_of(flashlight_gradient_run(gradient, &input, 1, outputs, 1)),
              HasSubstr("for 2 outputs"));
  expect_done(flashlight_gradient_free(gradient));
  EXPECT_NE(error_of(flashlight_gradient_free(gradient)), "");
}

TEST(Failures, of_a_program_end_its_scope) {
  at::Tensor x = at::ones(3);
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &x, "x"));
  EXPECT_THROW(x.matmul(at::ones({4, 4})), std::exception);
  expect_done(flashlight_scope_cancel(scope));
  EXPECT_TRUE(at::equal(replayed(captured(x), x), 2 * x));
}

TEST(Failures, of_the_system_are_others) {
  const flashlight_capture capture = captured(at::ones(3));
  char* text = nullptr;
  EXPECT_NE(flashlight_capture_save(capture, "/proc/never"), FLASHLIGHT_OK);
  EXPECT_STRNE(flashlight_last_error(), "");
  EXPECT_NE(flashlight_capture_load("/nowhere", const_cast<flashlight_capture*>(&capture)),
            FLASHLIGHT_OK);
  EXPECT_THAT(flashlight_last_error(), HasSubstr("/nowhere"));
  expect_done(flashlight_capture_graph(capture, &text));  // the text stays until the next failure
  flashlight_string_free(text);
  EXPECT_THAT(flashlight_last_error(), HasSubstr("/nowhere"));
  expect_done(flashlight_capture_free(capture));
}

}  // namespace
