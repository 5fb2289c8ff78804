#pragma once
// strata/config/findings.hpp - Findings: what was understood of every key of a configuration, and all that is wrong with it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What becomes of a key.
enum class Effect : std::uint8_t {
    acts,     ///< strata does what the key says
    mapped,   ///< strata does it by something of its own that is not quite the same, and `words` say how
    none,     ///< nothing, and `words` say why, or what happens instead
    refused,  ///< the configuration cannot be taken
};
[[nodiscard]] std::string_view name_of(Effect effect) noexcept;  ///< "acts", "mapped", "no effect", "refused"

/// One key: where it stands, what it says, and what strata makes of it.
struct Finding {
    Effect effect = Effect::none;
    bool warns = false;           ///< a person should read it: the result may not be what was hoped for
    Errc code = Errc::bad_value;  ///< of a refused one
    std::string place;            ///< "ds_config.json:12:5", "--zero_stage"
    Mark mark{};                  ///< the same as numbers; none: it stands in no file
    std::string pointer;          ///< "/zero_optimization/stage"; empty: the whole file, or it stands in no file
    std::string key;              ///< "zero_optimization.stage"
    std::string value;            ///< as it was written, cut after 60 bytes
    std::string to;               ///< acts and mapped: an option ("engine.max_grad_norm"), or a policy ("ZeroStage<2>")
    std::string words;            ///< no full stop at the end; of a refused one what is wrong, as in "is 4, and ..."
    std::string fix;              ///< what to type; of refused ones and of some that warn
};

/// Findings of one run of `strata`, over all of its files. Nothing here throws but throw_if_refused(): a reader goes on
/// after a problem, so that a person is told all of them at once.
class Findings {
public:
    void acts(const Node& node, std::string to, std::string words = {});
    void mapped(const Node& node, std::string to, std::string words);
    void no_effect(const Node& node, std::string words);
    /// As mapped() and no_effect(), and a person should read it.
    void warn_mapped(const Node& node, std::string to, std::string words, std::string fix = {});
    void warn_no_effect(const Node& node, std::string words, std::string fix = {});
    /// `what` follows the name of the key: "is 4, and stages are 0, 1, 2 and 3".
    void refuse(const Node& node, Errc code, std::string what, std::string fix);
    /// What the reader of the format noticed.
    void take(const Document& document);
    void add(Finding finding) { all_.push_back(std::move(finding)); }

    /// In the order of their files, from the one with this number on.
    void sort_from(std::size_t first);

    [[nodiscard]] const std::vector<Finding>& all() const noexcept { return all_; }
    /// Of the key at this pointer; nullptr where there is none.
    [[nodiscard]] const Finding* of(std::string_view pointer) const noexcept;
    [[nodiscard]] std::size_t refused() const noexcept;
    [[nodiscard]] std::size_t warnings() const noexcept;

    /// Throws one Error that names every problem, with the code of the first; nothing where there is none.
    void throw_if_refused() const;
    /// A line a finding: key, value, from where, effect; for a terminal.
    ///
    ///   only_warnings  leaves out what nobody need read
    [[nodiscard]] std::string table(bool only_warnings = false) const;

private:
    [[nodiscard]] static Finding made(Effect effect, const Node& node, std::string to, std::string words);
    std::vector<Finding> all_;
};

/// "ds_config.json:12:5: /zero_optimization/stage is 4, and stages are 0, 1, 2 and 3".
[[nodiscard]] std::string sentence(const Finding& finding);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/findings.ipp>
#endif
