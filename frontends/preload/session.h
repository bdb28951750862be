// Captures the steps of this process: finds where they begin and end, and lists them.
//
//   Session session(settings, "2.13.0");        // on the main thread, once LibTorch is loaded
//   ...  the program runs; the session sees its operators, and Python's calls of modules  ...
//   session.end();                              // at the latest point; what is unfinished is
//   written
//
// The folder of the process has a folder for each captured step, step_000, step_001, …, and
// index.txt with a line per step, written as soon as the step has ended.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontends/preload/settings.h"
#include "frontends/preload/step.h"
#include "tracer/operator_watch.h"

namespace flashlight::preload {

class Session : public tracer::OperatorWatch {
 public:
  Session(Settings settings, const std::string& torch);
  ~Session() override;

  // Nothing more will be captured.
  bool done() const { return watching_ == nullptr; }

  // A host language that sees calls of modules, and its lines.
  void use_host(HostLine line);
  // A module is called from outside of all modules. True: a step is recorded, and would like names.
  bool forward_begins(bool training);
  void name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  // It returned these tensors; nothing: it threw.
  void forward_ends(const std::optional<std::vector<at::Tensor>>& results);

  void before(const tracer::OpInfo& info, c10::ArrayRef<c10::IValue> arguments) override;
  // `why`: it ends in the middle of a step, and how; empty where the program ends as it likes.
  void end(const std::string& why = "");
  // Writes a line of index.txt, the list of captures.
  void write_line(const std::string& line);
  // In a child of fork(): the parent goes on capturing, this process does not.
  void forget();

 private:
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  // The use that an operator makes of parameters, which are leaves that require a gradient.
  struct Use {
    const c10::StorageImpl* read = nullptr;  // the first one it reads
    bool writes = false;
  };
  Use parameters_of(const tracer::OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
  void note(const tracer::OpInfo& info, size_t argument, const at::Tensor& tensor, Use& use);
  void choose_cut(bool gradients);
  void cut_by_optimizer(const Use& use, bool content);
  void cut_by_forward(const Use& use);
  void begin();
  void finish(const std::optional<std::vector<at::Tensor>>& results, const std::string& note = "");
  void stop();

  struct Watching;
  const Settings settings_;
  std::ofstream index_;
  std::filesystem::path folder_;
  Cut cut_;
  HostLine host_line_ = nullptr;
  bool host_ = false;
  int64_t number_ = 0;    // of the step that runs, or is next
  int64_t captured_ = 0;  // number of captures before it
  bool running_ = false;
  bool updated_ = false;                     // the step has written parameters
  bool updating_ = false;                    // by the operator that was called last
  const c10::StorageImpl* first_ = nullptr;  // the parameter that the step read first
  std::unordered_map<const c10::StorageImpl*, WeakStorage> parameters_;
  std::vector<at::Tensor> kept_;       // of a whole run: parameters, whose last values are results
  std::optional<Step> step_;           // where the step that runs is recorded
  std::optional<CaptureBase> before_;  // the last step that was written
  std::unique_ptr<Watching> watching_;
};

}  // namespace flashlight::preload
