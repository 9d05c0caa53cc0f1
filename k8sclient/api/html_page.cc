// See html_page.h. Not a parser: whatever the page is, some words of it.
#include "k8sclient/api/html_page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "k8sclient/value/ascii.h"

namespace k8s {
namespace {

// A page that is longer says in its beginning what it is.
constexpr std::size_t kMostRead = 64U * 1024;

bool starts_with_tag(std::string_view text, std::string_view tag) {
  return text.size() >= tag.size() &&
         std::equal(tag.begin(), tag.end(), text.begin(), [](char a, char b) { return a == to_lower(b); });
}

// Where "<title" begins at or behind `from`; npos: nowhere. `tag` is in lower case.
std::size_t find_tag(std::string_view page, std::string_view tag, std::size_t from = 0) {
  for (std::size_t at = page.find('<', from); at != std::string_view::npos; at = page.find('<', at + 1)) {
    if (starts_with_tag(page.substr(at), tag)) return at;
  }
  return std::string_view::npos;
}

// What is between two tags; empty: the page has no such element.
std::string_view element(std::string_view page, std::string_view open, std::string_view close) {
  const std::size_t tag = find_tag(page, open);
  const std::size_t begin = tag == std::string_view::npos ? tag : page.find('>', tag);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(find_tag(page, close, begin), page.size());
  return page.substr(begin + 1, end - begin - 1);
}

// Without tags, and without what is in elements that are no text.
std::string without_tags(std::string_view page) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kNoText{
      {{"<script", "</script"}, {"<style", "</style"}, {"<!--", "-->"}}};
  std::string out;
  for (std::size_t at = 0; at < page.size();) {
    if (page[at] != '<') {
      out += page[at++];
      continue;
    }
    for (const auto& [open, close] : kNoText) {
      if (!starts_with_tag(page.substr(at), open)) continue;
      at = close.front() == '<' ? find_tag(page, close, at) : page.find(close, at);
      at = std::min(at, page.size());
      break;
    }
    at = std::min(page.find('>', at), page.size() - 1) + 1;
    out += ' ';
  }
  return out;
}

// Between words one blank.
std::string in_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (space && (out.empty() || out.back() == ' ')) continue;
    out += space ? ' ' : c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace

bool is_html(std::string_view body) {
  body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
  return std::ranges::any_of(std::initializer_list<std::string_view>{"<!doctype", "<html", "<head", "<body"},
                             [&](std::string_view tag) { return starts_with_tag(body, tag); });
}

std::string words_of_html(std::string_view page) {
  page = page.substr(0, kMostRead);
  constexpr std::array<std::array<std::string_view, 2>, 2> kNames{{{"<title", "</title"}, {"<h1", "</h1"}}};
  for (const auto& [open, close] : kNames) {
    std::string words = in_one_line(without_tags(element(page, open, close)));
    if (!words.empty()) return words;
  }
  return in_one_line(without_tags(page));
}

}  // namespace k8s
