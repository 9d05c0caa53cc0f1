// One function for each alternative of a std::variant: std::visit(Overloaded{[](const A&) {…}, [](const B&) {…}}, v).
#pragma once

namespace k8s {

template <class... Arms>
struct Overloaded : Arms... {
  using Arms::operator()...;
};

}  // namespace k8s
