// See option_flags.h.
#include "controller/config/option_flags.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace gso {

void OptionFlags::add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted) {
  for (const OptionSpec& spec : option_specs()) {
    if (!wanted(spec)) continue;
    std::string& value = values_[spec.name];
    const std::string flag = (spec.name == "namespace" ? "-n,--" : "--") + spec.name;
    CLI::Option* option = spec.flag ? app->add_flag(flag, value, spec.doc) : app->add_option(flag, value, spec.doc);
    option->envname(spec.environment())->group(spec.group);
    if (!spec.flag) option->type_name(spec.type);
    const std::string fallback = spec.get(Options());
    if (!fallback.empty()) option->default_str(fallback);
    options_.emplace_back(&spec, option);
  }
}

void OptionFlags::add_config_to(CLI::App* app) {
  config_ = app->add_option("--config", config_file_, "YAML file with any of these settings, by the same names")
                ->envname("GSO_CONFIG")
                ->type_name("FILE");
}

k8s::Result<Options> OptionFlags::resolve() const {
  Options out;
  std::vector<std::string> given;
  for (const auto& [spec, option] : options_) {
    if (option->count() == 0) continue;
    given.push_back(spec->name);
    const std::string wrong = spec->set(out, option->results().back());
    if (!wrong.empty()) {
      return std::unexpected(
          k8s::Error{k8s::Reason::invalid, 0, fmt::format("--{} (or {}): {}", spec->name, spec->environment(), wrong)});
    }
  }
  if (config_ == nullptr || config_->count() == 0) return out;
  out.config = config_file_;
  std::ifstream file(config_file_);
  if (!file) {
    return std::unexpected(
        k8s::Error{k8s::Reason::invalid, 0, fmt::format("--config {}: cannot be read", config_file_)});
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const k8s::Result<void> applied = apply_config_file(out, config_file_, text, given);
  if (!applied) return std::unexpected(applied.error());
  return out;
}

}  // namespace gso
