/* Calls the C interface of a program for several sizes.
 *
 *   sizes WEIGHTS BATCH TOKENS [OUTPUT_TOKENS]
 *
 * The input is x[i] = (37 i mod 101) / 50 - 1. Prints sizes and elements of the results or, and then
 * returns 1, status and message. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static pooled_status refused(pooled_status status, const char* message) {
  if (status != POOLED_OK) {
    printf("status %d: %s\n", (int)status, message);
    exit(1);
  }
  return status;
}

int main(int argc, char** argv) {
  if (argc < 4) return 3;
  char message[200] = "";
  pooled_model* model = NULL;
  refused(pooled_open(argv[1], &model, message, sizeof message), message);
  const int64_t sizes[] = {atoll(argv[2]), atoll(argv[3]), 8};
  const size_t count = (size_t)(sizes[0] * sizes[1] * sizes[2]);
  float* x = malloc(count * sizeof *x + 1);
  for (size_t i = 0; i < count; ++i) x[i] = (float)(37 * i % 101) / 50 - 1;
  const pooled_tensor input = {x, POOLED_FLOAT32, 3, sizes, count * sizeof *x};
  pooled_tensor outputs[2];
  int64_t result_sizes[2][3];
  for (size_t i = 0; i < 2; ++i) {
    const pooled_info* info = pooled_output(i);
    refused(pooled_output_sizes(&input, 1, i, result_sizes[i], message, sizeof message), message);
    if (argc > 4 && i == 0) result_sizes[0][1] = atoll(argv[4]);
    size_t bytes = sizeof(float);
    for (int32_t axis = 0; axis < info->rank; ++axis) bytes *= (size_t)result_sizes[i][axis];
    const pooled_tensor output = {malloc(bytes), info->dtype, info->rank, result_sizes[i], bytes};
    outputs[i] = output;
  }
  for (int call = 0; call < 2; ++call)
    refused(pooled_run(model, &input, 1, outputs, 2, message, sizeof message), message);
  for (size_t i = 0; i < 2; ++i) {
    for (int32_t axis = 0; axis < outputs[i].rank; ++axis)
      printf("%lld ", (long long)outputs[i].sizes[axis]);
    printf(":");
    for (size_t k = 0; k < outputs[i].bytes / sizeof(float); ++k)
      printf(" %.9g", (double)((const float*)outputs[i].data)[k]);
    printf("\n");
    free(outputs[i].data);
  }
  free(x);
  pooled_close(model);
  return 0;
}
