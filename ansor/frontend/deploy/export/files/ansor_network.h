/* Runs an exported network.
 *
 * A network holds code and weights. A session holds the memory of one call at a time. Sessions of
 * one network share its weights. All functions may be called from several threads at once. Calls
 * of one session wait for each other; calls of different sessions run at the same time.
 *
 * All networks of a process share one pool of threads. One call at a time has the pool. The
 * parallel loops of a call that comes meanwhile run on the calling thread alone. The results do
 * not depend on the number of threads.
 *
 * A function that can fail returns 0, or another value after an error: `ansor_last_error` has the
 * text then.
 */
#ifndef ANSOR_NETWORK_H_
#define ANSOR_NETWORK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ansor_network ansor_network;
typedef struct ansor_session ansor_session;

/* An input or an output. Elements lie in row-major order without gaps. */
typedef struct {
  const char* name;
  const char* dtype; /* such as "float32", "bfloat16", "int8" or "bool" (a byte each) */
  const int64_t* shape;
  size_t dimensions;
  size_t bytes;
} ansor_tensor;

/* Memory of the caller. Inputs at addresses that are multiples of 64 are read in place. */
typedef struct {
  void* data;
  size_t bytes;
} ansor_buffer;

/* Reads an exported folder. `threads` is the number of threads of a call. For 0 it is the number
 * that the network was tuned for, or the number of available cores if that is smaller. */
int ansor_network_open(const char* folder, int threads, ansor_network** network);

/* Sessions that are open keep the network's code and weights. */
void ansor_network_close(ansor_network* network);

int ansor_network_threads(const ansor_network* network);

size_t ansor_num_inputs(const ansor_network* network);
size_t ansor_num_outputs(const ansor_network* network);

/* Null if there is no such input or output; valid until the network is closed. */
const ansor_tensor* ansor_input(const ansor_network* network, size_t index);
const ansor_tensor* ansor_output(const ansor_network* network, size_t index);

int ansor_session_open(const ansor_network* network, ansor_session** session);
void ansor_session_close(ansor_session* session);

/* Runs the network once. The numbers of buffers and their bytes must be those of the network. */
int ansor_session_run(ansor_session* session, const ansor_buffer* inputs, size_t num_inputs,
                      const ansor_buffer* outputs, size_t num_outputs);

/* Gives what the network keeps between calls, such as caches, its initial values again. */
int ansor_session_reset(ansor_session* session);

/* Text of the last error of the calling thread; valid until its next call that fails. */
const char* ansor_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* ANSOR_NETWORK_H_ */
