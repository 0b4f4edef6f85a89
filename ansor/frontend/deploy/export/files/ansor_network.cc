// Implements ansor_network.h with TVM's runtime library. `ansor_threads.cc` has the threads.
#include "ansor_network.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ansor_threads.h"

namespace {

namespace ffi = tvm::ffi;

constexpr size_t kAlignment = 64;           // of arrays, which the network's code relies on
constexpr size_t kHugePage = size_t(2) << 20;
constexpr int kFormat = 1;                  // of network.txt
constexpr int kPooledAllocator = 2;         // of TVM's virtual machine

struct Spec {
  std::string name, dtype;
  std::vector<int64_t> shape;
  DLDataType type{};
  size_t bytes = 0;
};

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Memory for arrays that stay, in huge pages where the system has them.
class Block {
 public:
  explicit Block(size_t bytes) : size_(bytes + kHugePage) {
    begin_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    madvise(begin_, size_, MADV_HUGEPAGE);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { munmap(begin_, size_); }

  char* data() const {
    auto address = reinterpret_cast<uintptr_t>(begin_);
    return reinterpret_cast<char*>((address + kHugePage - 1) / kHugePage * kHugePage);
  }

 private:
  void* begin_;
  size_t size_;
};

// A tensor in memory that outlives it.
ffi::Tensor View(void* data, const Spec& spec) {
  struct Owner {
    DLManagedTensor tensor;
    std::vector<int64_t> shape;
  };
  auto* owner = new Owner{{}, spec.shape};
  DLTensor& view = owner->tensor.dl_tensor;
  view.data = data;
  view.device = {kDLCPU, 0};
  view.ndim = static_cast<int32_t>(owner->shape.size());
  view.dtype = spec.type;
  view.shape = owner->shape.data();
  owner->tensor.manager_ctx = owner;
  owner->tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<Owner*>(self->manager_ctx);
  };
  return ffi::Tensor::FromDLPack(&owner->tensor);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A function of a module.
ffi::Function Find(const ffi::Module& module, const std::string& name) {
  ffi::Optional<ffi::Function> found = module->GetFunction(name);
  if (!found.has_value()) throw std::runtime_error("the code has no function " + name);
  return found.value();
}

// The content of network.txt.
struct Description {
  std::string entry;
  int threads = 1;
  std::vector<Spec> inputs, states, weights, outputs;

  explicit Description(const std::string& path) {
    std::ifstream file(path);
    std::string word;
    int version = 0;
    if (!(file >> word >> version) || word != "ansor-export") {
      throw std::runtime_error(path + ": cannot be read, or describes no exported network");
    }
    if (version != kFormat) {
      throw std::runtime_error(path + ": format " + std::to_string(version) +
                               " is not the format of this program; export the network again");
    }
    while (file >> word) {
      if (word == "entry") {
        file >> entry;
      } else if (word == "threads") {
        file >> threads;
      } else {
        Kind(path, word).push_back(ReadSpec(file));
      }
      if (!file) throw std::runtime_error(path + ": ends too early");
    }
  }

 private:
  std::vector<Spec>& Kind(const std::string& path, const std::string& word) {
    if (word == "input") return inputs;
    if (word == "state") return states;
    if (word == "weight") return weights;
    if (word == "output") return outputs;
    throw std::runtime_error(path + ": unknown entry " + word);
  }

  // Dtype, number of dimensions, shape, and the name up to the end of the line.
  static Spec ReadSpec(std::ifstream& file) {
    Spec spec;
    size_t dimensions = 0, elements = 1;
    file >> spec.dtype >> dimensions;
    for (size_t i = 0; i < dimensions && file; ++i) {
      int64_t extent = 0;
      file >> extent;
      spec.shape.push_back(extent);
      elements *= static_cast<size_t>(extent);
    }
    file.ignore(1);
    std::getline(file, spec.name);
    spec.type = ffi::StringToDLDataType(spec.dtype);
    spec.bytes = elements * ((spec.type.bits * spec.type.lanes + 7) / 8);
    return spec;
  }
};

// Code, weights and initial values; what sessions share.
struct Loaded {
  explicit Loaded(const std::string& folder, int wanted)
      : description(folder + "/network.txt"),
        block(BlockBytes(description)),
        program(ReadProgram(folder + "/network.vm")) {
    // The code names functions of this library, which a program may have loaded for itself alone.
    dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    program->ImportModule(ffi::Module::LoadFromFile(folder + "/libnetwork.so"));
    ReadWeights(folder + "/weights.bin");
    int most = ansor_available_cores();
    threads = wanted > 0 ? wanted : std::max(1, std::min(description.threads, most));
  }

  Description description;
  Block block;
  ffi::Module program;
  std::vector<ffi::Tensor> weights, states;
  int threads;

 private:
  static size_t BlockBytes(const Description& description) {
    size_t sum = 0;
    for (const auto* specs : {&description.weights, &description.states}) {
      for (const Spec& spec : *specs) sum += Aligned(spec.bytes);
    }
    return sum;
  }

  static ffi::Module ReadProgram(const std::string& path) {
    auto read = ffi::Function::GetGlobalRequired("ffi.Module.load_from_bytes.relax.VMExecutable");
    return read(ffi::Bytes(ReadFile(path))).cast<ffi::Module>();
  }

  void ReadWeights(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    char* place = block.data();
    for (auto [specs, tensors] : {std::pair(&description.weights, &weights),
                                  std::pair(&description.states, &states)}) {
      for (const Spec& spec : *specs) {
        if (!file.read(place, static_cast<std::streamsize>(Aligned(spec.bytes)))) {
          throw std::runtime_error(path + ": ends too early");
        }
        tensors->push_back(View(place, spec));
        place += Aligned(spec.bytes);
      }
    }
  }
};

thread_local std::string last_error;

// Runs a function; the status that the C interface returns.
template <typename F>
int Guarded(F function) {
  try {
    function();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown error";
  }
  return 1;
}

void Check(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument(message);
}

// The tensors of a result, which may be nested tuples.
void Flatten(const ffi::Any& result, std::vector<ffi::Tensor>* found) {
  if (auto tensor = result.try_cast<ffi::Tensor>()) {
    found->push_back(*tensor);
    return;
  }
  for (const ffi::Any& part : result.cast<ffi::Array<ffi::Any>>()) Flatten(part, found);
}

void CheckBuffers(const char* kind, const std::vector<Spec>& specs, const ansor_buffer* buffers,
                  size_t count) {
  Check(count == specs.size() && (buffers || !count),
        std::string("give ") + std::to_string(specs.size()) + " " + kind + " buffers");
  for (size_t i = 0; i < count; ++i) {
    std::string what = std::string(kind) + " " + specs[i].name + ": ";
    Check(buffers[i].bytes == specs[i].bytes,
          what + std::to_string(buffers[i].bytes) + " bytes; it has " +
              std::to_string(specs[i].bytes));
    Check(buffers[i].data || !specs[i].bytes, what + "null pointer");
  }
}

}  // namespace

struct ansor_network {
  std::shared_ptr<const Loaded> loaded;
  std::vector<ansor_tensor> inputs, outputs;
};

namespace {

std::vector<ansor_tensor> Tensors(const std::vector<Spec>& specs) {
  std::vector<ansor_tensor> found;
  for (const Spec& spec : specs) {
    found.push_back({spec.name.c_str(), spec.dtype.c_str(), spec.shape.data(), spec.shape.size(),
                     spec.bytes});
  }
  return found;
}

}  // namespace

struct ansor_session {
  explicit ansor_session(std::shared_ptr<const Loaded> source)
      : loaded(std::move(source)),
        machine(Find(loaded->program, "vm_load_executable")().cast<ffi::Module>()),
        function(Find(machine, loaded->description.entry)),
        states(loaded->states),
        staging(loaded->description.inputs.size()) {
    Find(machine, "vm_initialization")(int(kDLCPU), 0, kPooledAllocator);
  }

  void Run(const ansor_buffer* inputs, const ansor_buffer* outputs) {
    std::vector<ffi::Tensor> tensors;
    for (size_t i = 0; i < staging.size(); ++i) tensors.push_back(Input(i, inputs[i].data));
    std::vector<ffi::AnyView> arguments(tensors.begin(), tensors.end());
    arguments.insert(arguments.end(), states.begin(), states.end());
    arguments.insert(arguments.end(), loaded->weights.begin(), loaded->weights.end());
    ffi::Any result;
    {
      ansor::HeldThreads held(loaded->threads);
      function.CallPacked(arguments.data(), static_cast<int32_t>(arguments.size()), &result);
    }
    Keep(result, tensors, outputs);
  }

  std::mutex turn;
  std::shared_ptr<const Loaded> loaded;
  ffi::Module machine;
  ffi::Function function;
  std::vector<ffi::Tensor> states;                  // what the network keeps between calls
  std::vector<std::unique_ptr<Block>> kept_blocks;  // of states that a call made of its inputs
  std::vector<std::unique_ptr<Block>> staging;      // aligned memory of inputs

 private:
  ffi::Tensor Input(size_t index, void* data) {
    const Spec& spec = loaded->description.inputs[index];
    if (reinterpret_cast<uintptr_t>(data) % kAlignment) {
      auto& block = staging[index];
      if (!block) block = std::make_unique<Block>(spec.bytes);
      std::memcpy(block->data(), data, spec.bytes);
      data = block->data();
    }
    return View(data, spec);
  }

  // Copies the outputs to the caller and keeps the states.
  void Keep(const ffi::Any& result, const std::vector<ffi::Tensor>& inputs,
            const ansor_buffer* outputs) {
    std::vector<ffi::Tensor> found;
    Flatten(result, &found);
    const auto& specs = loaded->description.outputs;
    Check(found.size() == specs.size() + states.size(), "the code returns other outputs");
    for (size_t i = 0; i < specs.size(); ++i) {
      std::memcpy(outputs[i].data, found[i].data_ptr(), specs[i].bytes);
    }
    std::vector<ffi::Tensor> next(found.begin() + specs.size(), found.end());
    std::vector<std::unique_ptr<Block>> blocks;
    for (size_t i = 0; i < next.size(); ++i) {
      const Spec& spec = loaded->description.states[i];
      if (!Within(next[i], inputs)) continue;
      blocks.push_back(std::make_unique<Block>(spec.bytes));
      std::memcpy(blocks.back()->data(), next[i].data_ptr(), spec.bytes);
      next[i] = View(blocks.back()->data(), spec);
    }
    states = std::move(next);
    kept_blocks = std::move(blocks);
  }

  // Whether a tensor lies in memory that belongs to the caller, or to the next call's inputs.
  bool Within(const ffi::Tensor& tensor, const std::vector<ffi::Tensor>& inputs) const {
    auto* data = static_cast<const char*>(tensor.data_ptr());
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto* first = static_cast<const char*>(inputs[i].data_ptr());
      if (data >= first && data < first + loaded->description.inputs[i].bytes) return true;
    }
    return false;
  }
};

extern "C" {

int ansor_network_open(const char* folder, int threads, ansor_network** network) {
  return Guarded([&] {
    Check(folder && network, "null pointer");
    Check(threads >= 0 && threads <= ansor::kMaxThreads,
          "threads: give 0 to " + std::to_string(ansor::kMaxThreads));
    ansor::UseThreads();  // before the code is loaded, which then calls them
    auto loaded = std::make_shared<const Loaded>(folder, threads);
    auto made = std::make_unique<ansor_network>();
    made->inputs = Tensors(loaded->description.inputs);
    made->outputs = Tensors(loaded->description.outputs);
    made->loaded = std::move(loaded);
    *network = made.release();
  });
}

void ansor_network_close(ansor_network* network) { delete network; }

int ansor_network_threads(const ansor_network* network) { return network->loaded->threads; }

size_t ansor_num_inputs(const ansor_network* network) { return network->inputs.size(); }

size_t ansor_num_outputs(const ansor_network* network) { return network->outputs.size(); }

const ansor_tensor* ansor_input(const ansor_network* network, size_t index) {
  return index < network->inputs.size() ? &network->inputs[index] : nullptr;
}

const ansor_tensor* ansor_output(const ansor_network* network, size_t index) {
  return index < network->outputs.size() ? &network->outputs[index] : nullptr;
}

int ansor_session_open(const ansor_network* network, ansor_session** session) {
  return Guarded([&] {
    Check(network && session, "null pointer");
    *session = std::make_unique<ansor_session>(network->loaded).release();
  });
}

void ansor_session_close(ansor_session* session) { delete session; }

int ansor_session_run(ansor_session* session, const ansor_buffer* inputs, size_t num_inputs,
                      const ansor_buffer* outputs, size_t num_outputs) {
  return Guarded([&] {
    Check(session, "null pointer");
    const auto& description = session->loaded->description;
    CheckBuffers("input", description.inputs, inputs, num_inputs);
    CheckBuffers("output", description.outputs, outputs, num_outputs);
    std::lock_guard<std::mutex> turn(session->turn);
    session->Run(inputs, outputs);
  });
}

int ansor_session_reset(ansor_session* session) {
  return Guarded([&] {
    Check(session, "null pointer");
    std::lock_guard<std::mutex> turn(session->turn);
    session->states = session->loaded->states;
  });
}

const char* ansor_last_error(void) { return last_error.c_str(); }

}  // extern "C"
