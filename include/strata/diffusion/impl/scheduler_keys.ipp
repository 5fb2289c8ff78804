#pragma once
// strata/diffusion/impl/scheduler_keys.ipp - SchedulerKeys: keys of a scheduler's file, and what is wrong with them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/problems.hpp>
#include <strata/core/error.hpp>

namespace strata::diffusion::detail {

template <class Value>
struct NamedValue {
    std::string_view name;
    Value value;
};

/// Keys of one object, and what is wrong with them. A key that is wrong counts as absent.
class SchedulerKeys {
public:
    SchedulerKeys(const nlohmann::json& json, std::string source) : json_{&json}, source_{std::move(source)} {}

    double number(const char* key, double fallback) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        if (value->is_number()) return value->get<double>();
        refuse(key, *value, "give a number");
        return fallback;
    }
    int whole(const char* key, int fallback, int least = -1'000'000, int most = 1'000'000) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        const double number = value->is_number() ? value->get<double>() : 0.5;
        if (number == std::floor(number) && number >= least && number <= most) return static_cast<int>(number);
        refuse(key, *value, "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        return fallback;
    }
    bool flag(const char* key, bool fallback) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        if (value->is_boolean()) return value->get<bool>();
        refuse(key, *value, "give true or false");
        return fallback;
    }
    std::vector<double> numbers(const char* key) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return {};
        const auto is_number = [](const nlohmann::json& element) { return element.is_number(); };
        if (value->is_array() && std::all_of(value->begin(), value->end(), is_number))
            return value->get<std::vector<double>>();
        refuse(key, *value, "give a list of numbers, or null");
        return {};
    }
    template <class Value, std::size_t n>
    Value choice(const char* key, Value fallback, const std::array<NamedValue<Value>, n>& choices) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        std::string valid;
        for (const auto& choice : choices) {
            if (value->is_string() && value->get_ref<const std::string&>() == choice.name) return choice.value;
            valid += (valid.empty() ? "'" : ", '") + std::string{choice.name} + "'";
        }
        refuse(key, *value, "of what this key may be, " + valid + " is implemented");
        return fallback;
    }
    /// A key of which one value is implemented, the one that is meant when it is absent or null.
    void only(const char* key, const nlohmann::json& implemented) {
        const nlohmann::json* value = given(key);
        if (value != nullptr && *value != implemented)
            refuse(key, *value, "only " + implemented.dump() + " is implemented; use another scheduler of this model");
    }
    void pass_over(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }

    /// Keys of a class that is not read in full.
    void pass_over_all() {
        for (const auto& [key, value] : json_->items()) known_.insert(key);
    }

    void add(Error problem) { problems_.add(std::move(problem)); }
    /// Throws what was found, and keys that nobody asked for.
    void finish() {
        for (const auto& [key, value] : json_->items())
            if (!key.starts_with('_') && !known_.contains(key))
                problems_.add(Error{Errc::bad_model_config,
                                    source_ + ": key '" + key + "' is known to no scheduler here",
                                    "take it out if it changes nothing, or use another scheduler of this model"});
        problems_.finish();
    }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }

private:
    const nlohmann::json* given(const char* key) {
        known_.insert(key);
        const auto found = json_->find(key);
        return found == json_->end() || found->is_null() ? nullptr : &*found;
    }
    void refuse(const char* key, const nlohmann::json& value, const std::string& fix) {
        std::string shown = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
        problems_.add(Error{Errc::bad_model_config, source_ + ": key '" + key + "' is " + shown, fix});
    }

    const nlohmann::json* json_;
    std::string source_;
    std::set<std::string, std::less<>> known_;
    config::Problems problems_;
};

}  // namespace strata::diffusion::detail
