#include "frontends/ks/run.h"

#include "composit/eval/evaluate.h"
#include "composit/ops/native.h"
#include "frontends/ks/interpreter.h"

namespace flashlight::ks {
namespace {

// Writes printed values, whose numbers are the elements of arrays.
class Writer {
 public:
  Writer(std::ostream& out, Tape& tape, std::vector<composit::Array> arrays)
      : out_(out), tape_(tape), arrays_(std::move(arrays)) {}

  void write(const Value& value) {
    write(value, 0, next_);
    next_ += tape_.count_leaves(value);
  }

 private:
  // `offset`: which element of the leaves from `leaf` on.
  void write(const Value& value, int64_t offset, size_t leaf) {
    if (const auto* text = std::get_if<std::string>(&value.form)) out_ << *text;
    if (value.is_number()) number(leaf, offset);
    if (value.is_tuple()) {
      const char* separator = "";
      for (const Value& item : value.items()) {
        out_ << separator;
        separator = ",";
        write(item, offset, leaf);
        leaf += tape_.count_leaves(item);
      }
    }
    if (value.is_tensor()) {
      const TensorValue& tensor = value.tensor();
      composit::Ints sizes = tensor.sizes;
      for (size_t axis = 0; axis < sizes.size(); ++axis)
        if (tensor.ragged(axis))
          sizes[axis] =
              composit::elements<int64_t>(arrays_.at(leaf++))[static_cast<size_t>(offset)];
      const Value element = tensor.at(tape_.variables(tensor.sizes));
      axis(tensor, sizes, element, 0, offset, leaf);
    }
  }
  // `sizes`: how many elements there are, of those that there is memory for.
  void axis(const TensorValue& tensor, const composit::Ints& sizes, const Value& element,
            size_t number, int64_t offset, size_t first) {
    if (number == tensor.sizes.size()) return write(element, offset, first);
    out_ << '[';
    for (int64_t i = 0; i < sizes[number]; ++i) {
      if (i > 0) out_ << ", ";
      axis(tensor, sizes, element, number + 1, offset * tensor.sizes[number] + i, first);
    }
    out_ << ']';
  }
  void number(size_t leaf, int64_t offset) {
    const composit::Array& array = arrays_.at(leaf);
    const auto place = static_cast<size_t>(offset);
    if (composit::is_floating_point(array.type().dtype))
      out_ << composit::elements<double>(array)[place];
    else
      out_ << composit::elements<int64_t>(array)[place];
  }

  std::ostream& out_;
  Tape& tape_;
  std::vector<composit::Array> arrays_;
  size_t next_ = 0;
};

}  // namespace

void run(const Program& program, std::ostream& out, const GraphOptions& options) {
  Interpreter interpreter(program, Tape(options.floating));
  const Name main{.function = "main"};
  const Position at;
  if (!interpreter.definition(main, std::nullopt, at).parameters.empty())
    interpreter.refuse(at, "'main' has parameters: import a function to call it with values");
  interpreter.call(main, tuple_of({}), at);

  Tape& tape = interpreter.tape();
  std::vector<Leaf> leaves;
  Values printed;
  for (const Value& one : interpreter.printed()) {
    printed.push_back(tape.computed(one));
    tape.leaves(printed.back(), {}, leaves);
  }
  composit::Graph::Parts parts;
  for (const Leaf& one : leaves) parts.outputs.push_back(one.tensor);
  Writer writer(out, tape, composit::evaluate(composit::Graph(std::move(parts)), {}));
  for (const Value& one : printed) writer.write(one);
}

}  // namespace flashlight::ks
