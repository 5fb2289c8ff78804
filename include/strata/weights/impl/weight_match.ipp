#pragma once
// strata/weights/impl/weight_match.ipp - names, shapes and types of files beside those of a model.

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/weights/impl/weight_files.ipp>
#include <strata/weights/weight_match.hpp>

namespace strata::weights {

namespace detail {

/// The name in the model's terms. None: it is another model's.
inline std::optional<std::string> model_name(std::string_view in_file, const LoadOptions& options) {
    if (!in_file.starts_with(options.prefix)) return std::nullopt;
    in_file.remove_prefix(options.prefix.size());
    for (const Rename& rename : options.renames) {
        if (in_file.starts_with(rename.from)) return rename.to + std::string{in_file.substr(rename.from.size())};
    }
    return std::string{in_file};
}

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "(" + text + ")";
}

/// What is wrong with weights, each kind in a list of its own.
struct Misfits {
    std::vector<std::string> missing;     // the model's names
    std::vector<std::string> unexpected;  // the files' names, in the model's terms
    std::vector<std::string> others;      // sentences
    [[nodiscard]] bool any() const noexcept { return !missing.empty() || !unexpected.empty() || !others.empty(); }
};

/// What most of `whole` have in front of those of `parts`, which are a dot apart. Empty: nothing that one name in two agrees on.
inline std::string common_prefix_of(const std::vector<std::string>& whole, const std::vector<std::string>& parts) {
    const std::set<std::string_view> ends{parts.begin(), parts.end()};
    std::map<std::string, std::size_t> counts;
    for (const std::string& name : whole) {
        for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
            if (ends.contains(std::string_view{name}.substr(dot + 1))) ++counts[name.substr(0, dot + 1)];
        }
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most != counts.end() && 2 * most->second >= parts.size() ? most->first : std::string{};
}

inline std::string fix_of(const Misfits& misfits, const LoadOptions& options) {
    const std::string longer = common_prefix_of(misfits.unexpected, misfits.missing);
    if (!longer.empty())
        return "did you mean the prefix '" + options.prefix + longer +
               "'? Take it out of the files' names, or set LoadOptions::prefix";
    const std::string shorter = common_prefix_of(misfits.missing, misfits.unexpected);
    if (!shorter.empty())
        return "the model's names begin with '" + shorter + "' and those of the files do not: put {\"\", \"" + shorter +
               "\"} into LoadOptions::renames";
    return "take the weights of this model, with its options; LoadOptions says what may be missing or left over";
}

inline std::string listed(std::string_view what, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return std::to_string(names.size()) + " " + std::string{what} + ": " + text;
}

/// A tensor under a name of the code in which a model was first published; nullptr: there is none. Each layer is called otherwise there, so that
/// thousands of names would say what one does.
inline const std::string* name_of_first_code(const std::vector<std::string>& unexpected) {
    constexpr std::array<std::string_view, 2> theirs{"double_blocks.0.", "input_blocks.0."};  // of Flux.1, of U-Nets
    const auto found = std::find_if(unexpected.begin(), unexpected.end(), [&](const std::string& name) {
        return std::any_of(theirs.begin(), theirs.end(),
                           [&](std::string_view stem) { return name.find(stem) != std::string::npos; });
    });
    return found == unexpected.end() ? nullptr : &*found;
}

[[noreturn]] inline void refuse(const WeightFiles& files, const Misfits& misfits, const LoadOptions& options) {
    if (const std::string* const name = name_of_first_code(misfits.unexpected))
        throw Error{Errc::weights_do_not_fit,
                    "the weights of '" + files.path().string() + "' have the names of the model's first code, " +
                        *name + " and " + std::to_string(misfits.unexpected.size() - 1) +
                        " more, which diffusers converts",
                    "read them with its from_single_file(), and write a model's folder with save_pretrained()"};
    std::vector<std::string> parts;
    if (!misfits.missing.empty()) parts.push_back(listed("missing", misfits.missing));
    if (!misfits.unexpected.empty()) parts.push_back(listed("unexpected", misfits.unexpected));
    parts.insert(parts.end(), misfits.others.begin(), misfits.others.end());
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : "; ") + part;
    throw Error{Errc::weights_do_not_fit, "the weights of '" + files.path().string() + "' do not fit the model: " + all,
                fix_of(misfits, options)};
}

}  // namespace detail

STRATA_INLINE bool is_read_as(storage::Dtype from, storage::Dtype to) noexcept {
    using enum storage::Dtype;
    const auto is_float = [](storage::Dtype dtype) {
        return dtype == f64 || dtype == f32 || dtype == bf16 || dtype == f16;
    };
    const auto is_signed = [](storage::Dtype dtype) {
        return dtype == i64 || dtype == i32 || dtype == i16 || dtype == i8;
    };
    if (is_float(from) || is_float(to)) return is_float(from) && is_float(to);
    if (is_signed(from) && is_signed(to)) return storage::bits_of(from) <= storage::bits_of(to);
    if (from == u8 && is_signed(to)) return storage::bits_of(to) > 8;
    return from == to && (from == u8 || from == boolean);
}

STRATA_INLINE std::vector<std::optional<WeightFiles::Tensor>> match_weights(const std::vector<WantedWeight>& wanted,
                                                                            const WeightFiles& files,
                                                                            const LoadOptions& options) {
    std::map<std::string, std::size_t, std::less<>> index;  // of wanted, by each name
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        for (const std::string& name : wanted[i].names) index.emplace(name, i);
    }
    std::vector<std::optional<WeightFiles::Tensor>> found(wanted.size());
    std::map<std::string, std::string> file_name_of;  // by the model's name
    detail::Misfits misfits;
    for (const auto& [in_file, tensor] : files.tensors()) {
        const std::optional<std::string> name = detail::model_name(in_file, options);
        if (!name) continue;
        if (const auto [before, is_new] = file_name_of.emplace(*name, in_file); !is_new) {
            misfits.others.push_back("'" + before->second + "' and '" + in_file + "' would both be '" + *name + "'");
            continue;
        }
        const auto place = index.find(*name);
        if (place == index.end()) {
            if (!options.may_be_left || !options.may_be_left(*name)) misfits.unexpected.push_back(*name);
            continue;
        }
        const WantedWeight& weight = wanted[place->second];
        if (tensor.entry->shape != weight.shape) {
            misfits.others.push_back("'" + *name + "' has the shape " + detail::shape_text(tensor.entry->shape) +
                                     ", the model's " + detail::shape_text(weight.shape));
        } else if (!is_read_as(tensor.entry->dtype, weight.dtype)) {
            misfits.others.push_back("'" + *name + "' is of type " +
                                     std::string{storage::name_of(tensor.entry->dtype)} + ", the model's of " +
                                     std::string{storage::name_of(weight.dtype)});
        }
        if (!found[place->second]) found[place->second] = tensor;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string& name = wanted[i].names.front();
        if (!found[i] && (!options.may_be_missing || !options.may_be_missing(name))) misfits.missing.push_back(name);
    }
    if (misfits.any()) detail::refuse(files, misfits, options);
    return found;
}

}  // namespace strata::weights
