/* Calls the C interface of a program that draws and guards.
 *
 *   noise SEED X0 X1 X2
 *
 * Prints the result or, and then returns 1, status and message. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

int main(int argc, char** argv) {
  if (argc != 5) return 3;
  float x[3], y[3];
  for (int i = 0; i < 3; ++i) x[i] = (float)atof(argv[2 + i]);
  const int64_t sizes[] = {3};
  const noise_tensor input = {x, NOISE_FLOAT32, 1, sizes, sizeof x},
                     output = {y, NOISE_FLOAT32, 1, sizes, sizeof y};
  noise_model* model = NULL;
  if (noise_open(NULL, &model, NULL, 0) != NOISE_OK) return 3;
  char message[200] = "";
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const noise_status status =
      noise_run(model, &input, 1, &output, 1, seed, message, sizeof message);
  noise_close(model);
  if (status != NOISE_OK) {
    printf("status %d: %s\n", (int)status, message);
    return 1;
  }
  for (int i = 0; i < 3; ++i) printf("%a ", y[i]);
  return 0;
}
