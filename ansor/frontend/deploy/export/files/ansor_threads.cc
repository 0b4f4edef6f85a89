// Starts the threads whose code is in threads.o.
#include "ansor_threads.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <system_error>

extern "C" {
void ansor_pool_use(void* pool);
int32_t ansor_pool_acquire(int32_t threads);
void ansor_pool_release();
int32_t ansor_pool_launch(void* function, void* data, int32_t tasks);
void* ansor_pool_worker(void* slot);
}

namespace {

constexpr int kMaxWorkers = ansor::kMaxThreads - 1;

// The layout that threads.o expects.
struct Slot {
  int32_t state, task;
  void* pool;
  char rest[112];
};
struct Pool {
  int64_t owner;
  int32_t workers, limit;
  void (*fail)(const char*, const char*);
  char rest[40], launch[64];
  Slot slots[kMaxWorkers];
};
static_assert(sizeof(Slot) == 128 && offsetof(Pool, slots) == 128, "layout of threads.o");

std::mutex changing;
Pool* pool = nullptr;
cpu_set_t worker_cores[kMaxWorkers];  // the cores of each thread; empty for any

cpu_set_t AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  return allowed;
}

// Processors that this process may use, one of each core.
std::vector<int> OnePerCore() {
  cpu_set_t allowed = AllowedCores();
  std::set<std::string> seen;
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::string number = std::to_string(cpu), siblings = number;
    std::ifstream file("/sys/devices/system/cpu/cpu" + number + "/topology/thread_siblings_list");
    std::getline(file, siblings);
    if (seen.insert(siblings.empty() ? number : siblings).second) found.push_back(cpu);
  }
  return found;
}

void NewPool() {
  void* memory = mmap(nullptr, sizeof(Pool), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  pool = static_cast<Pool*>(memory);  // never freed: its threads run until the process ends
  pool->fail = TVMFFIErrorSetRaisedFromCStr;
  ansor_pool_use(pool);
}

// The threads of the parent do not exist in a forked child.
void AfterFork() {
  new (&changing) std::mutex;
  NewPool();
}

// Starts a thread that takes no signals.
void AddWorker(int core) {
  int number = pool->workers;
  Slot* slot = &pool->slots[number];
  slot->task = number + 1;
  slot->pool = pool;
  CPU_ZERO(&worker_cores[number]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (core >= 0) {
    CPU_SET(core, &worker_cores[number]);
    pthread_attr_setaffinity_np(&attributes, sizeof(cpu_set_t), &worker_cores[number]);
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  int status = pthread_create(&thread, &attributes, ansor_pool_worker, slot);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (status) throw std::system_error(status, std::generic_category(), "cannot start a thread");
  std::atomic_thread_fence(std::memory_order_release);
  pool->workers = number + 1;
}

void StartThreads(int threads) {
  std::lock_guard<std::mutex> guard(changing);
  if (pool->workers + 1 >= threads) return;
  std::vector<int> cores = OnePerCore();
  while (pool->workers + 1 < threads) {
    size_t next = static_cast<size_t>(pool->workers) + 1;
    AddWorker(next < cores.size() ? cores[next] : -1);
  }
}

}  // namespace

int ansor_available_cores() { return static_cast<int>(OnePerCore().size()); }

namespace ansor {

void UseThreads() {
  std::lock_guard<std::mutex> guard(changing);
  if (pool) return;
  NewPool();
  pthread_atfork(nullptr, nullptr, AfterFork);
  TVMFFIEnvModRegisterContextSymbol("__TVMBackendParallelLaunch",
                                    reinterpret_cast<void*>(ansor_pool_launch));
}

HeldThreads::HeldThreads(int threads) {
  StartThreads(threads);
  held_ = ansor_pool_acquire(threads);
  if (!held_ || threads == 1) return;
  before_ = AllowedCores();
  cpu_set_t others = before_, bound;
  for (int i = 0; i < threads - 1; ++i) {
    CPU_AND(&bound, &others, &worker_cores[i]);
    CPU_XOR(&others, &others, &bound);
  }
  moved_ = CPU_COUNT(&others) && !CPU_EQUAL(&others, &before_);
  if (moved_) sched_setaffinity(0, sizeof others, &others);
}

HeldThreads::~HeldThreads() {
  if (moved_) sched_setaffinity(0, sizeof before_, &before_);
  if (held_) ansor_pool_release();
}

}  // namespace ansor
