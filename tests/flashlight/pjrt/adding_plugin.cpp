// A plugin of PJRT whose programs add up their arguments, element by element, whatever their text
// says: float32, one result. It counts copies to its device, and what lies there.
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "flashlight/pjrt/api.h"

namespace flashlight::pjrt {

struct DeviceBuffer {
  std::vector<float> elements;
};

namespace {

std::atomic<size_t> copies, buffers;

template <class Arguments>
using Body = Error* (*)(Arguments*);

template <class Arguments>
void set(Api& api, Function function, Body<Arguments> body) {
  api.functions[static_cast<size_t>(function)] = reinterpret_cast<void*>(body);
}

DeviceBuffer* made(std::vector<float> elements) {
  ++buffers;
  return new DeviceBuffer{std::move(elements)};
}

// Objects of which there is one each.
template <class Object>
Object* only() {
  static char one;
  return reinterpret_cast<Object*>(&one);
}

Error* devices(ClientAddressableDevices* of) {
  static Device* const all[] = {only<Device>()};
  of->devices = all;
  of->device_count = 1;
  return nullptr;
}

Error* copy_from_host(ClientBufferFromHostBuffer* of) {
  ++copies;
  const int64_t count = std::accumulate(of->sizes, of->sizes + of->size_count, int64_t{1},
                                        std::multiplies<int64_t>());
  const auto* const first = static_cast<const float*>(of->data);
  of->buffer = made({first, first + count});
  of->done = nullptr;
  return nullptr;
}

Error* execute(LoadedExecutableExecute* of) {
  std::vector<float> sum(of->arguments[0][0]->elements.size());
  for (size_t i = 0; i < of->argument_count; ++i)
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += of->arguments[0][i]->elements[k];
  of->results[0][0] = made(std::move(sum));
  of->done[0] = nullptr;
  return nullptr;
}

Error* copy_to_host(BufferToHostBuffer* of) {
  std::memcpy(of->data, of->buffer->elements.data(), of->data_size);
  of->done = nullptr;
  return nullptr;
}

Error* destroy_buffer(BufferDestroy* of) {
  --buffers;
  delete of->buffer;
  return nullptr;
}

void set_all(Api& api) {
  set<PluginInitialize>(api, Function::plugin_initialize, [](auto*) -> Error* { return nullptr; });
  set<ClientCreate>(api, Function::client_create, [](auto* of) -> Error* {
    of->client = only<Client>();
    return nullptr;
  });
  set<ClientPlatformName>(api, Function::client_platform_name, [](auto* of) -> Error* {
    of->name = "adding";
    of->name_size = std::strlen(of->name);
    return nullptr;
  });
  set<ClientAddressableDevices>(api, Function::client_addressable_devices, devices);
  set<ClientCompile>(api, Function::client_compile, [](auto* of) -> Error* {
    of->executable = only<Executable>();
    return nullptr;
  });
  set<ClientBufferFromHostBuffer>(api, Function::client_buffer_from_host_buffer, copy_from_host);
  set<LoadedExecutableDestroy>(api, Function::loaded_executable_destroy,
                               [](auto*) -> Error* { return nullptr; });
  set<LoadedExecutableExecute>(api, Function::loaded_executable_execute, execute);
  set<BufferDestroy>(api, Function::buffer_destroy, destroy_buffer);
  set<BufferToHostBuffer>(api, Function::buffer_to_host_buffer, copy_to_host);
}

}  // namespace
}  // namespace flashlight::pjrt

extern "C" {

const flashlight::pjrt::Api* GetPjrtApi() {
  static flashlight::pjrt::Api api{};
  api.head.size = sizeof api;
  api.version = {{sizeof api.version}, flashlight::pjrt::kMajor, flashlight::pjrt::kLeastMinor};
  flashlight::pjrt::set_all(api);
  return &api;
}

size_t adding_plugin_copies() { return flashlight::pjrt::copies; }
size_t adding_plugin_buffers() { return flashlight::pjrt::buffers; }

}  // extern "C"
