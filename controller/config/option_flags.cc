#include "controller/config/option_flags.h"

#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <ranges>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/selectors.h"

namespace gso {
namespace {

bool is_dns_label(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  return name.size() <= kLongest && name.find('.') == std::string_view::npos && k8s::is_dns_subdomain(name);
}

// The parts of a text that are separated by commas, without empty ones.
std::set<std::string> split_names(std::string_view text) {
  std::set<std::string> out;
  for (const auto part : std::views::split(text, ','))
    if (!part.empty()) out.emplace(part.begin(), part.end());
  return out;
}

}  // namespace

OptionSpec& OptionGroup::add(std::string name, std::string type, std::string doc,
                             std::function<std::string(Options&, const std::string&)> set,
                             std::function<std::string(const Options&)> get) {
  return out_->emplace_back(OptionSpec{.name = std::move(name),
                                       .group = heading_,
                                       .type = std::move(type),
                                       .doc = std::move(doc),
                                       .set = std::move(set),
                                       .get = std::move(get)});
}

void OptionGroup::text(std::string name, std::string type, std::string doc, OptionField<std::string> field) {
  const auto set = [field](Options& o, const std::string& value) {
    field(o) = value;
    return std::string();
  };
  add(std::move(name), std::move(type), std::move(doc), set, [field](const Options& o) { return read(field, o); });
}

void OptionGroup::namespaces(std::string name, std::string doc, OptionField<std::set<std::string>> field) {
  const auto set = [field](Options& o, const std::string& value) -> std::string {
    const std::set<std::string> names = split_names(value);
    for (const std::string& one : names)
      if (!is_dns_label(one))
        return fmt::format("'{}' is not a valid namespace name; separate several names with commas", one);
    field(o) = names;
    return {};
  };
  add(std::move(name), "NAMESPACE,…", std::move(doc), set,
      [field](const Options& o) { return fmt::format("{}", fmt::join(read(field, o), ",")); });
}

void OptionGroup::boolean(std::string name, std::string doc, OptionField<bool> field) {
  const auto set = [field](Options& o, const std::string& value) -> std::string {
    const std::string lower = k8s::lower(value);
    if (lower != "true" && lower != "false") return fmt::format("'{}' is neither true nor false", value);
    field(o) = lower == "true";
    return {};
  };
  const auto get = [field](const Options& o) { return read(field, o) ? "true" : "false"; };
  add(std::move(name), "BOOL", std::move(doc), set, get).flag = true;
}

void OptionGroup::duration(std::string name, std::string doc, OptionField<Duration> field, OptionRange range) {
  const std::string least = k8s::format_go_duration(range.least);
  const std::string most = k8s::format_go_duration(range.most);
  const std::string or_zero = range.or_zero ? "0 or " : "";
  const auto set = [=](Options& o, const std::string& value) -> std::string {
    const std::optional<Duration> parsed = k8s::parse_go_duration(value);
    if (!parsed) return fmt::format("'{}' is not a duration such as 500ms, 10s or 1h30m", value);
    const bool off = range.or_zero && *parsed == Duration::zero();
    if (!off && (*parsed < range.least || *parsed > range.most))
      return fmt::format("'{}' must be {}from {} to {}", value, or_zero, least, most);
    field(o) = *parsed;
    return {};
  };
  add(std::move(name), "DURATION", fmt::format("{} ({}{} to {})", doc, or_zero, least, most), set,
      [field](const Options& o) { return k8s::format_go_duration(read(field, o)); });
}

void OptionGroup::integer(std::string name, std::string doc, OptionField<std::int64_t> field, std::int64_t least,
                          std::int64_t most) {
  const auto set = [field, least, most](Options& o, const std::string& value) -> std::string {
    std::int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [rest, code] = std::from_chars(value.data(), end, number);
    if (code != std::errc{} || rest != end || number < least || number > most)
      return fmt::format("'{}' is not a whole number from {} to {}", value, least, most);
    field(o) = number;
    return {};
  };
  add(std::move(name), "NUMBER", std::move(doc), set,
      [field](const Options& o) { return std::to_string(read(field, o)); });
}

void OptionGroup::share(std::string name, std::string doc, OptionField<IntOrPercent> field) {
  const auto set = [field](Options& o, const std::string& value) -> std::string {
    const std::optional<IntOrPercent> parsed = IntOrPercent::parse(value);
    if (!parsed || parsed->value < 1)
      return fmt::format("'{}' is neither a count of at least 1 nor a percentage from 1% to 100%", value);
    field(o) = *parsed;
    return {};
  };
  add(std::move(name), "COUNT|PERCENT", std::move(doc), set,
      [field](const Options& o) { return read(field, o).to_string(); });
}

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

void OptionFlags::add_request_timeout(CLI::App* app) {
  app->add_option("--request-timeout", request_timeout_, "Longest duration of one request with its retries, 1s to 1h")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(Options().request_timeout))
      ->group("Connection");
}

k8s::Result<Options> OptionFlags::resolve() const {
  Options out;
  const k8s::Result<void> timeout = read_duration("--request-timeout", request_timeout_, out.request_timeout);
  if (!timeout) return std::unexpected(timeout.error());
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

k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                    k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < k8s::Duration::zero())
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: '{}' is not a duration such as {}", flag, text, example));
  out = *parsed;
  return {};
}

k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < std::chrono::seconds(1) || *parsed > std::chrono::hours(1)) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{}: '{}' is not a duration from 1s to 1h, such as 30s", flag, text));
  }
  out = *parsed;
  return {};
}

}  // namespace gso
