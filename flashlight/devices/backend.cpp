#include "flashlight/devices/backend.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ops/operations.h"
#include "flashlight/backends/devices.h"
#include "flashlight/backends/registry.h"
#include "flashlight/devices/code.h"
#include "flashlight/devices/draws.h"
#include "flashlight/devices/plan.h"

namespace flashlight::devices {

using composit::Backend;
using composit::Compiled;
using composit::CompileOptions;
using composit::Graph;

namespace {

CompileOptions options_of_part(const Plan& plan, size_t number, const CompileOptions& all) {
  CompileOptions options = all;
  const Part& part = plan.partition.parts[number];
  options.name += "_" + std::to_string(number);
  options.results.clear();
  for (const size_t value : part.makes)
    options.results.push_back(plan.partition.values[value].name);
  options.options = plan.partition.devices[part.device].backend.options;
  options.may_update = false;
  return options;
}

// For a part that its device refused: who has code for the operations that this one has none for.
std::string advice(const Part& part, const Backend& backend) {
  std::set<std::string> lines;
  for (const composit::NodePtr& node : part.graph.nodes())
    if (is_computed(*node) && !can_run(backend, *node))
      lines.insert("\n  " + node->op().str() + ": " +
                   names_of_runners([&](const Backend& other) { return can_run(other, *node); }) +
                   " could run it");
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// Code that draws from a generator of its own would leave the program's sequence.
void expect_draws(const Plan& plan, size_t number, const composit::Code& code) {
  const Part& part = plan.partition.parts[number];
  const composit::Node* draw = code.draws() ? nullptr : find_draw_in(part.graph);
  if (draw == nullptr) return;
  throw composit::UserError("[devices] part " + std::to_string(number) + " on '" +
                            plan.partition.devices[part.device].name + "' draws random numbers (" +
                            draw->op().str() +
                            "): expected a device whose draws go on from those of other parts, as "
                            "those of cpp and mosaic do");
}

template <class Work>
auto on_device(const Plan& plan, size_t number, Work work) {
  const Part& part = plan.partition.parts[number];
  const DeviceChoice& device = plan.partition.devices[part.device];
  const Backend& backend = backend_named(device.backend.name);
  try {
    return work(backend);
  } catch (const composit::UserError& error) {
    throw composit::UserError("[devices] part " + std::to_string(number) + " on '" + device.name +
                              "': " + error.what() + advice(part, backend));
  }
}

class DevicesBackend : public Backend {
 public:
  std::string name() const override { return "devices"; }
  std::string help() const override { return "parts of the program on several other backends"; }
  const composit::OptionTable& options() const override { return Devices::fields().table(); }
  // A derivative has only some of the modules.
  composit::Options for_derivative(composit::Options options) const override {
    options["lenient"] = true;
    return options;
  }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    Plan plan = plan_of(graph, options);
    for (const DeviceChoice& device : plan.partition.devices) expect_compiles(device);
    std::vector<Compiled> parts;
    for (size_t i = 0; i < plan.partition.parts.size(); ++i) {
      parts.push_back(on_device(plan, i, [&](const Backend& backend) {
        return backend.compile(plan.partition.parts[i].graph, options_of_part(plan, i, options));
      }));
      expect_draws(plan, i, *parts.back());
    }
    const bool overlap = composit::option<bool>(options.options, "overlap");
    std::vector<size_t> targets;
    for (size_t i = 0; options.may_update && i < graph.mutations().size(); ++i)
      for (size_t input = 0; input < graph.inputs().size(); ++input)
        if (graph.inputs()[input] == graph.mutations()[i].target) {
          targets.push_back(input);
          break;
        }
    return code_of(std::move(plan.partition), std::move(plan.schedule), std::move(parts),
                   {.ports = composit::ports_of(graph, options.name),
                    .overlap = overlap,
                    .targets = std::move(targets)});
  }
  std::string write(const Graph& graph, const CompileOptions& options) const override {
    const Plan plan = plan_of(graph, options);
    std::string text;
    for (size_t i = 0; i < plan.partition.parts.size(); ++i)
      text += section(plan.partition, i, on_device(plan, i, [&](const Backend& backend) {
                        return backend.source(plan.partition.parts[i].graph,
                                              options_of_part(plan, i, options));
                      }));
    return text;
  }
  std::string describe_plan(const Graph& graph, const CompileOptions& options) const override {
    return print(plan_of(graph, options));
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const DevicesBackend backend;
  return backend;
}

}  // namespace flashlight::devices
