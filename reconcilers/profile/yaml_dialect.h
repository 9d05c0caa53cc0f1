// Where libyaml reads newer YAML than the plugin's library, which is a port of an older libyaml: inside [] and {}, that
// one ends a plain scalar at '?', keeps a ':' before an indicator in it, and takes ',', '[' and ']' into a tag. A byte
// order mark at the beginning of a line is text for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

struct Position {
  int line = 0;    // From 1; 0 when there is no position.
  int column = 0;  // From 1, counted in code points.
  friend bool operator==(const Position&, const Position&) = default;
};

// The plugin's YAML library reads its input in pieces of this size. A document that ends before an unreadable byte is
// accepted there when the byte lies in a later piece, so the pieces have the same size here.
inline constexpr std::size_t kReadPiece = 512;

// Placeholders for a ':' that libyaml would refuse, and for a byte order mark that it would skip: private-use
// characters, which take one column as the originals do.
inline constexpr std::string_view kHeldColon = "\ue03a";
inline constexpr std::string_view kHeldMark = "\ue0fe";

// Which character libyaml refused, by its problem and context: one that the plugin's library reads as text.
enum class Stumble { none, colon, tag };
[[nodiscard]] Stumble stumble_of(std::string_view problem, std::string_view context);

// The text with the character at this offset replaced so that libyaml accepts it: a ':' becomes kHeldColon, and ',',
// '[' or ']' in a tag becomes ';' (the tag is unknown with either character). nullopt if another character is at the
// offset.
[[nodiscard]] std::optional<std::string> hold(std::string_view text, std::size_t offset, Stumble stumble);

// The text with every byte order mark after its first character replaced by kHeldMark: the plugin's library reads those
// as text.
[[nodiscard]] std::string hold_marks(std::string_view text);

// The scalar with the original characters in place of kHeldColon and kHeldMark.
[[nodiscard]] std::string release_held(std::string scalar);

// Where the tag of the node at this place runs into ',', '[' or ']', so that the
// plugin's library reads another tag. nullopt where it does not.
[[nodiscard]] std::optional<std::size_t> tag_running_into_indicator(std::string_view text, Position place);

// How many bytes the line break at this offset has; 0 where none is. YAML 1.1 knows more than "\n": U+0085, U+2028 and
// U+2029 too.
[[nodiscard]] std::size_t break_length(std::string_view text, std::size_t at);

// The offset of a place in the text, and the place of an offset. Lines end at any of these breaks.
[[nodiscard]] std::size_t offset_of(std::string_view text, Position place);
[[nodiscard]] Position place_of(std::string_view text, std::size_t offset);

}  // namespace gso
