// Runs an exported network on files of raw numbers:
//
//   run FOLDER [--threads N] [--sessions N] [--seconds S] [--out PREFIX] INPUT...
//
// Each INPUT is a file with the numbers of one input. Output I goes to the file PREFIX<I>.bin. With
// --sessions N, N threads run the network at the same time, each in its own session. With
// --seconds S, the program repeats the run for S seconds and prints the median time of a run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ansor_network.h"

namespace {

constexpr size_t kAlignment = 64;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string folder, prefix = "output";
  int threads = 0, sessions = 1;
  double seconds = 0;
  std::vector<std::string> inputs;
};

Options Parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string word = arguments[i];
    if (word.rfind("--", 0)) {
      (options.folder.empty() ? options.folder : options.inputs.emplace_back()) = word;
      continue;
    }
    if (++i == count) throw std::runtime_error(word + " needs a value");
    if (word == "--threads") {
      options.threads = std::atoi(arguments[i]);
    } else if (word == "--sessions") {
      options.sessions = std::atoi(arguments[i]);
    } else if (word == "--seconds") {
      options.seconds = std::atof(arguments[i]);
    } else if (word == "--out") {
      options.prefix = arguments[i];
    } else {
      throw std::runtime_error("unknown option " + word);
    }
  }
  if (options.folder.empty()) throw std::runtime_error("give the folder of an exported network");
  return options;
}

void Check(int status) {
  if (status) throw std::runtime_error(ansor_last_error());
}

// Memory at an address that the network reads in place.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes), storage_(bytes + kAlignment) {
    size_t past = reinterpret_cast<uintptr_t>(storage_.data()) % kAlignment;
    data_ = storage_.data() + (past ? kAlignment - past : 0);
  }
  Memory(Memory&&) = default;

  ansor_buffer buffer() { return {data_, bytes_}; }

 private:
  size_t bytes_;
  std::vector<char> storage_;
  char* data_;
};

Memory ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Memory memory(bytes.size());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(memory.buffer().data));
  return memory;
}

std::vector<ansor_buffer> Buffers(std::vector<Memory>& memories) {
  std::vector<ansor_buffer> found;
  for (Memory& memory : memories) found.push_back(memory.buffer());
  return found;
}

// A session with its outputs.
struct Session {
  Session(const ansor_network* network, const std::vector<ansor_buffer>& inputs) : inputs(inputs) {
    Check(ansor_session_open(network, &session));
    for (size_t i = 0; i < ansor_num_outputs(network); ++i) {
      memories.emplace_back(ansor_output(network, i)->bytes);
    }
    outputs = Buffers(memories);
  }
  ~Session() { ansor_session_close(session); }

  int Run() {
    return ansor_session_run(session, inputs.data(), inputs.size(), outputs.data(),
                             outputs.size());
  }

  const std::vector<ansor_buffer>& inputs;
  ansor_session* session = nullptr;
  std::vector<Memory> memories;
  std::vector<ansor_buffer> outputs;
};

// Median seconds of a run.
double Time(Session& session, double seconds) {
  std::vector<double> times;
  auto begin = Clock::now(), last = begin;
  while (std::chrono::duration<double>(last - begin).count() < seconds) {
    Check(session.Run());
    auto now = Clock::now();
    times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

void Write(const std::string& prefix, const std::vector<ansor_buffer>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::ofstream file(prefix + std::to_string(i) + ".bin", std::ios::binary);
    file.write(static_cast<const char*>(outputs[i].data), std::streamsize(outputs[i].bytes));
    if (!file) throw std::runtime_error(prefix + ": cannot be written");
  }
}

void Run(const Options& options) {
  ansor_network* network = nullptr;
  Check(ansor_network_open(options.folder.c_str(), options.threads, &network));
  std::vector<Memory> memories;
  for (const std::string& path : options.inputs) memories.push_back(ReadFile(path));
  std::vector<ansor_buffer> inputs = Buffers(memories);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(options.sessions);
  for (int number = 0; number < options.sessions; ++number) {
    threads.emplace_back([&, number] {
      try {
        Session session(network, inputs);
        Check(session.Run());
        Write(options.prefix + (number ? "s" + std::to_string(number) + "-" : ""), session.outputs);
        if (options.seconds > 0) std::printf("%.9f\n", Time(session, options.seconds));
      } catch (const std::exception& error) {
        errors[number] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ansor_network_close(network);
  for (const std::string& error : errors) {
    if (!error.empty()) throw std::runtime_error(error);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Run(Parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
