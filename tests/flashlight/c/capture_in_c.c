/* A program in C99 that captures a perceptron, and does with it all that flashlight/c.h can.

     capture_in_c FOLDER

   Values come from LibTorch, called by its own C functions, and for gradients from differences of
   them in float64. FOLDER gets perceptron.onnx, perceptron.pt2 and gradient.onnx, and the inputs
   and results as raw numbers, for those that read them: onnx_in_c_test.py. */
#include "flashlight/c.h"

#include <math.h>
#include <string.h>

#include "torch_in_c.h"

#define EXPECT(condition)                                                         \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: expected %s; %s\n", __FILE__, __LINE__, #condition, \
              flashlight_last_error());                                           \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)
#define DONE(call) EXPECT((call) == FLASHLIGHT_OK)

enum { ROWS = 4, IN = 3, HIDDEN = 5, OUT = 2, PARAMETERS = 4 };

static const char* const names[PARAMETERS] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};

typedef struct {
  int32_t dtype;
  Tensor parameters[PARAMETERS];
} Model;

/* Numbers between -1 and 1 that repeat nothing. */
static double element(int seed, int64_t i) { return sin(12.9898 * (double)i + 78.233 * seed); }

static Tensor made(int seed, int32_t dtype, int64_t rows, int64_t columns) {
  double values[32];
  float rounded[32];
  const int64_t count = rows * (columns == 0 ? 1 : columns);
  for (int64_t i = 0; i < count; ++i) rounded[i] = (float)(values[i] = element(seed, i));
  if (dtype == aoti_torch_dtype_float64()) return tensor_of(values, dtype, rows, columns);
  return tensor_of(rounded, dtype, rows, columns);
}

static Model new_model(int32_t dtype) {
  Model model = {dtype, {NULL}};
  model.parameters[0] = made(1, dtype, HIDDEN, IN);
  model.parameters[1] = made(2, dtype, HIDDEN, 0);
  model.parameters[2] = made(3, dtype, OUT, HIDDEN);
  model.parameters[3] = made(4, dtype, OUT, 0);
  return model;
}

static void delete_model(const Model* model) {
  for (int i = 0; i < PARAMETERS; ++i) delete_tensor(model->parameters[i]);
}

static void run(const Model* model, Tensor x, Tensor* y, Tensor* loss) {
  Tensor h = linear(x, model->parameters[0], model->parameters[1]);
  Tensor r = relu(h);
  Tensor logits = linear(r, model->parameters[2], model->parameters[3]);
  *y = softmax(logits, 1);
  Tensor squares = mul(*y, *y);
  *loss = mean(squares);
  delete_tensor(h);
  delete_tensor(r);
  delete_tensor(logits);
  delete_tensor(squares);
}

static double number(Tensor tensor, int64_t i) { return ((double*)data_of(tensor))[i]; }

static void expect_same_bits(Tensor a, Tensor b, size_t element_size) {
  EXPECT(count_of(a) == count_of(b));
  EXPECT(memcmp(data_of(a), data_of(b), (size_t)count_of(a) * element_size) == 0);
}

static flashlight_scope begun(const Model* model, Tensor x) {
  flashlight_scope scope = NULL;
  DONE(flashlight_scope_begin(NULL, &scope));
  DONE(flashlight_scope_input(scope, x, "x"));
  for (int i = 0; i < PARAMETERS; ++i)
    DONE(flashlight_scope_parameter(scope, model->parameters[i], names[i]));
  return scope;
}

static flashlight_capture captured(const Model* model, Tensor x) {
  flashlight_capture capture = NULL;
  Tensor y, loss;
  flashlight_scope scope = begun(model, x);
  run(model, x, &y, &loss);
  DONE(flashlight_scope_output(scope, y, "y"));
  DONE(flashlight_scope_output(scope, loss, "loss"));
  DONE(flashlight_scope_end(scope, &capture));
  delete_tensor(y);
  delete_tensor(loss);
  return capture;
}

/* Results of the program and of `replay`, which runs a capture or compiled code. */
static void expect_replay(flashlight_capture capture, const Model* model, int seed, size_t size) {
  Tensor x = made(seed, model->dtype, ROWS, IN), y, loss;
  flashlight_tensor results[2] = {NULL, NULL};
  run(model, x, &y, &loss);
  DONE(flashlight_capture_replay(capture, &x, 1, results, 2));
  expect_same_bits(results[0], y, size);
  expect_same_bits(results[1], loss, size);
  flashlight_tensor_free(results[0]);
  delete_tensor(results[1]); /* as LibTorch's own */
  delete_tensor(x);
  delete_tensor(y);
  delete_tensor(loss);
}

static void write_numbers(const char* folder, const char* name, Tensor tensor) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  FILE* file = fopen(path, "wb");
  EXPECT(file != NULL);
  EXPECT(fwrite(data_of(tensor), sizeof(float), (size_t)count_of(tensor), file) ==
         (size_t)count_of(tensor));
  EXPECT(fclose(file) == 0);
}

static void check_texts(flashlight_capture capture) {
  char* text = NULL;
  size_t inputs = 0, outputs = 0;
  DONE(flashlight_capture_counts(capture, &inputs, &outputs));
  EXPECT(inputs == 1 && outputs == 2);
  DONE(flashlight_capture_input_name(capture, 0, &text));
  EXPECT(strcmp(text, "x") == 0);
  flashlight_string_free(text);
  DONE(flashlight_capture_graph(capture, &text));
  EXPECT(strstr(text, "aten::linear") != NULL && strstr(text, "fc2.bias") != NULL);
  flashlight_string_free(text);
  DONE(flashlight_capture_assumptions(capture, &text));
  EXPECT(strstr(text, "seen once") != NULL);
  flashlight_string_free(text);
}

/* A second run confirms the capture; one of another program is told from it. */
static void check_again(flashlight_capture capture, const Model* model) {
  int32_t same = -1, confirmed = -1;
  char* report = NULL;
  Tensor x = made(7, model->dtype, ROWS, IN), y, loss, twice;
  DONE(flashlight_capture_confirmed(capture, &confirmed));
  EXPECT(confirmed == 0);

  flashlight_scope scope = begun(model, x);
  run(model, x, &y, &loss);
  twice = mul(y, y);
  DONE(flashlight_scope_output(scope, twice, "y"));
  DONE(flashlight_scope_output(scope, loss, "loss"));
  DONE(flashlight_scope_check(scope, capture, &same, &report));
  EXPECT(same == 0 && strstr(report, "another path") != NULL);
  flashlight_string_free(report);
  delete_tensor(y);
  delete_tensor(loss);
  delete_tensor(twice);

  scope = begun(model, x);
  run(model, x, &y, &loss);
  DONE(flashlight_scope_output(scope, y, "y"));
  DONE(flashlight_scope_output(scope, loss, "loss"));
  DONE(flashlight_scope_check(scope, capture, &same, NULL));
  EXPECT(same == 1);
  DONE(flashlight_capture_confirmed(capture, &confirmed));
  EXPECT(confirmed == 1);
  delete_tensor(x);
  delete_tensor(y);
  delete_tensor(loss);
}

static void save_and_load(flashlight_capture capture, const Model* model, const char* folder) {
  char path[512];
  flashlight_capture loaded = NULL;
  snprintf(path, sizeof path, "%s/saved", folder);
  DONE(flashlight_capture_save(capture, path));
  DONE(flashlight_capture_load(path, &loaded));
  expect_replay(loaded, model, 9, sizeof(float));
  DONE(flashlight_capture_free(loaded));
}

static void compile(flashlight_capture capture, const Model* model, const char* folder) {
  const char* const options[] = {"threads=1"};
  const flashlight_compile_options how = {sizeof how, "perceptron", options, 1};
  const flashlight_compile_options named = {sizeof named, "perceptron", NULL, 0};
  char path[512];
  Tensor x = made(11, model->dtype, ROWS, IN), y, loss;
  run(model, x, &y, &loss);
  for (int i = 0; i < 2; ++i) {
    flashlight_compiled code = NULL;
    flashlight_tensor results[2] = {NULL, NULL};
    char* source = NULL;
    DONE(flashlight_capture_compile(capture, i == 0 ? "cpp" : "mosaic", i == 0 ? &named : &how,
                                    &code));
    DONE(flashlight_compiled_run(code, &x, 1, results, 2));
    for (int64_t j = 0; j < ROWS * OUT; ++j) /* a few units in the last place */
      EXPECT(fabs(((float*)data_of(results[0]))[j] - ((float*)data_of(y))[j]) < 1e-6);
    DONE(flashlight_compiled_source(code, &source));
    EXPECT(strstr(source, "perceptron") != NULL);
    flashlight_string_free(source);
    flashlight_tensor_free(results[0]);
    flashlight_tensor_free(results[1]);
    DONE(flashlight_compiled_free(code));
  }
  snprintf(path, sizeof path, "%s/program", folder);
  DONE(flashlight_capture_write_program(capture, "cpp", &named, path));
  strcat(path, "/model.h");
  FILE* header = fopen(path, "r");
  EXPECT(header != NULL);
  fclose(header);
  delete_tensor(x);
  delete_tensor(y);
  delete_tensor(loss);
}

static void export_files(flashlight_capture capture, const Model* model, const char* folder) {
  char path[512];
  flashlight_gradient gradient = NULL;
  Tensor x = made(13, model->dtype, ROWS, IN), y, loss;
  const flashlight_export_options opset = {sizeof opset, 21, 0, 0, 0, NULL, 0, 0};
  run(model, x, &y, &loss);
  write_numbers(folder, "x", x);
  write_numbers(folder, "y", y);
  write_numbers(folder, "loss", loss);
  for (int i = 0; i < PARAMETERS; ++i) write_numbers(folder, names[i], model->parameters[i]);
  snprintf(path, sizeof path, "%s/perceptron.onnx", folder);
  DONE(flashlight_capture_export(capture, path, &opset));
  char where[512];
  snprintf(where, sizeof where, "%s/saved", folder);
  const flashlight_export_options shared = {sizeof shared, 0, 0, 0, 0, where, 0, 0};
  snprintf(path, sizeof path, "%s/shared.onnx", folder);
  DONE(flashlight_capture_export(capture, path, &shared));
  snprintf(path, sizeof path, "%s/perceptron.pt2", folder);
  DONE(flashlight_capture_export(capture, path, NULL));
  DONE(flashlight_capture_gradient(capture, 1, NULL, 0, &gradient));
  snprintf(path, sizeof path, "%s/gradient.onnx", folder);
  DONE(flashlight_gradient_export(gradient, path, NULL));
  DONE(flashlight_gradient_free(gradient));
  delete_tensor(x);
  delete_tensor(y);
  delete_tensor(loss);
}

static double loss_of(const Model* model, Tensor x) {
  Tensor y, loss;
  run(model, x, &y, &loss);
  const double value = number(loss, 0);
  delete_tensor(y);
  delete_tensor(loss);
  return value;
}

/* Gradients against differences of the program's loss, in float64. */
static void differentiate(void) {
  const double step = 1e-6;
  const Model model = new_model(aoti_torch_dtype_float64());
  Tensor x = made(5, model.dtype, ROWS, IN);
  flashlight_capture capture = captured(&model, x);
  flashlight_gradient gradient = NULL;
  flashlight_compiled code = NULL;
  flashlight_tensor results[1 + PARAMETERS], compiled[1 + PARAMETERS];
  size_t count = 0;
  DONE(flashlight_capture_gradient(capture, 1, names, PARAMETERS, &gradient));
  DONE(flashlight_gradient_count(gradient, &count));
  EXPECT(count == PARAMETERS);
  DONE(flashlight_gradient_run(gradient, &x, 1, results, 1 + PARAMETERS));
  DONE(flashlight_gradient_compile(gradient, "cpp", NULL, &code));
  DONE(flashlight_compiled_run(code, &x, 1, compiled, 1 + PARAMETERS));
  EXPECT(number(results[0], 0) == loss_of(&model, x));
  for (int p = 0; p < PARAMETERS; ++p) {
    char* name = NULL;
    DONE(flashlight_gradient_name(gradient, (size_t)p, &name));
    EXPECT(strcmp(name, names[p]) == 0);
    flashlight_string_free(name);
    for (int64_t i = 0; i < count_of(model.parameters[p]); ++i) {
      double* one = (double*)data_of(model.parameters[p]) + i;
      const double before = *one;
      *one = before + step;
      const double more = loss_of(&model, x);
      *one = before - step;
      const double less = loss_of(&model, x);
      *one = before;
      /* the error of the difference: step^2 and 1e-16 / step */
      EXPECT(fabs(number(results[1 + p], i) - (more - less) / (2 * step)) < 1e-9);
      EXPECT(fabs(number(compiled[1 + p], i) - number(results[1 + p], i)) < 1e-15);
    }
  }
  for (int i = 0; i < 1 + PARAMETERS; ++i) {
    flashlight_tensor_free(results[i]);
    flashlight_tensor_free(compiled[i]);
  }
  DONE(flashlight_compiled_free(code));
  DONE(flashlight_gradient_free(gradient));
  DONE(flashlight_capture_free(capture));
  delete_tensor(x);
  delete_model(&model);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  EXPECT(flashlight_c_version() >= FLASHLIGHT_C_VERSION);
  EXPECT(strlen(flashlight_version()) > 0 && strncmp(flashlight_torch_version(), "2.", 2) == 0);
  const Model model = new_model(aoti_torch_dtype_float32());
  Tensor x = made(5, model.dtype, ROWS, IN);
  flashlight_capture capture = captured(&model, x);
  check_texts(capture);
  expect_replay(capture, &model, 6, sizeof(float));
  check_again(capture, &model);
  save_and_load(capture, &model, argv[1]);
  compile(capture, &model, argv[1]);
  export_files(capture, &model, argv[1]);
  DONE(flashlight_capture_free(capture));
  delete_tensor(x);
  delete_model(&model);
  differentiate();
  puts("all is well");
  return 0;
}
