// Makes captures of graphs that a family gives. For the files of families only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/family/bind.h"
#include "composit/io/saved_capture.h"
#include "flashlight/capture_state.h"
#include "flashlight/family.h"

namespace flashlight {

// Reads the insides of captures.
class FamilyMaker {
 public:
  static const CaptureBase::State& inside(const CaptureBase& capture) { return capture.now(); }
  static std::shared_ptr<const CaptureBase::State> shared(const CaptureBase& capture) {
    return capture.shared();
  }
  static std::shared_ptr<Looks> looks(const CaptureBase& capture) { return capture.looks_; }
  // The example's graph with what it leaves in `.grad`.
  static composit::Graph graph_of(const CaptureBase& capture) {
    return capture.now().replayed.graph;
  }
  static std::vector<composit::Graph> graphs_of(const std::vector<CaptureBase>& examples);
  // UserError where the captures are not of one program on arguments of one structure.
  static void expect_alike(const std::vector<CaptureBase>& examples);

  // A capture whose graph is `graph`, with the tensors and the program of examples that it was made
  // of. UserError where these have other tensors under one name, or leave other gradients.
  static CaptureBase bound(const std::vector<CaptureBase>& examples, const composit::Graph& graph);
  // The same for a bound family, whose numbers its replays get.
  static CaptureBase open(const CaptureBase& example, const composit::Family& family,
                          const composit::Binding& binding);
  // The same for a bound family, whose numbers are further arguments.
  static CaptureBase with_number_inputs(const CaptureBase& example, const composit::Family& family,
                                        const composit::Binding& binding,
                                        const std::vector<std::string>& names);
  // Of a capture that `bound` gave and nobody else has: these numbers are those of its arguments.
  static void set_numbers(const CaptureBase& bound, const composit::NumberValues& numbers);
  // Of the same: who runs its program again.
  static void set_program(const CaptureBase& bound, Program program, NamesOf named) {
    bound.state_->program = std::move(program);
    bound.state_->named = std::move(named);
  }
  // True if no number of it follows the calls or is given: see State::follows_own_values.
  static bool follows_own_values(const CaptureBase& capture) {
    return capture.now().follows_own_values();
  }
  // The capture itself where all numbers stay as they are; else one whose graph computes them. It
  // lives as long as the capture.
  static std::shared_ptr<const CaptureBase::State> with_numbers_inside(const CaptureBase& capture);
  // Replays with these numbers.
  static std::vector<at::Tensor> replay(const CaptureBase& capture,
                                        const std::vector<at::Tensor>& arguments,
                                        const composit::NumberValues& numbers) {
    return capture.now().replay(arguments, numbers);
  }
  // The examples with one name for a tensor that the tracer had to name in several of them, and
  // other names for other tensors.
  static std::vector<CaptureBase> with_common_names(std::vector<CaptureBase> examples);
  // The example as its recording says now, with these tensors by the names of its inputs.
  static CaptureBase published_again(const CaptureBase& example,
                                     const std::map<std::string, at::Tensor>& tensors);
  // The outputs of a part of the example's graph, of whatever sizes.
  static std::vector<at::Tensor> run_part(const CaptureBase& example, const composit::Graph& part,
                                          const std::vector<at::Tensor>& arguments);
  // The example's program on other arguments. UserError where numbers among them are others, and
  // the program was not traced from C++.
  static CaptureBase run(const CaptureBase& example, const FlatValues& arguments);

  static composit::SavedCapture saved(const CaptureBase& example) { return example.saved(); }
  static CaptureBase of_saved(const composit::SavedCapture& saved,
                              const std::filesystem::path& folder) {
    return CaptureBase::of_saved(saved, folder);
  }
  // The types of the graph's inputs for these arguments.
  static std::vector<composit::Type> types_of(const CaptureBase& example,
                                              const std::vector<at::Tensor>& arguments);

 private:
  // The tensors of the graph's inputs, by their names in the examples.
  static std::vector<NamedTensor> inputs_of(const std::vector<CaptureBase>& examples,
                                            const composit::Graph& graph);
  // All of an example but its graph and its inputs.
  static std::shared_ptr<CaptureBase::State> without_graph(const CaptureBase& example);
  // The example with other names for inputs.
  static CaptureBase with_names(const CaptureBase& example,
                                const std::map<std::string, std::string>& names);
};

}  // namespace flashlight
