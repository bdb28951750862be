#include "flashlight/pjrt/client.h"

#include <dlfcn.h>

#include <deque>
#include <map>
#include <mutex>

#include "composit/ir/error.h"
#include "composit/ir/print.h"

namespace flashlight::pjrt {
namespace {

using composit::DType;
using composit::Type;
using composit::UserError;

[[noreturn]] void refuse(const std::string& path, const std::string& expected,
                         const std::string& received) {
  throw UserError("[pjrt] " + path + ": expected " + expected + ", received " + received);
}

// CompileOptionsProto with one replica and one partition (fields 4 and 5 of its field 3).
constexpr std::string_view kOneDevice("\x1a\x04\x20\x01\x28\x01", 6);

ElementType element_type(const Type& type) {
  static const std::map<DType, ElementType> table = {
      {DType::bool_, ElementType::pred},     {DType::int8, ElementType::s8},
      {DType::int16, ElementType::s16},      {DType::int32, ElementType::s32},
      {DType::int64, ElementType::s64},      {DType::uint8, ElementType::u8},
      {DType::uint16, ElementType::u16},     {DType::uint32, ElementType::u32},
      {DType::uint64, ElementType::u64},     {DType::float16, ElementType::f16},
      {DType::float32, ElementType::f32},    {DType::float64, ElementType::f64},
      {DType::bfloat16, ElementType::bf16},  {DType::complex64, ElementType::c64},
      {DType::complex128, ElementType::c128}};
  const auto found = table.find(type.dtype);
  if (found == table.end()) throw UserError("[pjrt] there are no buffers of " + print(type));
  return found->second;
}

}  // namespace

Library::Library(const std::filesystem::path& path) : path_(path.string()) {
  void* const library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    refuse(path_, "a library that this program can load",
           std::string("one it cannot: ") + ::dlerror());
  auto* const get = reinterpret_cast<const Api* (*)()>(::dlsym(library, "GetPjrtApi"));
  if (get == nullptr)
    refuse(path_, "a plugin of PJRT", "a library that does not export GetPjrtApi");
  api_ = get();
  if (api_ == nullptr) refuse(path_, "a table of functions", "none");
  const Version& version = api_->version;
  if (version.major != kMajor || version.minor < kLeastMinor || api_->head.size < sizeof(Api))
    refuse(path_,
           "version " + std::to_string(kMajor) + "." + std::to_string(kLeastMinor) +
               " of PJRT's interface or a later one of " + std::to_string(kMajor),
           "version " + std::to_string(version.major) + "." + std::to_string(version.minor));
  PluginInitialize initialize{};
  call(Function::plugin_initialize, initialize);
  ClientCreate create{};
  call(Function::client_create, create);
  client_ = create.client;
  ClientPlatformName name{{}, client_, nullptr, 0};
  call(Function::client_platform_name, name);
  platform_.assign(name.name, name.name_size);
  ClientAddressableDevices devices{{}, client_, nullptr, 0};
  call(Function::client_addressable_devices, devices);
  devices_.assign(devices.devices, devices.devices + devices.device_count);
  if (devices_.empty()) refuse(path_, "a device", "none");
}

Library::~Library() {
  if (client_ != nullptr) release(Function::client_destroy, ClientDestroy{{}, client_});
}

void* Library::address(Function function) const {
  return api_->functions[static_cast<size_t>(function)];
}

void Library::expect_none(pjrt::Error* error) const {
  if (error == nullptr) return;
  ErrorMessage message{{sizeof(ErrorMessage)}, error, nullptr, 0};
  reinterpret_cast<void (*)(ErrorMessage*)>(address(Function::error_message))(&message);
  const std::string text(message.message, message.message_size);
  drop(error);
  throw UserError("[pjrt] " + path_ + ": " + text);
}

void Library::drop(pjrt::Error* error) const noexcept {
  if (error == nullptr) return;
  ErrorDestroy destroy{{sizeof(ErrorDestroy)}, error};
  reinterpret_cast<void (*)(ErrorDestroy*)>(address(Function::error_destroy))(&destroy);
}

void Library::await(Event* event) const {
  if (event == nullptr) return;
  EventArguments arguments{{sizeof(EventArguments)}, event};
  using Pointer = pjrt::Error* (*)(EventArguments*);
  pjrt::Error* const error = reinterpret_cast<Pointer>(address(Function::event_await))(&arguments);
  release(Function::event_destroy, EventArguments{{}, event});
  expect_none(error);
}

Device* Library::device(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(devices_.size()))
    refuse(path_, "a device from 0 to " + std::to_string(devices_.size() - 1),
           std::to_string(number));
  return devices_[static_cast<size_t>(number)];
}

std::shared_ptr<const Library> library_at(const std::filesystem::path& path) {
  static std::mutex mutex;
  // Never freed: a library's threads may run until the process ends.
  static auto* const known = new std::map<std::string, std::shared_ptr<const Library>>();
  if (path.empty())
    throw UserError(
        "[pjrt] expected the path of a plugin of PJRT, as XLA's for a machine, in the option "
        "`pjrt`, received none");
  const std::string full = std::filesystem::absolute(path).string();
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Library>& library = (*known)[full];
  if (!library) library = std::make_shared<const Library>(full);
  return library;
}

DeviceArray::DeviceArray(std::shared_ptr<const Library> library, Device* device, const void* data,
                         const Type& type)
    : library_(std::move(library)) {
  ClientBufferFromHostBuffer copy{};
  copy.client = library_->client();
  copy.data = data;
  copy.type = element_type(type);
  copy.sizes = type.sizes.data();
  copy.size_count = type.rank();
  copy.device = device;
  library_->call(Function::client_buffer_from_host_buffer, copy);
  try {
    library_->await(copy.done);
  } catch (...) {
    library_->release(Function::buffer_destroy, BufferDestroy{{}, copy.buffer});
    throw;
  }
  buffer_ = copy.buffer;
}

DeviceArray::~DeviceArray() {
  if (buffer_ != nullptr) library_->release(Function::buffer_destroy, BufferDestroy{{}, buffer_});
}

void DeviceArray::to_host(void* data, const Type& type) const {
  std::vector<int64_t> axes;
  for (size_t axis = type.rank(); axis-- > 0;) axes.push_back(static_cast<int64_t>(axis));
  Layout layout{};
  layout.head.size = sizeof(Layout);
  constexpr size_t kEndOfTiled = offsetof(Layout, kind) - offsetof(Layout, tiled_head);
  layout.tiled_head.size = kEndOfTiled;
  layout.minor_to_major = axes.data();
  layout.axis_count = axes.size();
  BufferToHostBuffer copy{{}, buffer_, &layout, data, static_cast<size_t>(type.nbytes()), nullptr};
  library_->call(Function::buffer_to_host_buffer, copy);
  library_->await(copy.done);
}

LoadedProgram::LoadedProgram(std::shared_ptr<const Library> library, const std::string& module,
                             int64_t device)
    : library_(std::move(library)), device_(library_->device(device)) {
  constexpr std::string_view kFormat = "mlir";
  const Program program{
      {sizeof(Program)}, module.data(), module.size(), kFormat.data(), kFormat.size()};
  ClientCompile compile{{},     library_->client(), &program, kOneDevice.data(), kOneDevice.size(),
                        nullptr};
  library_->call(Function::client_compile, compile);
  executable_ = compile.executable;
}

LoadedProgram::~LoadedProgram() {
  library_->release(Function::loaded_executable_destroy, LoadedExecutableDestroy{{}, executable_});
}

std::shared_ptr<const DeviceArray> LoadedProgram::to_device(const void* data,
                                                            const Type& type) const {
  return std::make_shared<const DeviceArray>(library_, device_, data, type);
}

void LoadedProgram::run(const DeviceArrays& arguments, const std::vector<void*>& results,
                        const std::vector<Type>& result_types) const {
  std::vector<DeviceBuffer*> inputs, outputs(results.size());
  std::vector<int64_t> kept;  // all: calls at the same time, and later ones, read them as well
  for (const auto& argument : arguments) {
    kept.push_back(static_cast<int64_t>(kept.size()));
    inputs.push_back(argument->buffer());
  }
  ExecuteOptions options{};
  options.head.size = sizeof(ExecuteOptions);
  options.not_donated = kept.data();
  options.not_donated_count = kept.size();
  DeviceBuffer* const* const input_list = inputs.data();
  DeviceBuffer** const output_list = outputs.data();
  Event* done = nullptr;
  LoadedExecutableExecute execute{
      {}, executable_, &options, &input_list, 1, inputs.size(), &output_list, &done, nullptr};
  library_->call(Function::loaded_executable_execute, execute);
  std::deque<DeviceArray> given;
  for (DeviceBuffer* output : outputs) given.emplace_back(library_, output);
  library_->await(done);
  for (size_t i = 0; i < results.size(); ++i) given[i].to_host(results[i], result_types[i]);
}

}  // namespace flashlight::pjrt
