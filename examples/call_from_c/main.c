/* Runs a compiled perceptron, and asks how its loss would change with each input. */
#include <stdio.h>

#include "model.h"

int main(int argc, char** argv) {
  const char* weights = argc > 1 ? argv[1] : "weights.safetensors";
  char message[256];
  perceptron_model* model;
  if (perceptron_open(weights, &model, message, sizeof message) != PERCEPTRON_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }

  float x[1][3] = {{1, 2, 3}}, loss, y[1][2], grad_x[1][3];
  const int64_t x_sizes[] = {1, 3}, y_sizes[] = {1, 2};
  const perceptron_tensor inputs[] = {{x, PERCEPTRON_FLOAT32, 2, x_sizes, sizeof x}};
  const perceptron_tensor outputs[] = {{&loss, PERCEPTRON_FLOAT32, 0, NULL, sizeof loss},
                                       {y, PERCEPTRON_FLOAT32, 2, y_sizes, sizeof y},
                                       {grad_x, PERCEPTRON_FLOAT32, 2, x_sizes, sizeof grad_x}};
  const perceptron_status status =
      perceptron_run(model, inputs, 1, outputs, 3, message, sizeof message);
  if (status == PERCEPTRON_OK) {
    printf("y = %.4f %.4f, loss = %.4f\n", y[0][0], y[0][1], loss);
    printf("d loss / d x = %.4f %.4f %.4f\n", grad_x[0][0], grad_x[0][1], grad_x[0][2]);
  } else {
    fprintf(stderr, "%s\n", message);
  }
  perceptron_close(model);
  return status == PERCEPTRON_OK ? 0 : 1;
}
