/* Calls the C interface of the small encoder with wrong arguments and broken files of weights.
 *
 *   fuzz WEIGHTS SCRATCH_FILE ROUNDS
 *
 * Prints what is wrong and returns 1 where a call with something wrong succeeds, one with nothing
 * wrong fails, or there is no message. Sanitizers see to the rest. -DDRAWS: the encoder draws, and
 * takes a seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { kInputs = 2, kOutputs = 2, kMaxRank = 3 };

static uint64_t seed; /* of the next run */
#ifdef DRAWS
enum { kDraws = 1 };
#define SEED seed,
#else
enum { kDraws = 0 };
#define SEED
#endif

static uint64_t state = 88172645463325252u;
static uint64_t draw(uint64_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

static void* allocated(size_t bytes) {
  void* memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) exit(3);
  return memory;
}

/* Arguments of a call, each in memory of its own that is no byte too long. */
typedef struct Call {
  encoder_tensor tensors[kInputs + kOutputs];
  void* memory[kInputs + kOutputs];
  int64_t* sizes[kInputs + kOutputs];
  size_t input_count, output_count;
  int without_model, without_inputs, without_outputs;
} Call;

static const encoder_info* info(size_t i) {
  return i < kInputs ? encoder_input(i) : encoder_output(i - kInputs);
}

static Call right_call(void) {
  static const int64_t kTokens[] = {3, 1, 19, 0, 7, 7};
  static const unsigned char kMask[] = {1, 1, 1, 1, 0, 1};
  Call call = {.input_count = kInputs, .output_count = kOutputs};
  for (size_t i = 0; i < kInputs + kOutputs; ++i) {
    const encoder_info* one = info(i);
    call.memory[i] = allocated(one->bytes);
    call.sizes[i] = allocated((size_t)one->rank * sizeof(int64_t));
    if (one->rank > 0) memcpy(call.sizes[i], one->sizes, (size_t)one->rank * sizeof(int64_t));
    call.tensors[i] = (encoder_tensor){.data = call.memory[i],
                                       .dtype = one->dtype,
                                       .rank = one->rank,
                                       .sizes = call.sizes[i],
                                       .bytes = one->bytes};
  }
  memcpy(call.memory[0], kTokens, sizeof kTokens);
  memcpy(call.memory[1], kMask, sizeof kMask);
  return call;
}

static void free_call(Call* call) {
  for (size_t i = 0; i < kInputs + kOutputs; ++i) {
    free(call->memory[i]);
    free(call->sizes[i]);
  }
}

static void shorten(Call* call, size_t i) {
  const size_t bytes = draw(info(i)->bytes);
  free(call->memory[i]);
  call->memory[i] = allocated(bytes);
  memset(call->memory[i], 0, bytes);
  call->tensors[i].data = call->memory[i];
  call->tensors[i].bytes = bytes;
}

/* Makes one thing wrong. */
static void spoil(Call* call) {
  const size_t i = draw(kInputs + kOutputs);
  encoder_tensor* tensor = &call->tensors[i];
  const size_t rank = (size_t)info(i)->rank;
  switch (draw(12)) {
    case 0: tensor->data = NULL; break;
    case 1: tensor->dtype = (int32_t)draw(1u << 31) - (1 << 30); break;
    case 2: tensor->dtype = (tensor->dtype + 1 + (int32_t)draw(14)) % 15; break;
    case 3: tensor->rank += 1 + (int32_t)draw(1000); break;
    case 4: tensor->rank = -1 - (int32_t)draw(1u << 30); break;
    case 5:
      if (rank > 0)
        call->sizes[i][draw(rank)] ^= (int64_t)((uint64_t)1 << draw(64));
      else
        tensor->data = NULL;
      break;
    case 6:
      if (rank > 0)
        tensor->sizes = NULL;
      else
        tensor->data = NULL;
      break;
    case 7: shorten(call, i); break;
    case 8: /* the same place twice, or what only outputs of these sizes allow */
      call->tensors[kInputs + 1].data = call->tensors[draw(kInputs + 1)].data;
      break;
    case 9: call->input_count = kInputs + 1 + draw(1000); break;
    case 10: call->output_count = draw(kOutputs); break;
    default:
      if (draw(3) == 0)
        call->without_model = 1;
      else if (draw(2) == 0)
        call->without_inputs = 1;
      else
        call->without_outputs = 1;
  }
}

/* One byte off is only allowed where elements are bytes. */
static void misalign(Call* call) {
  call->tensors[kInputs].data = (char*)call->tensors[kInputs].data + 1;
}

static encoder_status run(encoder_model* model, const Call* call, char* message, size_t size) {
  return encoder_run(call->without_model ? NULL : model,
                     call->without_inputs ? NULL : call->tensors, call->input_count,
                     call->without_outputs ? NULL : call->tensors + kInputs, call->output_count,
                     SEED message, size);
}

static int fail(const char* what, const char* message) {
  printf("%s: \"%s\"\n", what, message);
  return 1;
}

static int wrong_arguments(encoder_model* model) {
  Call call = right_call();
  const int spoils = (int)draw(4), misaligned = draw(8) == 0;
  if (misaligned) misalign(&call);
  for (int i = 0; i < spoils; ++i) spoil(&call);
  char message[200] = "";
  const size_t size = draw(4) == 0 ? draw(8) : sizeof message;
  seed = draw(UINT64_MAX);
  const encoder_status status = run(model, &call, draw(8) == 0 ? NULL : message, size);
  int failed = 0;
  if (spoils == 0 && !misaligned && status != ENCODER_OK)
    failed = fail("a right call failed", message);
  if (misaligned && status == ENCODER_OK) failed = fail("misaligned, and no error", message);
  if (spoils == 1 && status != ENCODER_BAD_ARGUMENT)
    failed = fail("one thing is wrong, and the call succeeds", message);
  free_call(&call);
  return failed;
}

/* Any bytes may come as data. */
static int wrong_values(encoder_model* model) {
  Call call = right_call();
  for (size_t i = 0; i < kInputs; ++i) {
    unsigned char* bytes = call.memory[i];
    for (int n = 0; n < 2; ++n) bytes[draw(info(i)->bytes)] ^= (unsigned char)(1u << draw(8));
  }
  char message[200] = "";
  const encoder_status status = run(model, &call, message, sizeof message);
  const int failed = status != ENCODER_OK && message[0] == '\0';
  free_call(&call);
  return failed ? fail("no message", message) : 0;
}

/* The same again gives the same, but for another seed. */
static int another_run(encoder_model* model) {
  const int other = (int)draw(2);
  char message[200] = "";
  Call calls[2];
  int failed = 0;
  for (int i = 0; i < 2; ++i) {
    seed += (uint64_t)(i * other);
    calls[i] = right_call();
    if (run(model, &calls[i], message, sizeof message) != ENCODER_OK)
      failed = fail("a right call failed", message);
  }
  const int same =
      memcmp(calls[0].memory[kInputs], calls[1].memory[kInputs], info(kInputs)->bytes) == 0;
  if (same != !(kDraws && other)) failed = fail("results do not follow the seed", "");
  for (int i = 0; i < 2; ++i) free_call(&calls[i]);
  return failed;
}

typedef struct Bytes {
  unsigned char* data;
  size_t size;
} Bytes;

static Bytes read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) exit(3);
  fseek(file, 0, SEEK_END);
  Bytes bytes = {NULL, (size_t)ftell(file)};
  rewind(file);
  bytes.data = allocated(bytes.size);
  if (fread(bytes.data, 1, bytes.size, file) != bytes.size) exit(3);
  fclose(file);
  return bytes;
}

static void write_file(const char* path, const unsigned char* data, size_t size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) exit(3);
}

static void spoil_bytes(unsigned char* data, size_t size, size_t header) {
  static const char kLikely[] = "{}[],:\"\\u0189 -+.e";
  const size_t length = draw(4) == 0 ? 8 : 8 + header;
  const size_t at = draw(length < size ? length : size);
  if (at < 8)
    data[at] = (unsigned char)draw(256);
  else if (data[at] >= '0' && data[at] <= '9')
    data[at] = (unsigned char)('0' + draw(10));
  else
    data[at] = draw(2) == 0 ? (unsigned char)kLikely[draw(sizeof kLikely)] : (unsigned char)draw(256);
}

static int wrong_file(const Bytes* good, const char* path) {
  unsigned char* data = allocated(good->size);
  memcpy(data, good->data, good->size);
  const size_t header = (size_t)(data[0] | data[1] << 8 | data[2] << 16);
  const size_t size = draw(4) > 0 ? good->size : draw(draw(2) > 0 ? 64 : good->size);
  for (uint64_t i = 0, count = draw(4); i < count && size > 0; ++i) spoil_bytes(data, size, header);
  const int changed = size != good->size || memcmp(data, good->data, size) != 0;
  write_file(path, data, size);
  free(data);
  encoder_model* model;
  char message[400] = "";
  const encoder_status status = encoder_open(path, &model, message, sizeof message);
  int failed = 0;
  if (!changed && status != ENCODER_OK) failed = fail("a good file was refused", message);
  if (status != ENCODER_OK && (model != NULL || strstr(message, path) == NULL))
    failed = fail("the message does not name the file", message);
  if (status == ENCODER_OK) {
    Call call = right_call();
    if (run(model, &call, message, sizeof message) != ENCODER_OK)
      failed = fail("a right call failed", message);
    free_call(&call);
  }
  encoder_close(model);
  return failed;
}

int main(int argc, char** argv) {
  if (argc != 4) return 3;
  const int rounds = atoi(argv[3]);
  encoder_model* model;
  char message[400] = "";
  int failures = 0;
  if (encoder_open(argv[1], &model, message, sizeof message) != ENCODER_OK)
    return fail("open", message);
  encoder_close(model);
  if (encoder_open(argv[1], NULL, message, sizeof message) != ENCODER_BAD_ARGUMENT ||
      encoder_open(NULL, &model, message, sizeof message) != ENCODER_BAD_ARGUMENT ||
      model != NULL || encoder_open("", &model, NULL, 7) != ENCODER_BAD_WEIGHTS ||
      encoder_open("/", &model, message, 1) != ENCODER_BAD_WEIGHTS)
    failures += fail("open with something wrong", message);
  if (encoder_open(argv[1], &model, NULL, 0) != ENCODER_OK) return fail("open again", message);
  for (int i = 0; i < rounds; ++i) failures += wrong_arguments(model) + wrong_values(model) + another_run(model);
  const Bytes good = read_file(argv[1]);
  for (int i = 0; i < rounds / 4; ++i) failures += wrong_file(&good, argv[2]);
  free(good.data);
  encoder_close(model);
  encoder_close(NULL);
  printf("%d rounds, %d failures\n", rounds, failures);
  return failures == 0 ? 0 : 1;
}
