// A backend of one's own, on top of composit alone: a graph of functions of one element becomes a
// program for a stack machine, which is run for each element.
//
//   x y mul sin        # sin(x * y)
//
// It is linked into a program and registered (own_backend.cpp), or loaded as a plugin (plugin.cpp).
#pragma once

#include <composit/op/backend.h>

class StackBackend : public composit::Backend {
 public:
  std::string name() const override { return "stack"; }
  std::string help() const override { return "programs for a stack machine"; }
  const composit::OptionTable& options() const override;
  bool has_code(const composit::Operation& operation) const override;

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override;
  void write_folder(const composit::SavedCapture& capture, const std::string& folder,
                    const composit::CompileOptions& options) const override;
};
