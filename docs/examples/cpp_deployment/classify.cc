// Runs an exported network with one input and one output, both in float32:
//
//   classify NETWORK IMAGE SCORES
//
// NETWORK is the exported folder. IMAGE is a file of raw numbers. The program writes SCORES.
#include <cstdio>
#include <fstream>
#include <vector>

#include "ansor_network.h"

int Fail(const char* text) {
  std::fprintf(stderr, "classify: %s\n", text);
  return 1;
}

int main(int count, char** arguments) {
  if (count != 4) return Fail("give NETWORK, IMAGE and SCORES");
  ansor_network* network;
  ansor_session* session;
  if (ansor_network_open(arguments[1], 0, &network)) return Fail(ansor_last_error());
  if (ansor_session_open(network, &session)) return Fail(ansor_last_error());

  size_t image_bytes = ansor_input(network, 0)->bytes;
  size_t scores_bytes = ansor_output(network, 0)->bytes;
  std::vector<float> image(image_bytes / sizeof(float)), scores(scores_bytes / sizeof(float));
  std::ifstream in(arguments[2], std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(image.data()), std::streamsize(image_bytes)))
    return Fail("the image cannot be read, or is too small");

  ansor_buffer input = {image.data(), image_bytes}, output = {scores.data(), scores_bytes};
  if (ansor_session_run(session, &input, 1, &output, 1)) return Fail(ansor_last_error());
  std::ofstream out(arguments[3], std::ios::binary);
  out.write(reinterpret_cast<char*>(scores.data()), std::streamsize(scores_bytes));
  ansor_session_close(session);
  ansor_network_close(network);
  return out ? 0 : Fail("the scores cannot be written");
}
