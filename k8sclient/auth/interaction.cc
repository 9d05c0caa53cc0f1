// See interaction.h.
#include "k8sclient/auth/interaction.h"

#include <unistd.h>

namespace k8s {

Interaction terminal_of_process() {
  Interaction out;
  if (isatty(STDIN_FILENO) == 1) out.input = STDIN_FILENO;
  if (isatty(STDERR_FILENO) == 1) out.messages = STDERR_FILENO;
  return out;
}

}  // namespace k8s
