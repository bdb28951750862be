// Runs one model in several threads at once; each result is that of a run alone.
//
//   threads WEIGHTS
#include <model.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct Run {
  std::int64_t tokens[6] = {3, 1, 19, 0, 7, 7};
  unsigned char mask[6] = {1, 1, 1, 1, 0, 1};
  float hidden[48] = {}, loss = 0;

  bool start(encoder_model* model) {
    const std::int64_t sizes[] = {1, 6, 8};
    const encoder_tensor inputs[] = {{tokens, ENCODER_INT64, 2, sizes, sizeof tokens},
                                     {mask, ENCODER_BOOL, 2, sizes, sizeof mask}};
    const encoder_tensor outputs[] = {{hidden, ENCODER_FLOAT32, 3, sizes, sizeof hidden},
                                      {&loss, ENCODER_FLOAT32, 0, nullptr, sizeof loss}};
    return encoder_run(model, inputs, 2, outputs, 2, nullptr, 0) == ENCODER_OK;
  }
};

}  // namespace

int main(int, char** argv) {
  encoder_model* model = nullptr;
  if (encoder_open(argv[1], &model, nullptr, 0) != ENCODER_OK) return 2;
  Run alone[4];
  int failures[4] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    alone[i].tokens[0] = i;
    if (!alone[i].start(model)) return 2;
  }
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        Run run;
        run.tokens[0] = i;
        failures[i] +=
            !run.start(model) || std::memcmp(run.hidden, alone[i].hidden, sizeof run.hidden) != 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  encoder_close(model);
  const int all = failures[0] + failures[1] + failures[2] + failures[3];
  std::printf("%d failures\n", all);
  return all == 0 ? 0 : 1;
}
