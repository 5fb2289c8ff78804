#pragma once
// strata/train/impl/metrics.ipp - reading, mending and appending JSON lines.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/train/metrics.hpp>

namespace strata::train {
namespace detail {

/// JSON knows no NaN and no infinity: both are null.
inline std::string json_number(double value, int digits) {
    if (!std::isfinite(value)) return "null";
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    return text.data();
}

/// ,"grad_norms":{"block0.linear":0.5,...}
inline std::string to_json(std::span<const NamedNorm> norms) {
    if (norms.empty()) return {};
    std::string text;
    for (const NamedNorm& part : norms) {
        text += text.empty() ? ",\"grad_norms\":{" : ",";
        text += nlohmann::json(part.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ":" +
                json_number(part.norm, 6);
    }
    return text + "}";
}

/// ,"evaluations":{"faces":0.25,...}
inline std::string to_json(const std::vector<NamedLoss>& losses) {
    std::string text;
    for (const NamedLoss& one : losses)
        (text += text.empty() ? ",\"evaluations\":{\"" : ",\"") += one.name + "\":" + json_number(one.loss, 17);
    return text.empty() ? text : text + "}";
}

/// Those of a line that counts. A loss that is null is NaN.
inline std::vector<NamedLoss> evaluations_in(std::string_view line) {
    if (line.find("\"evaluations\"") == std::string_view::npos) return {};
    const auto json = nlohmann::ordered_json::parse(line.begin(), line.end(), nullptr, false);
    const auto found = json.is_object() ? json.find("evaluations") : json.end();
    std::vector<NamedLoss> losses;
    if (!json.is_object() || found == json.end() || !found->is_object()) return losses;
    for (const auto& [name, loss] : found->items())
        if (loss.is_number() || loss.is_null())
            losses.push_back({name, loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>()});
    return losses;
}

inline std::string to_json_line(const StepMetrics& m, std::span<const NamedNorm> norms,
                                const std::vector<NamedLoss>& losses) {
    return "{\"step\":" + std::to_string(m.step) + ",\"loss\":" + json_number(m.loss, 17) +
           ",\"lr\":" + json_number(m.learning_rate, 17) + ",\"grad_norm\":" + json_number(m.grad_norm, 17) +
           ",\"samples_per_second\":" + json_number(m.samples_per_second, 6) +
           ",\"data_wait\":" + json_number(m.data_wait, 6) + ",\"seconds\":" + json_number(m.seconds, 6) +
           ",\"epoch\":" + json_number(m.epoch, 6) +
           (m.skipped > 0 ? ",\"skipped\":" + std::to_string(m.skipped) : "") + to_json(norms) + to_json(losses) +
           "}\n";
}

/// The step that a line tells of, whatever else it has; none if it is no JSON object with a step of 1 or more, or a
/// number of ours is something else. A number that is null or absent is NaN.
inline std::optional<StepMetrics> parsed_step(std::string_view line) {
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto step = json.find("step");
    if (step == json.end() || !step->is_number_integer()) return std::nullopt;
    StepMetrics m;
    m.step = step->get<std::int64_t>();
    if (m.step < 1) return std::nullopt;
    const std::pair<const char*, double*> numbers[]{
        {"loss", &m.loss},           {"lr", &m.learning_rate},
        {"grad_norm", &m.grad_norm}, {"samples_per_second", &m.samples_per_second},
        {"data_wait", &m.data_wait}, {"seconds", &m.seconds},
        {"epoch", &m.epoch}};
    for (const auto& [name, value] : numbers) {
        const auto found = json.find(name);
        if (found != json.end() && !found->is_null() && !found->is_number()) return std::nullopt;
        *value =
            found != json.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
    }
    if (const auto skipped = json.find("skipped"); skipped != json.end() && skipped->is_number_integer())
        m.skipped = skipped->get<std::int64_t>();
    return m;
}

/// The line with null for every inf and nan outside of strings, which earlier versions and other tools have written.
inline std::string with_nulls(std::string_view line) {
    constexpr std::array<std::string_view, 5> names{"infinity", "Infinity", "inf", "nan", "NaN"};
    std::string mended;
    bool in_string = false;
    while (!line.empty()) {
        std::size_t taken = 1;
        if (line.front() == '"') in_string = !in_string;
        if (in_string && line.front() == '\\') taken = std::min<std::size_t>(2, line.size());
        const std::string_view word = line.substr(line.front() == '-' ? 1 : 0);
        const auto name = in_string ? names.end() : std::find_if(names.begin(), names.end(), [&](std::string_view n) {
            return word.starts_with(n);
        });
        if (name != names.end()) {
            mended += "null";
            taken = name->size() + (line.size() - word.size());
        } else {
            mended += line.substr(0, taken);
        }
        line.remove_prefix(taken);
    }
    return mended;
}

/// What becomes of a line of the file.
enum class Fate : std::uint8_t { stays, mended, replaced, done_again, unreadable, cut_off };

struct LogLine {
    std::string_view bytes;  // without the line end
    std::size_t number;      // from 1
    Fate fate = Fate::unreadable;
    StepMetrics metrics{};
    bool is_apart = false;  // of samples or a straggler: has no metrics but its step
};

/// The lines that are not blank, judged; of several of one step the last one counts.
inline std::vector<LogLine> judged_lines(std::string_view text, std::int64_t last_step) {
    std::vector<LogLine> lines;
    std::map<std::int64_t, std::size_t> latest;  // step -> index
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const bool is_whole = end != std::string_view::npos;
        LogLine line{text.substr(0, end), number};
        text.remove_prefix(is_whole ? end + 1 : text.size());
        if (line.bytes.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        auto step = step_of_samples_line(line.bytes);
        if (!step) step = step_of_straggler_line(line.bytes);
        if (step) {
            line.metrics.step = *step;
            line.is_apart = true;
            line.fate = *step > last_step ? Fate::done_again : Fate::stays;
            lines.push_back(line);
            continue;
        }
        auto metrics = parsed_step(line.bytes);
        line.fate = Fate::stays;
        if (!metrics) {
            metrics = parsed_step(with_nulls(line.bytes));
            line.fate = metrics ? Fate::mended : is_whole ? Fate::unreadable : Fate::cut_off;
        }
        if (metrics) {
            line.metrics = *metrics;
            if (metrics->step > last_step) {
                line.fate = Fate::done_again;
            } else {
                const auto [at, is_first] = latest.try_emplace(metrics->step, lines.size());
                if (!is_first) lines[std::exchange(at->second, lines.size())].fate = Fate::replaced;
            }
        }
        lines.push_back(line);
    }
    return lines;
}

inline bool counts(const LogLine& line) { return line.fate == Fate::stays || line.fate == Fate::mended; }

/// The metrics of lines that count. A clock that is missing goes on from the line before, so that a resumed run has one.
inline std::vector<StepMetrics> steps_of(std::span<const LogLine> lines) {
    std::vector<StepMetrics> steps;
    for (const LogLine& line : lines)
        if (counts(line) && !line.is_apart) steps.push_back(line.metrics);
    double seconds = 0;
    for (StepMetrics& m : steps) {
        if (!std::isfinite(m.seconds)) m.seconds = seconds;
        seconds = m.seconds;
    }
    return steps;
}

inline std::string count_text(std::size_t n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// "a", "a and b", "a, b and c"
inline std::string list_text(const std::vector<std::string>& parts) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i)
        text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return text;
}

/// "step 5", "steps 5 to 8", "steps 1 to 3, 7, 9 and others", of steps first to last.
inline std::string steps_text(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
    constexpr std::size_t most = 3;
    std::vector<std::string> parts;
    for (const auto& [first, last] : ranges) {
        if (parts.size() == most) {
            parts.emplace_back("others");
            break;
        }
        parts.push_back(std::to_string(first) + (last > first ? " to " + std::to_string(last) : ""));
    }
    const bool is_one = ranges.size() == 1 && ranges[0].first == ranges[0].second;
    return (is_one ? "step " : "steps ") + list_text(parts);
}

inline std::string steps_text(std::vector<std::int64_t> steps) {
    std::sort(steps.begin(), steps.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const std::int64_t step : steps) {
        if (ranges.empty() || step > ranges.back().second + 1) ranges.emplace_back(step, step);
        ranges.back().second = step;
    }
    return steps_text(ranges);
}

/// One sentence on the lines that were set aside; empty if none were.
inline std::string aside_text(std::span<const LogLine> lines, const std::string& file, const std::string& aside) {
    const auto of = [&](Fate fate) {
        std::vector<std::int64_t> steps;
        for (const LogLine& line : lines)
            if (line.fate == fate) steps.push_back(line.metrics.step);
        return steps;
    };
    const auto unreadable = of(Fate::unreadable), replaced = of(Fate::replaced), again = of(Fate::done_again),
               mended = of(Fate::mended);
    const bool is_cut_off = !of(Fate::cut_off).empty();
    std::vector<std::string> parts;
    if (!unreadable.empty()) {
        const auto first =
            std::find_if(lines.begin(), lines.end(), [](const LogLine& line) { return line.fate == Fate::unreadable; });
        parts.push_back(count_text(unreadable.size(), "line") + " that cannot be read (" +
                        (unreadable.size() == 1 ? "" : "the first is ") + "line " + std::to_string(first->number) +
                        ")");
    }
    if (!replaced.empty())
        parts.push_back(count_text(replaced.size(), "line") + " of " + steps_text(replaced) +
                        " that a later line replaces");
    if (!mended.empty())
        parts.push_back(count_text(mended.size(), "line") + " as " + (mended.size() == 1 ? "it was" : "they were") +
                        " with inf or nan, which is no JSON (null now)");
    if (!again.empty())
        parts.push_back(count_text(again.size(), "line") + " of " + steps_text(again) + ", to be done again");
    if (is_cut_off) parts.emplace_back("its last line, which was cut off as a kill does");
    return parts.empty() ? "" : file + ": set aside in " + aside + ": " + list_text(parts);
}

/// One sentence on steps up to `last` that no line tells of; empty if there are none.
inline std::string gaps_text(std::span<const StepMetrics> steps, std::int64_t last, const std::string& file) {
    std::vector<std::pair<std::int64_t, std::int64_t>> gaps;
    std::int64_t next = 1, missing = 0;
    const auto up_to = [&](std::int64_t step) {
        if (step <= next) return;
        gaps.emplace_back(next, step - 1);
        missing += step - next;
    };
    for (const StepMetrics& m : steps) {
        up_to(m.step);
        next = m.step + 1;
    }
    up_to(last + 1);
    if (gaps.empty()) return {};
    return file + " lacks " + steps_text(gaps) + ": " + std::to_string(missing) + " of " +
           count_text(static_cast<std::size_t>(last), "step") + " so far";
}

/// `file`.kept-1, or the first number that is free.
inline std::filesystem::path free_name_beside(const std::filesystem::path& file) {
    for (int number = 1;; ++number) {
        std::filesystem::path name = file.string() + ".kept-" + std::to_string(number);
        std::error_code none;
        if (std::filesystem::symlink_status(name, none).type() == std::filesystem::file_type::not_found) return name;
    }
}

inline std::string text_of(const std::filesystem::path& file) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) return {};
    const std::vector<std::byte> bytes = storage::read_file(file);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void sort_by_step(std::vector<LogLine>& lines) {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const LogLine& a, const LogLine& b) { return a.metrics.step < b.metrics.step; });
}

}  // namespace detail

STRATA_INLINE std::vector<StepMetrics> read_metrics(const std::filesystem::path& file) {
    const std::string text = detail::text_of(file);
    std::vector<detail::LogLine> lines = detail::judged_lines(text, std::numeric_limits<std::int64_t>::max());
    detail::sort_by_step(lines);
    return detail::steps_of(lines);
}

STRATA_INLINE MetricsLog::MetricsLog(std::filesystem::path file, std::int64_t resumed_step) : file_{std::move(file)} {
    const std::string text = detail::text_of(file_);
    const std::string name = file_.filename().string();
    std::vector<detail::LogLine> lines = detail::judged_lines(text, resumed_step);

    std::string aside;
    std::vector<detail::LogLine> staying;
    for (const detail::LogLine& line : lines) {
        if (line.fate != detail::Fate::stays) (aside += line.bytes) += '\n';
        if (detail::counts(line)) staying.push_back(line);
    }
    const auto in_order = [](const detail::LogLine& a, const detail::LogLine& b) {
        return a.metrics.step < b.metrics.step;
    };
    const bool was_in_order = std::is_sorted(staying.begin(), staying.end(), in_order);
    detail::sort_by_step(staying);
    history_ = detail::steps_of(staying);
    for (const detail::LogLine& line : staying)
        add_losses(evaluations_, line.metrics.step, detail::evaluations_in(detail::with_nulls(line.bytes)));

    if (!aside.empty()) {  // before the log is written anew: a kill in between leaves lines twice, and loses none
        const std::filesystem::path kept = detail::free_name_beside(file_);
        storage::write_file(kept, aside);
        notes_.push_back(detail::aside_text(lines, name, kept.filename().string()));
    }
    if (!was_in_order) notes_.push_back(name + ": its lines were not in the order of their steps, and are now");
    if (!aside.empty() || !was_in_order || (!text.empty() && text.back() != '\n')) {
        std::string log;
        for (const detail::LogLine& line : staying)
            (line.fate == detail::Fate::mended ? log += detail::with_nulls(line.bytes) : log += line.bytes) += '\n';
        storage::write_file(file_, log);
    }
    if (std::string gaps = detail::gaps_text(history_, resumed_step, name); !gaps.empty())
        notes_.push_back(std::move(gaps));

    errno = 0;
    out_.open(file_, std::ios::app);
    if (!out_) throw storage::detail::file_error(errno != 0 ? errno : EIO, "open", file_);
}

STRATA_INLINE void MetricsLog::append(const StepMetrics& metrics, std::span<const NamedNorm> norms,
                                      const std::vector<NamedLoss>& losses) {
    history_.push_back(metrics);
    add_losses(evaluations_, metrics.step, losses);
    write(detail::to_json_line(metrics, norms, losses));
}

STRATA_INLINE void MetricsLog::append(const DrawnSamples& samples) { write(samples_line(samples)); }
STRATA_INLINE void MetricsLog::append(const StragglerNote& straggler) { write(straggler.log_line()); }

STRATA_INLINE void MetricsLog::write(const std::string& line) {
    errno = 0;
    out_ << line;
    out_.flush();
    if (out_) return;
    const int failure = errno;
    throw Error{failure == ENOSPC || failure == EDQUOT ? Errc::no_space : Errc::io_failed,
                "cannot append to " + file_.string() + ": " + std::strerror(failure),
                "mend that and run again: it resumes from the last checkpoint"};
}

}  // namespace strata::train
