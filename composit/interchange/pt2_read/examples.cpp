#include "composit/interchange/pt2_read/examples.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "composit/interchange/pt2/pickle.h"
#include "composit/interchange/pt2_read/weights.h"
#include "composit/ir/error.h"
#include "composit/ir/verify.h"

namespace composit::pt2_read {
namespace {

using Kind = Structure::Kind;

// A value that a pickle makes. Nothing is run: calls of functions that are not known stay what they
// are.
struct Pickled {
  enum class Kind { mark, none, truth, integer, real, text, global, list, tuple, dict, tensor };
  Kind kind = Kind::none;
  int64_t integer = 0;
  std::string text = {};             // also "module name" of a global
  std::vector<Pickled*> items = {};  // of dicts: key, value, key, value, …
  Array tensor = {};
};
using Item = Pickled*;
using Items = std::vector<Item>;

[[noreturn]] void refuse_example(const std::string& what) {
  throw UserError("the example arguments: " + what);
}

[[noreturn]] void refuse_objects() {
  throw ObjectsNotRead(
      "the example arguments have objects; tensors, numbers, text, lists, tuples and dicts are "
      "read");
}

// The machine of pickles (Python's pickletools.py lists the opcodes), as far as tensors need it.
class Unpickler {
 public:
  using Storage = std::function<std::string_view(const std::string& key)>;
  Unpickler(std::string_view bytes, const Archive& archive, Storage storage)
      : bytes_(bytes), archive_(archive), storage_(std::move(storage)) {}

  Item run() {
    for (;;) {
      const char opcode = part(1)[0];
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  // ---- bytes and the stack ----------------------------------------------------------------------

  std::string_view part(uint64_t size) {
    if (size > bytes_.size() - at_) refuse_example("the pickle ends too early");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  uint64_t number(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = part(count);
    for (size_t i = 0; i < count; ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse_example("the pickle ends too early");
    std::string text(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  Item make(Pickled::Kind kind, int64_t integer = 0, std::string text = "") {
    made_.push_back({kind, integer, std::move(text)});
    return &made_.back();
  }
  void push(Item item) { stack_.push_back(item); }
  Item pop() {
    Item item = top();
    stack_.pop_back();
    return item;
  }
  Item top() const {
    if (stack_.empty()) refuse_example("a pickle that takes more than it has");
    return stack_.back();
  }
  Items pop(size_t count) {
    if (count > stack_.size()) refuse_example("a pickle that takes more than it has");
    Items items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  Items pop_to_mark() {
    size_t count = 0;
    while (count < stack_.size() && stack_[stack_.size() - 1 - count]->kind != Pickled::Kind::mark)
      ++count;
    Items items = pop(count);
    pop();
    return items;
  }
  void extend(Pickled::Kind kind, const Items& items) {
    if (top()->kind != kind || (kind == Pickled::Kind::dict && items.size() % 2 != 0))
      refuse_example("a pickle that adds to what is no list or dict");
    top()->items.insert(top()->items.end(), items.begin(), items.end());
  }
  void push_items(Pickled::Kind kind, Items items) {
    Item item = make(kind);
    item->items = std::move(items);
    push(item);
  }

  // ---- opcodes ----------------------------------------------------------------------------------

  void step(char opcode) {
    if (numbers(opcode) || containers(opcode) || names(opcode)) return;
    refuse_objects();
  }

  bool numbers(char opcode) {
    using K = Pickled::Kind;
    switch (opcode) {
      case 'N':
        return push(make(K::none)), true;
      case '\x88':
      case '\x89':
        return push(make(K::truth, opcode == '\x88')), true;
      case 'K':
        return push(make(K::integer, static_cast<int64_t>(number(1)))), true;
      case 'M':
        return push(make(K::integer, static_cast<int64_t>(number(2)))), true;
      case 'J':
        return push(make(K::integer, static_cast<int32_t>(number(4)))), true;
      case '\x8a':
        return push(make(K::integer, long_integer())), true;
      case 'G':
        part(8);  // constants are compared by torch's own text of them
        return push(make(K::real)), true;
      case 'X':
        return push(make(K::text, 0, std::string(part(number(4))))), true;
      default:
        return false;
    }
  }

  // Two's complement of any length.
  int64_t long_integer() {
    const size_t count = number(1);
    if (count > 8) refuse_example("an integer of more than 64 bits");
    uint64_t value = number(count);
    const bool negative = count > 0 && count < 8 && (value >> (8 * count - 1) & 1) != 0;
    if (negative) value |= ~uint64_t{0} << 8 * count;
    return static_cast<int64_t>(value);
  }

  bool containers(char opcode) {
    using K = Pickled::Kind;
    switch (opcode) {
      case '(':
        return push(make(K::mark)), true;
      case ')':
        return push(make(K::tuple)), true;
      case ']':
        return push(make(K::list)), true;
      case '}':
        return push(make(K::dict)), true;
      case 't':
        return push_items(K::tuple, pop_to_mark()), true;
      case '\x85':
      case '\x86':
      case '\x87':
        return push_items(K::tuple, pop(static_cast<unsigned char>(opcode) - 0x84)), true;
      case 'a':
        return extend_by(K::list, pop(1)), true;
      case 'e':
        return extend_by(K::list, pop_to_mark()), true;
      case 's':
        return extend_by(K::dict, pop(2)), true;
      case 'u':
        return extend_by(K::dict, pop_to_mark()), true;
      default:
        return false;
    }
  }
  void extend_by(Pickled::Kind kind, const Items& items) { extend(kind, items); }

  bool names(char opcode) {
    switch (opcode) {
      case '\x80':
        return number(1), true;  // the protocol
      case 'c': {
        std::string module = line();
        return push(make(Pickled::Kind::global, 0, module + " " + line())), true;
      }
      case 'q':
        return memo_[number(1)] = top(), true;
      case 'r':
        return memo_[number(4)] = top(), true;
      case 'h':
        return recall(number(1)), true;
      case 'j':
        return recall(number(4)), true;
      case 'Q':
        return true;  // what names a storage stays the tuple that it is
      case 'R':
        return call(), true;
      default:
        return false;
    }
  }
  void recall(uint64_t name) {
    const auto found = memo_.find(name);
    if (found == memo_.end()) refuse_example("a pickle that recalls what it never had");
    push(found->second);
  }

  // ---- tensors ----------------------------------------------------------------------------------

  void call() {
    const Items arguments = pop()->items;
    const std::string function = pop()->text;
    if (function == "collections OrderedDict") return push(make(Pickled::Kind::dict));
    if (function == "torch._utils _rebuild_parameter" && !arguments.empty())
      return push(arguments[0]);
    const bool named = function == "torch._utils _rebuild_tensor_v3";
    if (!named && function != "torch._utils _rebuild_tensor_v2") refuse_objects();
    if (arguments.size() < (named ? 7U : 6U)) refuse_example("a tensor of too few parts");
    Item made = make(Pickled::Kind::tensor);
    made->tensor = tensor(arguments, named);
    push(made);
  }

  static std::vector<int64_t> integers(const Pickled* item) {
    std::vector<int64_t> values;
    for (const Pickled* one : item->items) values.push_back(one->integer);
    return values;
  }

  // (storage, offset, sizes, strides, …), the dtype at the end where the storage has bytes.
  Array tensor(const Items& arguments, bool named) const {
    const Items& storage = arguments[0]->items;
    if (storage.size() < 5) refuse_example("a tensor without a storage");
    Type type;
    const std::string& dtype_text = named ? arguments[6]->text : storage[1]->text;
    const std::string name = dtype_text.substr(dtype_text.find(' ') + 1);
    const auto dtype = named ? dtype_from_name(name) : pt2::dtype_of_storage(name);
    if (!dtype) refuse_example("a tensor of '" + dtype_text + "'");
    type.dtype = *dtype;
    type.sizes = integers(arguments[2]);
    type.strides = integers(arguments[3]);
    if (const auto fault = fault_of(type)) refuse_example(*fault);
    return array_in(archive_.file(), storage_(storage[2]->text), type, arguments[1]->integer);
  }

  std::string_view bytes_;
  const Archive& archive_;
  Storage storage_;
  size_t at_ = 0;
  std::deque<Pickled> made_;  // all values: they may hold each other, nested without end
  Items stack_;
  std::map<uint64_t, Item> memo_;
};

// The value of a key; nullptr where there is none.
const Pickled* value_of(const Pickled& dict, const std::string& key) {
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (dict.items[i]->text == key) return dict.items[i + 1];
  return nullptr;
}

void collect(const Pickled& value, const Structure& structure, std::vector<Array>& tensors) {
  if (structure.kind == Kind::constant) return;
  if (structure.kind == Kind::tensor) {
    if (value.kind != Pickled::Kind::tensor)
      refuse_example("they are none of the program's arguments");
    tensors.push_back(value.tensor);
    return;
  }
  const bool map = structure.kind == Kind::dict;
  if (value.kind == Pickled::Kind::tensor ||
      value.items.size() != structure.children.size() * (map ? 2 : 1))
    refuse_example("they are none of the program's arguments");
  for (size_t i = 0; i < structure.children.size(); ++i) {
    const Pickled* child = map ? value_of(value, structure.keys[i]) : value.items[i];
    if (child == nullptr) refuse_example("they lack '" + structure.keys[i] + "'");
    collect(*child, structure.children[i], tensors);
  }
}

}  // namespace

std::vector<Array> example_inputs(const Archive& archive, const Structure& arguments) {
  const auto bytes = archive.find("data/sample_inputs/model.pt");
  if (!bytes || bytes->empty()) return {};
  const io::ZipReader inner(*bytes);
  constexpr std::string_view kPickle = "data.pkl";
  for (const auto& [name, content] : inner.entries()) {
    if (!name.ends_with(kPickle)) continue;
    const std::string root = name.substr(0, name.size() - kPickle.size());
    const auto storage = [&](const std::string& key) {
      if (const auto found = inner.find(root + "data/" + key)) return *found;
      refuse_example("there is no storage '" + key + "'");
    };
    std::vector<Array> tensors;
    Unpickler unpickler(content, archive, storage);
    collect(*unpickler.run(), arguments, tensors);
    return tensors;
  }
  refuse_example("an archive without a pickle");
}

}  // namespace composit::pt2_read
