#include "tracer/op_info.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

namespace flashlight::tracer {
namespace {

using c10::DispatchKey;

// Domains of LibTorch's own operators, which do what their schemas and the tables here say. All
// others (a user's, c10d's) are foreign: recorder and replay expect more of them.
bool is_own_domain(std::string_view domain) {
  static const std::unordered_set<std::string_view> names = {
      "aten",         "prim",           "prims",      "inductor",  "inductor_prims",
      "rngprims",     "mkldnn",         "onednn",     "mkl",       "mkldnn_prepacked",
      "quantized",    "_quantized",     "sparse",     "prepacked", "xnnpack",
      "quantization", "static_runtime", "debugprims", "profiler",  "onnx"};
  return names.count(domain) > 0;
}

// Answers that depend on a tensor's type alone, or calls that change no value: they leave no node.
const std::unordered_set<std::string_view>& metadata_ops() {
  static const std::unordered_set<std::string_view> names = {
      "aten::size",
      "aten::stride",
      "aten::dim",
      "aten::numel",
      "aten::len",
      "aten::is_leaf",
      "aten::output_nr",
      "aten::_version",
      "aten::requires_grad_",
      "aten::retain_grad",
      "aten::retains_grad",
      "aten::set_data",
      "aten::is_floating_point",
      "aten::is_complex",
      "aten::is_signed",
      "aten::is_conj",
      "aten::is_neg",
      "aten::_is_zerotensor",
      "aten::is_inference",
      "aten::is_same_size",
      "aten::is_pinned",
      "aten::is_distributed",
      "aten::is_coalesced",
      "aten::_nnz",
      "aten::dense_dim",
      "aten::sparse_dim",
      "aten::_dimI",
      "aten::_dimV",
      "aten::q_scale",
      "aten::q_zero_point",
      "aten::q_per_channel_axis",
      "aten::qscheme",
      "aten::result_type",
      "aten::_has_compatible_shallow_copy_type",
      "aten::is_set_to",
      "aten::_has_same_storage_numel",
      "aten::sym_size",
      "aten::sym_stride",
      "aten::sym_numel",
      "aten::sym_storage_offset",
      "aten::sym_is_contiguous",
      "aten::storage_offset",
      "aten::_debug_has_internal_overlap",
      "aten::_nested_tensor_size",
      "aten::_use_cudnn_ctc_loss",
      "aten::_cudnn_rnn_cast_reflatten",
      "aten::can_cast",
      "aten::_cufft_get_plan_cache_size",
      "aten::cudnn_is_acceptable",
      "aten::_fused_sdp_choice",
      "aten::is_vulkan_available",
      "aten::get_device",
      "aten::is_undefined"};
  return names;
}

// Their output sizes depend on values, and they carry no tag for it. Composites need none: what
// they call is tagged. `out=` forms go by their functional form.
const std::unordered_set<std::string_view>& untagged_dynamic_shapes() {
  static const std::unordered_set<std::string_view> names = {
      "aten::_pack_padded_sequence", "aten::sparse_compressed_tensor.comp_plain_value"};
  return names;
}

const std::unordered_set<std::string_view>& makes_no_content() {
  static const std::unordered_set<std::string_view> names = {
      "aten::empty",          "aten::empty_like", "aten::empty_strided",
      "aten::empty_permuted", "aten::new_empty",  "aten::new_empty_strided"};
  return names;
}

// True for operators that read sizes and types of their arguments, but no elements.
bool reads_no_elements(const std::string& name, const std::string& base) {
  static const std::unordered_set<std::string_view> names = {
      "aten::zeros_like", "aten::ones_like",    "aten::full_like",         "aten::rand_like",
      "aten::randn_like", "aten::randint_like", "aten::new_zeros",         "aten::new_ones",
      "aten::new_full",   "c10d::barrier",      "c10d::monitored_barrier_"};
  return names.count(base) > 0 || makes_no_content().count(base) > 0 || name == "aten::bernoulli.p";
}

// The operators that draw a number of random numbers that depends on elements.
const std::unordered_set<std::string_view>& draws_by_value() {
  static const std::unordered_set<std::string_view> names = {
      "aten::rrelu_with_noise", "aten::rrelu_with_noise_", "aten::poisson",
      "aten::binomial",         "aten::_standard_gamma",   "aten::_sample_dirichlet"};
  return names;
}

// The old content of the tensors they write does not matter, or is never a tensor the host made.
const std::unordered_set<std::string_view>& overwriting_ops() {
  static const std::unordered_set<std::string_view> names = {
      "aten::copy_",
      "aten::fill_",
      "aten::zero_",
      "aten::normal_",
      "aten::uniform_",
      "aten::random_",
      "aten::bernoulli_",
      "aten::exponential_",
      "aten::geometric_",
      "aten::cauchy_",
      "aten::log_normal_",
      "aten::_foreach_zero_",
      "aten::_foreach_copy_",
      "aten::rrelu_with_noise",
      "aten::rrelu_with_noise_",
      "c10d::_allgather_base_",
      "c10d::_reduce_scatter_base_",
      "c10d::allgather_into_tensor_coalesced_",
      "c10d::alltoall_",
      "c10d::alltoall_base_",
      "c10d::reduce_scatter_tensor_coalesced_"};
  return names;
}

// Composites whose kernel reads elements on the host, unseen, so that what it calls, their sizes or
// numbers depend on them: run in one piece.
const std::unordered_set<std::string_view>& reads_on_host() {
  static const std::unordered_set<std::string_view> names = {
      "aten::_pack_padded_sequence_backward",
      "aten::_pad_packed_sequence",
      "aten::_reshape_from_tensor",
      "aten::_rowwise_prune",
      "aten::choose_qparams_optimized",
      "aten::ctc_loss.Tensor",
      "aten::fbgemm_linear_quantize_weight",
      "aten::gru.data",
      "aten::lstm.data",
      "aten::rnn_relu.data",
      "aten::rnn_tanh.data",
      "aten::sparse_coo_tensor.indices",
      "aten::tensor_split.tensor_indices_or_sections"};
  return names;
}

// Composites whose kernel computes results itself where no argument requires a gradient.
const std::unordered_set<std::string_view>& computes_without_grad() {
  static const std::unordered_set<std::string_view> names = {"aten::max_pool1d"};
  return names;
}

bool is_tensor(const c10::TypePtr& type) {
  return type->isSubtypeOf(*c10::OptionalType::ofTensor());
}

// Views and arithmetic element by element, but for what fails on an integer 0.
bool never_fails(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  const auto contains = [&](const char* part) { return name.find(part) != name.npos; };
  if (contains("remainder") || contains("fmod") || contains("floor_divide") ||
      op.operator_name().overload_name.find("mode") != name.npos)
    return false;
  static const std::unordered_set<std::string_view> copies = {"aten::clone", "aten::copy_",
                                                              "aten::zero_", "aten::fill_"};
  const auto& returns = op.schema().returns();
  const bool view = std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
  return view || op.hasTag(at::Tag::pointwise) || contains("::_foreach_") ||
         contains("::_fused_") || copies.count(name) > 0;
}

ArgumentKind kind_of(const c10::TypePtr& declared) {
  if (is_tensor(declared)) return ArgumentKind::tensor;
  c10::TypePtr type = declared;
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  const auto list = type->cast<c10::ListType>();
  return list && is_tensor(list->getElementType()) ? ArgumentKind::tensor_list
                                                   : ArgumentKind::other;
}

bool conceals_write(const std::string& base, const std::string& argument) {
  const auto& table = concealed_writes();
  return std::any_of(table.begin(), table.end(),
                     [&](const auto& row) { return row.first == base && row.second == argument; });
}

// Tensors in a type that is neither a tensor nor a list of tensors.
bool hides_tensors(const c10::TypePtr& type) {
  if (is_tensor(type)) return true;
  const auto parts = type->containedTypes();
  return type->kind() != c10::TypeKind::ClassType &&
         std::any_of(parts.begin(), parts.end(), hides_tensors);
}

// The reason why a call of it can be no node; empty for most operators.
std::string refusal_of(const c10::FunctionSchema& schema) {
  static const std::unordered_set<std::string_view> point_to_point = {
      "c10d::send",
      "c10d::recv_",
      "c10d::recv_any_source_",
      "_c10d_functional::isend",
      "_c10d_functional::irecv",
      "_c10d_functional::batch_p2p_ops"};
  if (point_to_point.count(schema.name()) > 0)
    return "messages from one process to another are not captured, since each is waited for: use a "
           "collective operator";
  for (const c10::Argument& argument : schema.arguments())
    if (kind_of(argument.real_type()) == ArgumentKind::other && hides_tensors(argument.real_type()))
      return "its argument '" + argument.name() + "' is of type " + argument.type()->str() +
             ", whose tensors no operand stands for: use an operator that takes tensors or lists "
             "of "
             "them";
  return {};
}

bool written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// A composite's kernel calls other operators, which are recorded inside it. An operator that has
// both kinds of kernel
// ("linear") runs the composite one on the CPU unless it also has one of its own there.
bool runs_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(DispatchKey::AutogradCPU);
}

// It tells the program something other than tensors. (An object beside tensors is no answer.)
bool answers_host(const c10::FunctionSchema& schema) {
  const auto is_number = [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::NumberType::get()) ||
           result.type()->kind() == c10::TypeKind::BoolType;
  };
  const auto is_no_tensor = [](const c10::Argument& result) {
    return kind_of(result.real_type()) == ArgumentKind::other &&
           result.type()->kind() != c10::TypeKind::ClassType;
  };
  const auto& results = schema.returns();
  return !results.empty() && (std::any_of(results.begin(), results.end(), is_number) ||
                              std::all_of(results.begin(), results.end(), is_no_tensor));
}

std::string base_name(const c10::OperatorName& name) {
  return name.name.substr(name.name.find("::") + 2);
}

bool same_arguments(const c10::FunctionSchema& a, const c10::FunctionSchema& b,
                    bool drop_out_of_a) {
  size_t i = 0;
  for (const c10::Argument& argument : a.arguments()) {
    if (drop_out_of_a && argument.is_out()) continue;
    if (i == b.arguments().size()) return false;
    const c10::Argument& other = b.arguments()[i++];
    if (argument.name() != other.name() || *argument.real_type() != *other.real_type() ||
        written(other))
      return false;
  }
  return i == b.arguments().size();
}

// `add_` has `add`, `normal_` has `normal_functional`, `add.out` has `add.Tensor`: found by name
// and arguments, so that a new operator finds its own.
const OpInfo* find_twin(const OpInfo& info) {
  const c10::OperatorName name = info.schema->operator_name();
  const bool has_out = std::find(info.out.begin(), info.out.end(), true) != info.out.end();
  std::string base = base_name(name);
  if (!has_out) {
    if (base.size() < 2 || base.back() != '_' || base.substr(base.size() - 2) == "__")
      return nullptr;
    base.pop_back();
  }
  static const auto* overloads = [] {
    auto* map = new std::unordered_multimap<std::string, c10::OperatorName>;
    for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) map->emplace(op.name, op);
    return map;
  }();
  const std::string domain = name.name.substr(0, name.name.find("::") + 2);
  for (const std::string& candidate :
       {domain + base, domain + base + "_functional", domain + base + "_copy"}) {
    const auto [begin, end] = overloads->equal_range(candidate);
    for (auto it = begin; it != end; ++it) {
      const auto handle = c10::Dispatcher::singleton().findSchema(it->second);
      if (handle && same_arguments(*info.schema, handle->schema(), has_out))
        return &op_info(*handle);
    }
  }
  return nullptr;
}

}  // namespace

const std::vector<std::pair<std::string_view, std::string_view>>& concealed_writes() {
  static const std::vector<std::pair<std::string_view, std::string_view>> table = {
      {"aten::_batch_norm_impl_index", "running_mean"},
      {"aten::_batch_norm_impl_index", "running_var"},
      {"aten::_cudnn_rnn_backward", "reserve"},
      {"aten::batch_norm", "running_mean"},
      {"aten::batch_norm", "running_var"},
      {"aten::batch_norm_gather_stats", "running_mean"},
      {"aten::batch_norm_gather_stats", "running_var"},
      {"aten::batch_norm_gather_stats_with_counts", "running_mean"},
      {"aten::batch_norm_gather_stats_with_counts", "running_var"},
      {"aten::batch_norm_update_stats", "running_mean"},
      {"aten::batch_norm_update_stats", "running_var"},
      {"aten::cudnn_batch_norm", "running_mean"},
      {"aten::cudnn_batch_norm", "running_var"},
      {"aten::cudnn_batch_norm_backward", "reserveSpace"},
      {"aten::instance_norm", "running_mean"},
      {"aten::instance_norm", "running_var"},
      {"aten::miopen_batch_norm", "running_mean"},
      {"aten::miopen_batch_norm", "running_var"},
      {"aten::miopen_rnn_backward", "reserve"},
      {"aten::mkldnn_rnn_layer_backward", "workspace"},
      {"aten::native_batch_norm", "running_mean"},
      {"aten::native_batch_norm", "running_var"},
      {"c10d::_allgather_base_", "output_tensor"},
      {"c10d::_reduce_scatter_base_", "output_tensor"},
      {"c10d::allgather_into_tensor_coalesced_", "outputs"},
      {"c10d::allreduce_", "tensors"},
      {"c10d::allreduce_coalesced_", "tensors"},
      {"c10d::alltoall_", "output_tensors"},
      {"c10d::alltoall_base_", "output"},
      {"c10d::broadcast_", "tensors"},
      {"c10d::reduce_", "tensors"},
      {"c10d::reduce_scatter_tensor_coalesced_", "outputs"},
  };
  return table;
}

bool is_workspace(const OpInfo& op, size_t output) {
  static const std::map<std::string_view, size_t> outputs = {{"aten::mkldnn_rnn_layer", 3},
                                                             {"aten::_cudnn_rnn", 3},
                                                             {"aten::miopen_rnn", 3},
                                                             {"aten::cudnn_batch_norm", 3}};
  const auto found = outputs.find(op.name.str());
  return found != outputs.end() && found->second == output;
}

OpInfo::OpInfo(const c10::OperatorHandle& op)
    : handle(op), schema(&op.schema()), name(c10::toString(op.operator_name())) {
  const std::string base = schema->name();
  for (const c10::Argument& argument : schema->arguments()) {
    arguments.push_back(kind_of(argument.real_type()));
    argument_names.emplace_back(argument.name());
    writes.push_back(written(argument) || conceals_write(base, argument.name()));
    out.push_back(argument.is_out());
    writes_any = writes_any || writes.back();
  }
  for (const c10::Argument& result : schema->returns()) returns_written.push_back(written(result));
  inplace_view = op.hasTag(at::Tag::inplace_view);
  // Marks for a profiler compute nothing.
  metadata = inplace_view || metadata_ops().count(base) > 0 || name.domain() == "profiler";
  const bool on_host = reads_on_host().count(name.str()) > 0;
  composite = !metadata && !on_host && runs_composite(op);
  value_query = !metadata && !composite && answers_host(*schema);
  if (writes_any && !metadata) twin = find_twin(*this);
  dynamic_shape = on_host || op.hasTag(at::Tag::dynamic_output_shape) ||
                  untagged_dynamic_shapes().count(name.str()) > 0 ||
                  (twin != nullptr && twin->dynamic_shape);
  foreign = !is_own_domain(name.domain());
  asynchronous = name.domain() == "c10d" || name.domain().starts_with("_c10d_functional");
  refused = refusal_of(*schema);
  may_draw = op.hasTag(at::Tag::nondeterministic_seeded) || name.domain() != "aten";
  always_draws = draws_by_value().count(base) > 0;
  as_strided = name == composit::Symbol("aten::as_strided");
  reads_storage = base == "aten::as_strided_scatter" || base == "aten::as_strided_copy";
  unwritten = makes_no_content().count(base) > 0;
  fills = name == composit::Symbol("aten::fill_.Scalar");
  packed = base == "aten::_convert_weight_to_int4pack_for_cpu" ||
           base == "aten::_weight_int4pack_mm_for_cpu";
  const bool sizes_only = metadata || reads_no_elements(name.str(), base);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool may_return_view = schema->arguments()[i].alias_info() != nullptr && !writes[i];
    const bool overwrites = out[i] || (writes[i] && overwriting_ops().count(base) > 0);
    reads.push_back(!sizes_only && !composite && !may_return_view && !overwrites);
  }
  steady = !metadata && !dynamic_shape && !value_query && never_fails(op);
  clone = name == composit::Symbol("aten::clone");
  detach = name == composit::Symbol("aten::detach");
  if (writes_any) find_write_switch();
  // A composite kernel of a user may do anything; where autograd takes no part, it is one node.
  if (computes_without_grad().count(name.str()) > 0 || (foreign && composite)) {
    auto whole = std::make_shared<OpInfo>(*this);
    whole->composite = false;
    whole->value_query = answers_host(*schema);
    for (size_t i = 0; i < arguments.size(); ++i) whole->reads[i] = true;
    without_grad = std::move(whole);
  }
}

bool OpInfo::needs_grad(c10::ArrayRef<c10::IValue> arguments) {
  return at::GradMode::is_enabled() &&
         std::any_of(arguments.begin(), arguments.end(), [](const c10::IValue& argument) {
           if (argument.isTensor()) return argument.toTensor().requires_grad();
           if (!argument.isTensorList() && !argument.isOptionalTensorList()) return false;
           const auto& list = argument.toListRef();
           return std::any_of(list.begin(), list.end(), [](const c10::IValue& item) {
             return item.isTensor() && item.toTensor().requires_grad();
           });
         });
}

const OpInfo& OpInfo::writing(const std::vector<int64_t>& seen) const {
  if (seen.empty()) return *this;
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<std::pair<const OpInfo*, std::vector<int64_t>>, OpInfo>;
  std::lock_guard lock(*mutex);
  const auto [entry, fresh] = known->try_emplace({this, seen}, *this);
  OpInfo& info = entry->second;
  if (!fresh) return info;
  info.observed = seen;
  for (const int64_t argument : seen) info.writes.at(static_cast<size_t>(argument)) = true;
  info.writes_any = true;
  info.twin = nullptr;
  return info;
}

void OpInfo::find_write_switch() {
  const auto is_concealed = [&](size_t i) { return writes[i] && !written(schema->arguments()[i]); };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (writes[i] && !is_concealed(i)) return;
    const std::string_view argument = argument_names[i].str();
    if (argument == "training" || argument == "use_input_stats") write_switch = i;
  }
  if (!write_switch) return;
  auto off = std::make_shared<OpInfo>(*this);
  off->write_switch.reset();
  off->writes.assign(arguments.size(), false);
  off->writes_any = false;
  off->twin = nullptr;
  switched_off = std::move(off);
}

const OpInfo& op_info(const c10::OperatorHandle& handle) {
  // Keyed by the address of the operator's own schema; a small direct-mapped cache per thread in
  // front.
  static auto* mutex = new std::shared_mutex;
  static auto* table = new std::unordered_map<const void*, std::unique_ptr<OpInfo>>;
  struct Entry {
    const void* key;
    const OpInfo* info;
  };
  thread_local Entry cache[256] = {};
  const void* key = &handle.schema();
  Entry& entry = cache[(reinterpret_cast<uintptr_t>(key) >> 6) & 255];
  if (entry.key == key) return *entry.info;
  const OpInfo* found = nullptr;
  {
    std::shared_lock lock(*mutex);
    if (auto it = table->find(key); it != table->end()) found = it->second.get();
  }
  if (found == nullptr) {
    auto fresh = std::make_unique<OpInfo>(handle);  // outside the lock: it looks up its twin
    std::unique_lock lock(*mutex);
    found = table->emplace(key, std::move(fresh)).first->second.get();
  }
  entry = {key, found};
  return *found;
}

const OpInfo* find_op(std::string_view name) {
  const auto dot = name.find('.');
  const std::string base(name.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view()
                                                           : name.substr(dot + 1));
  const auto handle = c10::Dispatcher::singleton().findSchema({base, overload});
  return handle ? &op_info(*handle) : nullptr;
}

}  // namespace flashlight::tracer
