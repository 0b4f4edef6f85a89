// The threads that parallel loops run on: one pool for all networks of a process.
#pragma once

#include <sched.h>

#include <vector>

int ansor_available_cores();

namespace ansor {

constexpr int kMaxThreads = 256;

// Lets code that is loaded from now on run its loops on the pool. Starts no thread.
void UseThreads();

// Gives the pool to the calling thread, unless another thread has it, and keeps the calling thread
// off the cores of the other threads.
class HeldThreads {
 public:
  explicit HeldThreads(int threads);
  ~HeldThreads();
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;

 private:
  bool held_, moved_ = false;
  cpu_set_t before_;
};

}  // namespace ansor
