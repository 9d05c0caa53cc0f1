// The terminal of the person who runs a command, for credential plugins that ask something or print a device code.
// A program without a person (the operator, shell completion) passes a default Interaction: plugins cannot ask then.
#pragma once

namespace k8s {

struct Interaction {
  int input = -1;     // Descriptor of a terminal that plugins read answers from; -1: they read nothing.
  int messages = -1;  // Descriptor of a terminal that gets what plugins write to stderr; -1: it is captured.
  [[nodiscard]] bool possible() const { return input >= 0 || messages >= 0; }
};

// Standard input and standard error of this process, each if it is a terminal.
[[nodiscard]] Interaction terminal_of_process();

}  // namespace k8s
