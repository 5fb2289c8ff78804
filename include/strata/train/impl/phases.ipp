#pragma once
// strata/train/impl/phases.ipp - when a phase is shown, and its line.

#include <array>
#include <cstdio>
#include <utility>

#include <strata/core/amounts.hpp>
#include <strata/core/printable.hpp>
#include <strata/train/phases.hpp>
#include <strata/train/terminal.hpp>

namespace strata::train {

STRATA_INLINE Phases::Phases(bool shown, bool live, PhasesHooks hooks)
    : shown_{shown}, live_{live}, hooks_{std::move(hooks)} {}

STRATA_INLINE Phases::~Phases() { end(); }

STRATA_INLINE void Phases::operator()(std::string_view what, std::int64_t done, std::int64_t total) {
    if (!shown_) return;
    const std::lock_guard lock{mutex_};
    using namespace std::chrono_literals;
    now_ = hooks_.now();
    const bool begins = what != what_ || done < done_;
    if (begins) {
        close();
        begin(what, done);
    }
    done_ = done;
    total_ = total;
    if (begins || now_ - told_ >= 2s || (total > 0 && done >= total)) tell();
    if (now_ - began_ >= 2s && (!was_drawn_ || now_ - drawn_ >= (live_ ? Clock::duration{100ms} : 30s))) draw(false);
    if (total > 0 && done >= total) close();
}

STRATA_INLINE void Phases::end() {
    if (!shown_) return;
    const std::lock_guard lock{mutex_};
    now_ = hooks_.now();
    close();
}

STRATA_INLINE void Phases::begin(std::string_view what, std::int64_t done) {
    what_ = what;
    began_ = now_;
    done_at_first_ = done;
}

STRATA_INLINE void Phases::close() {
    if (was_drawn_) draw(true);
    what_.clear();
    done_ = 0;
    was_drawn_ = false;
}

STRATA_INLINE void Phases::tell() {
    told_ = now_;
    if (hooks_.tell) hooks_.tell({.what = what_, .done = done_, .total = total_, .seconds_left = seconds_left()});
}

STRATA_INLINE double Phases::rate() const {
    const double seconds = std::chrono::duration<double>(now_ - began_).count();
    return seconds > 0 ? static_cast<double>(done_ - done_at_first_) / seconds : 0;
}

STRATA_INLINE std::optional<double> Phases::seconds_left() const {
    if (total_ <= done_ || rate() <= 0) return std::nullopt;
    return static_cast<double>(total_ - done_) / rate();
}

STRATA_INLINE std::string Phases::text(bool is_last) const {
    const auto number = [](std::int64_t n) { return core::with_commas(static_cast<std::uint64_t>(n)); };
    std::array<char, 48> speed{};
    std::snprintf(speed.data(), speed.size(), rate() < 100 ? ", %.1f a second" : ", %.0f a second", rate());
    std::string line = what_ + ": " + number(done_);
    if (total_ > 0 && done_ < total_)
        line += " of " + number(total_) + " (" + std::to_string(done_ * 100 / total_) + " %)";
    if (is_last) line += " in " + clock_text(std::chrono::duration<double>(now_ - began_).count());
    line += speed.data();
    if (const auto left = seconds_left(); left && !is_last) line += ", ETA " + clock_text(*left);
    return core::printable(line);
}

STRATA_INLINE void Phases::draw(bool is_last) {
    if (live_) {
        write("\r\x1b[K" + text(is_last) + (is_last ? "\n" : ""));
        line_is_open_ = !is_last;
    } else {
        write(text(is_last) + "\n");
    }
    drawn_ = now_;
    was_drawn_ = true;
}

STRATA_INLINE void Phases::note(std::string_view line) {
    const std::lock_guard lock{mutex_};
    write((std::exchange(line_is_open_, false) ? "\r\x1b[K" : "") + core::printable(line) + "\n");
}

STRATA_INLINE void Phases::clear_line() {
    const std::lock_guard lock{mutex_};
    if (std::exchange(line_is_open_, false)) write("\r\x1b[K");
}

STRATA_INLINE void Phases::write(std::string_view text) const {
    if (hooks_.write) return hooks_.write(text);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

}  // namespace strata::train
