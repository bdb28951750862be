/* Decodes with a compiled Llama, greedily: prints token numbers as they come, and tokens per second.
 *
 *   decode WEIGHTS TOKENS ID…
 *
 * The step's inputs are a token, its position, and the caches; its outputs are logits, and the new
 * caches, which are written in the memory of the old ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

enum { kMostTensors = 1024 };

static llama_tensor tensor_of(const llama_info* info, void* data) {
  const llama_tensor tensor = {data, info->dtype, info->rank, info->sizes, info->bytes};
  return tensor;
}

static int64_t largest(const float* logits, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i)
    if (logits[i] > logits[best]) best = i;
  return (int64_t)best;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int fail(const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

int main(int argc, char** argv) {
  const size_t inputs_count = llama_input_count(), outputs_count = llama_output_count();
  if (argc < 4) return fail("usage: decode WEIGHTS TOKENS ID...");
  if (inputs_count < 3 || inputs_count > kMostTensors || outputs_count != inputs_count - 1 ||
      llama_output(0)->dtype != LLAMA_FLOAT32)
    return fail("expected a step with float32 logits, and a new cache for each cache");

  int64_t token = 0, position = 0;
  llama_tensor inputs[kMostTensors], outputs[kMostTensors];
  inputs[0] = tensor_of(llama_input(0), &token);
  inputs[1] = tensor_of(llama_input(1), &position);
  float* logits = malloc(llama_output(0)->bytes);
  outputs[0] = tensor_of(llama_output(0), logits);
  for (size_t i = 2; i < inputs_count; ++i) {
    void* cache = calloc(1, llama_input(i)->bytes);
    if (cache == NULL || logits == NULL) return fail("out of memory");
    inputs[i] = tensor_of(llama_input(i), cache);
    outputs[i - 1] = tensor_of(llama_output(i - 1), cache);
  }

  char message[256];
  llama_model* model;
  if (llama_open(argv[1], &model, message, sizeof message) != LLAMA_OK) return fail(message);
  const int64_t prompt = argc - 3, total = prompt + atoll(argv[2]);
  const double start = seconds();
  for (; position < total; ++position) {
    token = position < prompt ? atoll(argv[3 + position])
                              : largest(logits, llama_output(0)->bytes / sizeof *logits);
    if (position >= prompt) {
      printf("%lld\n", (long long)token);
      fflush(stdout);
    }
    if (position + 1 == total) break;
    if (llama_run(model, inputs, inputs_count, outputs, outputs_count, message, sizeof message) !=
        LLAMA_OK)
      return fail(message);
  }
  fprintf(stderr, "%.1f tokens per second\n", (double)(total - 1) / (seconds() - start));
  llama_close(model);
  for (size_t i = 2; i < inputs_count; ++i) free(inputs[i].data);
  free(logits);
  return 0;
}
