#pragma once
// strata/config/impl/codegen.ipp - C++ of an Intent.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <strata/config/codegen.hpp>
#include <strata/config/intent_options.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/printable.hpp>
#include <strata/options/train_options.hpp>
#include <strata/policy/policy_name.hpp>

namespace strata::config {
namespace detail {

/// A number that is read back as the same.
template <class Number>
std::string cpp_number(Number number) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    std::string written(text.data(), end);
    if constexpr (std::is_floating_point_v<Number>)
        if (written.find_first_of(".e") == std::string::npos) written += ".0";
    return written;
}

STRATA_INLINE std::string cpp_text(std::string_view text) {
    std::string written = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            written += '\\';
            written += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            // Three octal digits end where they end, as hexadecimal ones do not.
            written += '\\';
            for (const int shift : {6, 3, 0}) written += static_cast<char>('0' + ((byte >> shift) & 7));
        } else {
            written += c;
        }
    }
    return written + '"';
}

STRATA_INLINE std::string cpp_scalar(const OptionScalar& scalar) {
    return std::visit(
        [](const auto& value) -> std::string {
            using Value = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, bool>)
                return value ? "true" : "false";
            else if constexpr (std::is_same_v<Value, std::string>)
                return cpp_text(value);
            else
                return cpp_number(value);
        },
        scalar);
}

/// What an option is given, in its own type.
template <class Option, class Member>
std::string cpp_value([[maybe_unused]] const Option& option, const Member& value) {
    if constexpr (std::is_same_v<Member, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_enum_v<Member>) {
        // Options name their enumerators as they are.
        for (const auto& one : option.values)
            if (one.value == value) return "strata::" + std::string{type_name_v<Member>} + "::" + std::string{one.name};
        return {};
    } else if constexpr (std::is_same_v<Member, std::chrono::seconds>) {
        return "std::chrono::seconds{" + cpp_number(value.count()) + "}";
    } else if constexpr (strata::detail::is_number_v<Member>) {
        return cpp_number(value);
    } else {
        return cpp_text(std::filesystem::path{value}.string());
    }
}

/// The right side of `options.path = ...;`; empty where these options have no such path.
template <class Options>
std::string cpp_option(const Options& options, std::string_view path) {
    const std::size_t dot = path.find('.');
    std::string written;
    visit_options<Options>([&](const auto& option) {
        using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
        if (!written.empty() || option.name != path.substr(0, dot)) return;
        if constexpr (DescribedOptions<Member>) {
            if (dot != std::string_view::npos) written = cpp_option(options.*option.member, path.substr(dot + 1));
        } else if constexpr (!std::is_class_v<Member> || std::is_constructible_v<std::filesystem::path, Member> ||
                             strata::detail::is_number_v<Member>) {
            if (dot == std::string_view::npos) written = cpp_value(option, options.*option.member);
        }
    });
    return written;
}

/// "strata::Split<strata::Cpu, strata::Nvme, 30>": types of ours begin with a capital letter.
STRATA_INLINE std::string qualified(std::string_view policies) {
    std::string written;
    for (std::size_t i = 0; i < policies.size(); ++i) {
        const bool begins = i == 0 || policies[i - 1] == '<' || policies[i - 1] == ' ';
        if (begins && 'A' <= policies[i] && policies[i] <= 'Z') written += "strata::";
        written += policies[i];
    }
    return written;
}

/// The members of a schedule of DeepSpeed's, as its struct has them.
class RateWriter {
public:
    RateWriter(std::string type, bool follows_lr) : type_{std::move(type)}, follows_lr_{follows_lr} {}
    RateWriter& member(std::string_view name, double value) { return add(name, cpp_number(value)); }
    RateWriter& member(std::string_view name, std::int64_t value) { return add(name, cpp_number(value)); }
    RateWriter& member(std::string_view name, bool value) { return add(name, value ? "true" : "false"); }
    RateWriter& member(std::string_view name, optim::WarmupCurve value) {
        return add(name, value == optim::WarmupCurve::log ? "strata::optim::WarmupCurve::log"
                                                          : "strata::optim::WarmupCurve::linear");
    }
    /// The rate's highest value, which may be the learning rate that was set before.
    RateWriter& top(std::string_view name, double value) {
        return follows_lr_ ? add(name, "options.schedule.lr") : member(name, value);
    }
    [[nodiscard]] std::string text() const {
        return "    const double lr = options.schedule.lr;\n"
               "    options.schedule = strata::optim::Schedule::of(\n        " +
               type_ + "{" + members_ +
               "});\n"
               "    options.schedule.lr = lr;\n";
    }

private:
    RateWriter& add(std::string_view name, const std::string& value) {
        members_ += (members_.empty() ? "." : ", .") + std::string{name} + " = " + value;
        return *this;
    }
    std::string type_;
    bool follows_lr_;
    std::string members_;
};

STRATA_INLINE std::string cpp_rate(const RateIntent& rate, bool follows_lr) {
    const auto writer = [&](const std::string& type) { return RateWriter{"strata::optim::" + type, follows_lr}; };
    if (const auto* r = std::get_if<optim::WarmupLr>(&rate))
        return writer("WarmupLr")
            .member("min_lr", r->min_lr)
            .top("max_lr", r->max_lr)
            .member("warmup_steps", r->warmup_steps)
            .member("curve", r->curve)
            .text();
    if (const auto* r = std::get_if<optim::WarmupDecayLr>(&rate))
        return writer("WarmupDecayLr")
            .member("min_lr", r->min_lr)
            .top("max_lr", r->max_lr)
            .member("warmup_steps", r->warmup_steps)
            .member("total_steps", r->total_steps)
            .member("curve", r->curve)
            .text();
    if (const auto* r = std::get_if<optim::WarmupCosineLr>(&rate))
        return writer("WarmupCosineLr")
            .top("lr", r->lr)
            .member("warmup_min_ratio", r->warmup_min_ratio)
            .member("cos_min_ratio", r->cos_min_ratio)
            .member("warmup_steps", r->warmup_steps)
            .member("total_steps", r->total_steps)
            .member("curve", r->curve)
            .text();
    if (const auto* r = std::get_if<optim::OneCycle>(&rate))
        return writer("OneCycle")
            .member("min_lr", r->min_lr)
            .top("max_lr", r->max_lr)
            .member("decay_lr_rate", r->decay_lr_rate)
            .member("first_steps", r->first_steps)
            .member("second_steps", r->second_steps)
            .member("first_stairs", r->first_stairs)
            .member("second_stairs", r->second_stairs)
            .member("decay_steps", r->decay_steps)
            .member("min_momentum", r->min_momentum)
            .member("max_momentum", r->max_momentum)
            .member("decay_momentum_rate", r->decay_momentum_rate)
            .text();
    if (const auto* r = std::get_if<optim::LrRangeTest>(&rate))
        return writer("LrRangeTest")
            .member("min_lr", r->min_lr)
            .member("step_size", r->step_size)
            .member("step_rate", r->step_rate)
            .member("staircase", r->staircase)
            .text();
    return {};
}

/// A comment on one line, whatever is in it.
STRATA_INLINE std::string comment(std::string_view text) {
    std::string written = "// " + core::printable(text);
    if (written.ends_with('\\')) written += '.';  // which would take the next line into the comment
    return written + "\n";
}

/// A word of C++, or a namespace that a header of ours needs.
STRATA_INLINE bool is_no_namespace(std::string_view name) {
    constexpr std::string_view words =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
        "compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype "
        "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
        "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
        "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
        "wchar_t while xor xor_eq main std posix strata ";
    return words.find(" " + std::string{name} + " ") != std::string_view::npos;
}

}  // namespace detail

STRATA_INLINE std::string identifier_of(std::string_view file_name) {
    std::string stem = std::filesystem::path{file_name}.stem().string();
    for (char& c : stem) {
        const bool fits = c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
        if (!fits) c = '_';
    }
    // Names with two underscores in a row, and those that begin with one, belong to the compiler.
    for (std::size_t twice; (twice = stem.find("__")) != std::string::npos;) stem.erase(twice, 1);
    if (stem.starts_with('_')) stem.insert(0, "config");
    const bool is_digit = !stem.empty() && '0' <= stem[0] && stem[0] <= '9';
    if (stem.empty() || is_digit || detail::is_no_namespace(stem)) stem.insert(0, "config_");
    return stem;
}

STRATA_INLINE std::string generated_header(const Intent& intent, const GeneratedHeader& header) {
    TrainOptions<zero::NoRule> options;
    // What is left over are numbers of the update rule, whose struct stands with the rule.
    static_cast<void>(apply(intent, options));

    std::string text = "#pragma once\n";
    text += detail::comment("Made of " + header.source + " by `strata codegen`. Change that file: this one follows.");
    text +=
        "\n#include <chrono>\n#include <cstdint>\n\n#include <strata/options/deepspeed_schedules.hpp>\n"
        "#include <strata/options/on_non_finite.hpp>\n"
        "#include <strata/options/schedule.hpp>\n#include <strata/policy/setup.hpp>\n\n";
    text += "namespace " + header.name + " {\n\n";
    text += "using Setup = strata::Setup<" + detail::qualified(policies(intent.composition)) + ">;\n\n";
    text += "/// Samples of one rank in one micro-batch; 0: the configuration leaves it to the program.\n";
    text += "inline constexpr std::int64_t samples_per_micro_batch = " +
            detail::cpp_number(intent.batch.micro.value_or(0)) + ";\n";
    text += "/// Samples of one optimizer step on all ranks; 0: the configuration leaves it to the program.\n";
    text += "inline constexpr std::int64_t samples_per_step = " + detail::cpp_number(intent.batch.global.value_or(0)) +
            ";\n\n";
    std::string numbers, statements;
    for (const OptionValue& one : intent.options) {
        std::string value = detail::cpp_option(options, one.path);
        if (value.empty()) value = detail::cpp_scalar(one.value);
        std::string constant = one.path;
        std::replace(constant.begin(), constant.end(), '.', '_');
        numbers += "inline constexpr auto " + constant + " = " + value + ";";
        if (!one.place.empty())
            numbers += "  // " + core::printable(std::filesystem::path{one.place}.filename().string());
        numbers += "\n";
        statements += "    options." + one.path + " = given::" + constant + ";\n";
    }
    text += "/// The numbers of the configuration, by their paths in the options of a trainer.\nnamespace given {\n" +
            numbers + "}  // namespace given\n\n";
    text +=
        "/// Gives options what the configuration says, and leaves them what it does not.\n///\n"
        "///   Options  strata::TrainOptions of the update rule, as MyTrainer::Options is\n"
        "template <class Options>\nvoid set([[maybe_unused]] Options& options) {\n";
    text += statements;
    text += detail::cpp_rate(intent.rate, intent.rate_follows_lr);
    for (const Automatic& one : intent.automatic)
        text += "    " + detail::comment(one.key + " is \"auto\": the program decides " + one.to);
    text += "}\n\n}  // namespace " + header.name + "\n";
    return text;
}

}  // namespace strata::config
