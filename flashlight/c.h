// Flashlight for C, and for every language that calls C.
//
//   flashlight_scope scope = NULL;
//   flashlight_capture capture = NULL;
//   flashlight_scope_begin(NULL, &scope);
//   flashlight_scope_input(scope, x, "x");
//   flashlight_scope_parameter(scope, weight, "weight");
//   y = call_the_model(x, weight);                        // by the binding of LibTorch
//   flashlight_scope_output(scope, y, "y");
//   if (flashlight_scope_end(scope, &capture) != FLASHLIGHT_OK ||
//       flashlight_capture_export(capture, "model.onnx", NULL) != FLASHLIGHT_OK)
//     fprintf(stderr, "%s\n", flashlight_last_error());
//   flashlight_capture_free(capture);
//
// Link libflashlight_c.so, which has no other symbols. It must find the LibTorch that it was built
// with, and that the program uses. docs/c.md says how a binding is made of this.
//
// * Every function that can fail returns a flashlight_status. None throws, and none ends the
//   program; after a failure nothing was made, and what it would have stored is as it was.
// * A handle that a function stores belongs to the caller, until the `_free` of its kind, or the
//   end of a scope. Handles are numbers, not addresses: one that was freed, that is of another kind
//   or that was never made is an error, no crash. Freeing NULL does nothing.
// * Text that a function stores as `char*` belongs to the caller: flashlight_string_free. Text that
//   it takes is UTF-8, ends in a zero, and is copied.
// * A scope belongs to the thread that began it. Everything else may be used by several threads at
//   once.
#ifndef FLASHLIGHT_C_H_
#define FLASHLIGHT_C_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FLASHLIGHT_C_API __attribute__((visibility("default")))
#else
#define FLASHLIGHT_C_API
#endif

// The version of this interface. It grows by one when functions, or members of options, are added.
// Nothing is ever taken away from the library of one soname: programs go on working with newer
// ones.
#define FLASHLIGHT_C_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

// ---- versions and errors ------------------------------------------------------------------------

// What a function came to.
typedef int32_t flashlight_status;
enum {
  FLASHLIGHT_OK = 0,              // done
  FLASHLIGHT_ERROR = 1,           // the caller did what the text says, and can mend it
  FLASHLIGHT_TORCH_ERROR = 2,     // LibTorch, or the system, failed
  FLASHLIGHT_INTERNAL_ERROR = 3,  // a fault of Flashlight; please report it
};

// FLASHLIGHT_C_VERSION of the library that runs: a program needs at least that of its header.
FLASHLIGHT_C_API int32_t flashlight_c_version(void);
// "0.1.0"; never freed.
FLASHLIGHT_C_API const char* flashlight_version(void);
// The LibTorch that the library was built with, "2.13.0"; never freed.
FLASHLIGHT_C_API const char* flashlight_torch_version(void);

// What the last failure on this thread was: "[operation] expected …, received …". Empty before the
// first one. It stays until the next failure on this thread, and is never freed.
FLASHLIGHT_C_API const char* flashlight_last_error(void);

// Frees text that a function of this header has stored.
FLASHLIGHT_C_API void flashlight_string_free(char* text);

// ---- tensors ------------------------------------------------------------------------------------

// A pointer to an `at::Tensor` of C++. That is what bindings of LibTorch hold: `tensor` of tch-rs,
// ocaml-torch and Torch.jl, `THSTensor` of TorchSharp, `AtenTensorHandle` of AOTInductor's C
// functions. A pointer to a variable that holds a `TensorImpl*` (`_cdata` in Python) is one, too,
// since an at::Tensor is that one pointer. Tensors that a function takes stay the caller's: it
// holds on to their content with a reference of its own, and forgets the pointer.
typedef void* flashlight_tensor;

// Frees a tensor that a function of this header has stored: `delete` of the at::Tensor, as the
// bindings do it with theirs. So a binding may own it as one of its own, and free it once, in its
// way.
FLASHLIGHT_C_API void flashlight_tensor_free(flashlight_tensor tensor);

// ---- capturing ----------------------------------------------------------------------------------

// A piece of a program that is recorded.
typedef struct flashlight_scope_handle* flashlight_scope;
// A captured program: its graph, parameters and example.
typedef struct flashlight_capture_handle* flashlight_capture;

// Options of a scope. Members that are not named are zero, which is the default.
typedef struct {
  size_t struct_size;    // sizeof(flashlight_scope_options), also for what later versions add
  int32_t strict;        // an access to a tensor's memory that no operator makes is an error
  int32_t source_lines;  // note the lines of C++ around each operator; needs debug information
  // The line of the program that runs, as "model.rs:12"; NULL or empty where it is unknown. Called
  // for each operator on the thread of the scope; the text is copied before the next call. It must
  // not throw or call functions of this header.
  const char* (*line)(void* context);
  void* context;  // passed to `line`
} flashlight_scope_options;

// Records all operators that this thread runs from here on. Scopes nest; the one that began last
// ends first. `options`: NULL for the defaults.
FLASHLIGHT_C_API flashlight_status flashlight_scope_begin(const flashlight_scope_options* options,
                                                          flashlight_scope* scope);
// The tensor is an argument of the program, in the order of these calls, and must be named before
// an operator reads it. `name`: NULL for "input_0", "input_1", … Tensors from outside that are not
// named are constants of the capture; those that require a gradient are "parameter_0", …
FLASHLIGHT_C_API flashlight_status flashlight_scope_input(flashlight_scope scope,
                                                          flashlight_tensor tensor,
                                                          const char* name);
// A parameter, "layer1.weight": what gradients are for. The capture shares its memory.
FLASHLIGHT_C_API flashlight_status flashlight_scope_parameter(flashlight_scope scope,
                                                              flashlight_tensor tensor,
                                                              const char* name);
// A buffer, "norm.running_mean". The capture shares its memory.
FLASHLIGHT_C_API flashlight_status flashlight_scope_buffer(flashlight_scope scope,
                                                           flashlight_tensor tensor,
                                                           const char* name);
// A result, in the order of these calls: a tensor that the program has made or got. `name`: for all
// of them, or NULL for all of them. The value is the one that it has at the end.
FLASHLIGHT_C_API flashlight_status flashlight_scope_output(flashlight_scope scope,
                                                           flashlight_tensor tensor,
                                                           const char* name);
// From here to the matching call the module of this path runs, "encoder.layer.0", in all scopes of
// this thread. Without these calls modules follow from the names of parameters.
FLASHLIGHT_C_API flashlight_status flashlight_enter_module(const char* path);
// The module that was entered last ends.
FLASHLIGHT_C_API flashlight_status flashlight_leave_module(void);

// Ends a scope, on its thread, and makes a capture of it. The scope has ended also where what ran
// cannot be captured; it has not where an argument is wrong.
FLASHLIGHT_C_API flashlight_status flashlight_scope_end(flashlight_scope scope,
                                                        flashlight_capture* capture);
// Ends a scope like flashlight_scope_end, and compares what ran with a capture of another run:
// first the graphs, then what a replay gives on this run's inputs as they were, bit for bit. Stores
// 1 where nothing differs, else 0; and in `report`, unless that is NULL, what was compared and
// which operator differs first. Where nothing differs, and each input had another content than in
// the capture's run, the capture is confirmed: what was seen twice does not depend on numbers of
// the host.
FLASHLIGHT_C_API flashlight_status flashlight_scope_check(flashlight_scope scope,
                                                          flashlight_capture capture, int32_t* same,
                                                          char** report);
// Ends a scope without a capture. NULL, or a scope that has ended, is no error.
FLASHLIGHT_C_API flashlight_status flashlight_scope_cancel(flashlight_scope scope);

// ---- captures -----------------------------------------------------------------------------------

FLASHLIGHT_C_API flashlight_status flashlight_capture_free(flashlight_capture capture);

// Writes a folder, or replaces the capture in it; reads one.
FLASHLIGHT_C_API flashlight_status flashlight_capture_save(flashlight_capture capture,
                                                           const char* folder);
FLASHLIGHT_C_API flashlight_status flashlight_capture_load(const char* folder,
                                                           flashlight_capture* capture);

// The number of arguments and of results.
FLASHLIGHT_C_API flashlight_status flashlight_capture_counts(flashlight_capture capture,
                                                             size_t* inputs, size_t* outputs);
// The name of an argument, counted from 0.
FLASHLIGHT_C_API flashlight_status flashlight_capture_input_name(flashlight_capture capture,
                                                                 size_t input, char** name);
// The graph as text.
FLASHLIGHT_C_API flashlight_status flashlight_capture_graph(flashlight_capture capture,
                                                            char** text);
// What the capture holds for, a line each: how often it was seen, types, numbers that the program
// read, constants, draws, writes.
FLASHLIGHT_C_API flashlight_status flashlight_capture_assumptions(flashlight_capture capture,
                                                                  char** text);
// Stores 1 for a capture that was seen twice: by flashlight_scope_check, or before it was saved.
FLASHLIGHT_C_API flashlight_status flashlight_capture_confirmed(flashlight_capture capture,
                                                                int32_t* confirmed);

// Runs the capture's operators: the bits of the program. `inputs`: a tensor per argument, of the
// types of the capture's run. `outputs`: an array of the caller's, which gets a new tensor for each
// result (flashlight_tensor_free); NULL for a result that is absent. Writes what the program
// writes: parameters, buffers, arguments. FLASHLIGHT_ERROR for other types, and where a number that
// the program read is another one; nothing is written then.
FLASHLIGHT_C_API flashlight_status flashlight_capture_replay(flashlight_capture capture,
                                                             const flashlight_tensor* inputs,
                                                             size_t input_count,
                                                             flashlight_tensor* outputs,
                                                             size_t output_count);

// Options of files. Zero is the default; an option that the format does not have must be zero.
typedef struct {
  size_t struct_size;             // sizeof(flashlight_export_options)
  int32_t opset;                  // .onnx: from 20 to 24; 0 is 20
  int32_t drop_guards;            // .onnx, .mlir: without the outputs that say whether it holds
  int32_t parameters_as_buffers;  // .pt2: for parameters that the program writes, and AOTInductor
  int32_t weights_as_parameters;  // .mlir: weights are no arguments, but read by name (IREE)
  // Since version 2. .onnx: the folder where the capture is saved, or a file of safetensors, that
  // has the weights: the model, beside that folder or in it, refers to them there. NULL: they are
  // written beside the model.
  const char* weights_in;
  // Since version 3. .onnx: products with weights of 4 bits in groups become onnxruntime's
  // com.microsoft::MatMulNBits, which other runtimes may lack.
  int32_t matmul_nbits;
  int32_t reserved;  // 0
} flashlight_export_options;

// Writes a file of other tools, which its ending says: .pt2 (torch.export), .onnx, whose weights
// lie beside it in NAME.onnx.data, or .mlir (StableHLO), with NAME.mlir.safetensors. In .onnx,
// inputs have their names, results are "output_0", … `options`: NULL for the defaults.
// FLASHLIGHT_ERROR lists all operators without a form there.
FLASHLIGHT_C_API flashlight_status flashlight_capture_export(
    flashlight_capture capture, const char* file, const flashlight_export_options* options);

// ---- compiling ----------------------------------------------------------------------------------

// Compiled code of a capture or of a derivative.
typedef struct flashlight_compiled_handle* flashlight_compiled;

// Options of compiling. Zero is the default.
typedef struct {
  size_t struct_size;          // sizeof(flashlight_compile_options)
  const char* name;            // of the function in the source; NULL: "program"
  const char* const* options;  // of the backend: "threads=2", "winograd=false"
  size_t option_count;         // their number
} flashlight_compile_options;

// Compiles by the backend of this name: "cpp", "mosaic", … `flashlight --help` lists them, and
// their options. The system's compiler runs, and what it makes is kept.
FLASHLIGHT_C_API flashlight_status flashlight_capture_compile(
    flashlight_capture capture, const char* backend, const flashlight_compile_options* options,
    flashlight_compiled* compiled);
// Writes a folder to build and ship, which needs neither Flashlight nor LibTorch:
// docs/call-from-c.md.
FLASHLIGHT_C_API flashlight_status
flashlight_capture_write_program(flashlight_capture capture, const char* backend,
                                 const flashlight_compile_options* options, const char* folder);
// Like flashlight_capture_replay. Of a derivative: the loss, then the gradients.
FLASHLIGHT_C_API flashlight_status flashlight_compiled_run(flashlight_compiled compiled,
                                                           const flashlight_tensor* inputs,
                                                           size_t input_count,
                                                           flashlight_tensor* outputs,
                                                           size_t output_count);
// The text that it was made of.
FLASHLIGHT_C_API flashlight_status flashlight_compiled_source(flashlight_compiled compiled,
                                                              char** text);
FLASHLIGHT_C_API flashlight_status flashlight_compiled_free(flashlight_compiled compiled);

// ---- derivatives --------------------------------------------------------------------------------

// The derivative of a captured program.
typedef struct flashlight_gradient_handle* flashlight_gradient;

// The derivative of result number `loss`, a single number, by these parameters and arguments; by
// all trainable parameters where `count` is 0. Autograd takes no part.
FLASHLIGHT_C_API flashlight_status flashlight_capture_gradient(flashlight_capture capture,
                                                               size_t loss,
                                                               const char* const* names,
                                                               size_t count,
                                                               flashlight_gradient* gradient);
// The number of gradients, and the name of one, counted from 0.
FLASHLIGHT_C_API flashlight_status flashlight_gradient_count(flashlight_gradient gradient,
                                                             size_t* count);
FLASHLIGHT_C_API flashlight_status flashlight_gradient_name(flashlight_gradient gradient,
                                                            size_t index, char** name);
// Like flashlight_capture_replay, with the arguments of the capture; gives the loss, then the
// gradients: `output_count` is one more than their number.
FLASHLIGHT_C_API flashlight_status flashlight_gradient_run(flashlight_gradient gradient,
                                                           const flashlight_tensor* inputs,
                                                           size_t input_count,
                                                           flashlight_tensor* outputs,
                                                           size_t output_count);
// Like flashlight_capture_export and flashlight_capture_compile.
FLASHLIGHT_C_API flashlight_status flashlight_gradient_export(
    flashlight_gradient gradient, const char* file, const flashlight_export_options* options);
FLASHLIGHT_C_API flashlight_status flashlight_gradient_compile(
    flashlight_gradient gradient, const char* backend, const flashlight_compile_options* options,
    flashlight_compiled* compiled);
FLASHLIGHT_C_API flashlight_status flashlight_gradient_free(flashlight_gradient gradient);

#ifdef __cplusplus
}
#endif

#endif  // FLASHLIGHT_C_H_
