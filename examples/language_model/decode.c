/* Decodes with a compiled Llama, greedily: prints token numbers as they come, and tokens per second.
 *
 *   decode WEIGHTS TOKENS ID…
 *
 * The step's inputs are tokens, their positions, the positions of the cache that are read, and the
 * caches; its outputs are logits of the last token, and the new caches, which are written in the
 * memory of the old ones. The prompt takes one call, or one for each 16 of its tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

/* As save_llama.cpp has them. */
enum { kMostTokens = 16, kBlock = 16, kMostPositions = 128 };
/* Inputs: the first cache, and how many there may be. */
enum { kCaches = 3, kMostTensors = 1024 };

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

/* Runs a call of `count` tokens from `position` on. The sizes say how many they are, and how many
 * positions of the cache are read. */
static llama_status step(llama_model* model, llama_tensor* inputs, size_t inputs_count,
                         llama_tensor* outputs, size_t outputs_count, int64_t* tokens,
                         int64_t count, int64_t position, char* message, size_t message_size) {
  int64_t positions[kMostTokens], slots[kMostPositions];
  const int64_t length = ((position + count - 1) / kBlock + 1) * kBlock;
  for (int64_t i = 0; i < count; ++i) positions[i] = position + i;
  for (int64_t i = 0; i < length && i < kMostPositions; ++i) slots[i] = i;
  const int64_t of_tokens[] = {1, count};
  const size_t size = sizeof(int64_t);
  const llama_tensor first = {tokens, LLAMA_INT64, 2, of_tokens, (size_t)count * size},
                     second = {positions, LLAMA_INT64, 2, of_tokens, (size_t)count * size},
                     third = {slots, LLAMA_INT64, 1, &length, (size_t)length * size};
  inputs[0] = first, inputs[1] = second, inputs[2] = third;
  return llama_run(model, inputs, inputs_count, outputs, outputs_count, message, message_size);
}

int main(int argc, char** argv) {
  const size_t inputs_count = llama_input_count(), outputs_count = llama_output_count();
  if (argc < 4) return fail("usage: decode WEIGHTS TOKENS ID...");
  if (inputs_count < 4 || inputs_count > kMostTensors || outputs_count != inputs_count - 2 ||
      llama_output(0)->dtype != LLAMA_FLOAT32)
    return fail("expected a step with float32 logits, and a new cache for each cache");

  llama_tensor inputs[kMostTensors], outputs[kMostTensors];
  float* logits = malloc(llama_output(0)->bytes);
  outputs[0] = tensor_of(llama_output(0), logits);
  for (size_t i = kCaches; i < inputs_count; ++i) {
    void* cache = calloc(1, llama_input(i)->bytes);
    if (cache == NULL || logits == NULL) return fail("out of memory");
    inputs[i] = tensor_of(llama_input(i), cache);
    outputs[i - kCaches + 1] = tensor_of(llama_output(i - kCaches + 1), cache);
  }

  char message[256];
  llama_model* model;
  if (llama_open(argv[1], &model, message, sizeof message) != LLAMA_OK) return fail(message);
  const int64_t prompt = argc - 3, total = prompt + atoll(argv[2]);
  const double start = seconds();
  for (int64_t position = 0, count; position + 1 < total; position += count) {
    int64_t tokens[kMostTokens];
    count = 1;
    if (position < prompt) {
      count = prompt - position < kMostTokens ? prompt - position : kMostTokens;
      for (int64_t i = 0; i < count; ++i) tokens[i] = atoll(argv[3 + position + i]);
    } else {
      tokens[0] = largest(logits, llama_output(0)->bytes / sizeof *logits);
      printf("%lld\n", (long long)tokens[0]);
      fflush(stdout);
    }
    if (step(model, inputs, inputs_count, outputs, outputs_count, tokens, count, position, message,
             sizeof message) != LLAMA_OK)
      return fail(message);
  }
  if (total > prompt)
    printf("%lld\n", (long long)largest(logits, llama_output(0)->bytes / sizeof *logits));
  fprintf(stderr, "%.1f tokens per second\n", (double)(total - 1) / (seconds() - start));
  llama_close(model);
  for (size_t i = kCaches; i < inputs_count; ++i) free(inputs[i].data);
  free(logits);
  return 0;
}
