#pragma once
// strata/testing/recipe_conformance.hpp - recipe_failures(): does a recipe do what data::Recipe asks for and no compiler sees?

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Device.h>

#include <strata/data/named_tensors.hpp>
#include <strata/data/recipe.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/zero/tensors_in.hpp>

namespace strata::testing {

/// What a recipe is tried with.
struct RecipeTrial {
    at::Device device = at::kCPU;  ///< that encoders compute on
    std::int64_t edge = 64;        ///< pixels of a picture, at least: rounded up to the recipe's alignment()
    /// How far a picture's numbers may be from those that it has on its own, where others are encoded with it: of the
    /// largest. Libraries sum in another order there. Of numbers that are kept in 16 bits, no less than four units in the
    /// last place of the largest, since each layer rounds anew: 1/32 for bf16.
    double company = 1e-2;
};

namespace detail {

/// The distance of 1 to the next larger number: a unit in the last place is that much of a value, or less.
inline double unit_in_last_place(at::ScalarType type) {
    if (type == at::kBFloat16) return 0x1p-7;
    return type == at::kHalf ? 0x1p-10 : 0x1p-23;
}

/// The same bits, or within `share` of the largest value, if not 0.
inline bool is_near(const at::Tensor& a, const at::Tensor& b, double share) {
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
    if (a.equal(b)) return true;
    if (share == 0 || a.numel() == 0) return false;
    const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
    const double bound = std::max(share, 4 * unit_in_last_place(a.scalar_type()));
    return x.sub(y).abs().max().item<double>() <= bound * x.abs().max().item<double>();
}

inline bool are_near(const data::NamedTensors& a, const data::NamedTensors& b, double share) {
    if (a.size() != b.size()) return false;
    for (const auto& [name, tensor] : a) {
        const auto other = b.find(name);
        if (other == b.end() || !is_near(tensor, other->second, share)) return false;
    }
    return true;
}

/// (3, H, W): no two seeds, rows or columns look alike.
inline at::Tensor some_picture(const pictures::PictureSize& size, int seed) {
    const at::Tensor pixels_3HW = at::empty({3, size.height, size.width}, at::kFloat);
    auto* out = static_cast<float*>(pixels_3HW.data_ptr());
    std::uint32_t state = 12345U + static_cast<std::uint32_t>(seed) * 77U;
    for (std::int64_t i = 0; i < pixels_3HW.numel(); ++i) {
        state = state * 1664525U + 1013904223U;
        const float ramp = static_cast<float>(i % size.width) / static_cast<float>(size.width);
        out[i] = (ramp + static_cast<float>(state >> 8U) / 16777216.0F) - 1.0F;
    }
    return pixels_3HW;
}

/// Of a kind: (C, H, W) with the values that it has.
inline at::Tensor some_conditioning(pictures::ConditioningKind kind, const pictures::PictureSize& size, int seed) {
    const at::Tensor pixels_3HW = some_picture(size, seed);
    return kind == pictures::ConditioningKind::mask ? pixels_3HW.slice(0, 0, 1).gt(0).to(at::kFloat) : pixels_3HW;
}

inline data::Geometry some_geometry(const pictures::PictureSize& size) {
    const pictures::PictureSize original{2 * size.width, size.height + 32};
    return {original, pictures::centered(original, size)};
}

/// The laws, one member function each.
template <data::Recipe R>
class RecipeLaws {
public:
    RecipeLaws(const R& recipe, const RecipeTrial& trial) : recipe_{recipe}, trial_{trial} {}

    std::vector<std::string> run() {
        law("names what entries depend on", [&] { names_what_entries_depend_on(); });
        if (!failures_.empty()) return failures_;
        const std::int64_t multiple = recipe_.alignment();
        const std::int64_t edge = (trial_.edge + multiple - 1) / multiple * multiple;
        for (const pictures::PictureSize& size :
             {pictures::PictureSize{edge, edge}, pictures::PictureSize{edge + multiple, edge}})
            law("encodes pictures of " + std::to_string(size.width) + " x " + std::to_string(size.height),
                [&] { encodes_pictures(size); });
        law("encodes captions", [&] { encodes_captions(); });
        if (failures_.empty()) law("collates", [&] { collates({edge, edge}); });
        return failures_;
    }

private:
    template <class Body>
    void law(const std::string& name, const Body& body) {
        try {
            const at::NoGradGuard no_gradients;
            name_ = name;
            body();
        } catch (const std::exception& error) {
            failures_.push_back(name + ": throws '" + error.what() + "'");
        }
    }
    void require(bool holds, const std::string& otherwise) {
        if (!holds) failures_.push_back(name_ + ": " + otherwise);
    }

    void names_what_entries_depend_on() {
        require(!std::string{recipe_.picture_id()}.empty(), "picture_id() is empty");
        require(!std::string{recipe_.caption_id()}.empty(), "caption_id() is empty");
        require(std::string{recipe_.picture_id()} == std::string{recipe_.picture_id()},
                "picture_id() is another one at every call, so that nothing is ever found in a cache");
        require(std::string{recipe_.caption_id()} == std::string{recipe_.caption_id()},
                "caption_id() is another one at every call, so that nothing is ever found in a cache");
        require(recipe_.alignment() >= 1, "alignment() is below 1");
        require(data::conditioning_of(recipe_) == data::conditioning_of(recipe_),
                "conditioning() is another one at every call");
    }

    static data::NamedTensors on_cpu(data::NamedTensors entry) {
        for (auto& [name, tensor] : entry)
            if (tensor.defined()) tensor = tensor.detach().to(at::kCPU).contiguous();
        return entry;
    }

    /// What is encoded is as specified, comes back from a file, and is the same again and in other company.
    ///
    ///   encode  (begin, count) -> entries
    template <class Encode>
    std::vector<data::NamedTensors> encodes(std::size_t count, const std::vector<data::TensorSpec>& specs,
                                            const Encode& encode) {
        std::vector<data::NamedTensors> together = encode(std::size_t{0}, count);
        require(together.size() == count,
                std::to_string(together.size()) + " entries come back for " + std::to_string(count));
        if (together.size() != count) return {};
        const std::vector<data::NamedTensors> again = encode(std::size_t{0}, count);
        for (std::size_t i = 0; i < count; ++i) {
            together[i] = on_cpu(together[i]);
            const std::string wrong = data::mismatch(together[i], specs);
            require(wrong.empty(), wrong);
            if (!wrong.empty()) return {};
            const auto bytes = data::pack_entry(together[i], "trial", false);
            require(are_near(data::unpack_entry(bytes, "trial", false, "a file in memory"), together[i], 0),
                    "an entry that was written is another one when it is read: NaN, perhaps");
            require(
                again.size() == count && are_near(on_cpu(again[i]), together[i], 0),
                "the same input twice gives other numbers: what is drawn belongs into collate(), from Example::random");
            const std::vector<data::NamedTensors> alone = encode(i, std::size_t{1});
            require(alone.size() == 1 && are_near(on_cpu(alone[0]), together[i], trial_.company),
                    "entry " + std::to_string(i) + " depends on what else is encoded with it");
        }
        return together;
    }

    /// Pictures from `begin` on, with their conditioning pictures, that of number `other` being another one.
    data::PictureBatch some_pictures(const pictures::PictureSize& size, std::size_t begin, std::size_t some,
                                     std::size_t other = static_cast<std::size_t>(-1)) {
        const std::vector<pictures::ConditioningKind> kinds = data::conditioning_of(recipe_);
        const auto count = static_cast<std::int64_t>(some);
        data::PictureBatch batch;
        batch.pixels_B3HW = at::empty({count, 3, size.height, size.width}, at::kFloat);
        for (const pictures::ConditioningKind kind : kinds)
            batch.conditioning.push_back(
                at::empty({count, pictures::channels_of(kind), size.height, size.width}, at::kFloat));
        for (std::int64_t i = 0; i < count; ++i) {
            const int seed = static_cast<int>(begin) + static_cast<int>(i);
            batch.pixels_B3HW[i].copy_(some_picture(size, seed));
            for (std::size_t c = 0; c < kinds.size(); ++c)
                batch.conditioning[c][i].copy_(
                    some_conditioning(kinds[c], size, seed + 100 * static_cast<int>(c + 1) + (c == other ? 50 : 0)));
            batch.geometry.push_back(some_geometry(size));
        }
        batch.pixels_B3HW = batch.pixels_B3HW.to(trial_.device);
        for (at::Tensor& one : batch.conditioning) one = one.to(trial_.device);
        return batch;
    }

    void encodes_pictures(const pictures::PictureSize& size) {
        auto encoders = recipe_.load_picture_encoders(trial_.device);
        constexpr std::size_t count = 3;
        pictures_ = encodes(count, recipe_.picture_tensors(size), [&](std::size_t begin, std::size_t some) {
            return recipe_.encode_pictures(encoders, some_pictures(size, begin, some));
        });
        if (pictures_.size() != count) return;
        require(!are_near(pictures_[0], pictures_[1], 0), "two pictures that differ are encoded alike");
        for (std::size_t c = 0; c < data::conditioning_of(recipe_).size(); ++c) {
            const auto made = recipe_.encode_pictures(encoders, some_pictures(size, 0, 1, c));
            require(made.size() == 1 && !are_near(on_cpu(made[0]), pictures_[0], 0),
                    "conditioning picture " + std::to_string(c) + " has no part in what is encoded");
        }
    }

    void encodes_captions() {
        auto encoders = recipe_.load_caption_encoders(trial_.device);
        const std::vector<std::string> captions{"", "a red square",
                                                "größer, 猫 and a long caption of many words that goes on",
                                                recipe_.dropped_caption().value_or("another")};
        captions_ = encodes(captions.size(), recipe_.caption_tensors(), [&](std::size_t begin, std::size_t some) {
            return recipe_.encode_captions(encoders, std::span{captions}.subspan(begin, some));
        });
        if (captions_.size() == captions.size())
            require(!are_near(captions_[1], captions_[2], 0), "two captions that differ are encoded alike");
    }

    using Batch = typename R::Batch;
    static std::vector<at::Tensor> tensors_of(const Batch& batch) {
        std::vector<at::Tensor> tensors;
        zero::for_each_tensor(batch, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
        return tensors;
    }
    static bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
        if (a.size() != b.size()) return false;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!is_near(a[i], b[i], 0)) return false;
        return true;
    }

    void collates(const pictures::PictureSize& size) {
        encodes_pictures(size);
        if constexpr (!zero::holds_tensors_v<Batch>) {
            require(false,
                    "no tensor is found in a Batch, so that none is moved to a GPU: write visit_tensors() beside it");
        } else {
            const auto examples = [&](std::size_t count, bool is_dropped) {
                std::vector<data::Example> all;
                for (std::size_t i = 0; i < count; ++i)
                    all.push_back({pictures_[i], captions_[i + 1], some_geometry(size), "a caption", is_dropped,
                                   "picture.png", 7 + i, false});
                return all;
            };
            for (const std::size_t count : {std::size_t{1}, std::size_t{3}}) {
                std::vector<data::NamedTensors> before;
                for (const data::Example& one : examples(count, false)) {
                    before.push_back(one.picture);
                    for (auto& [name, tensor] : before.back()) tensor = tensor.clone();
                }
                const auto shown = tensors_of(recipe_.collate(examples(count, false)));
                require(!shown.empty(), "a batch has no tensor");
                require(are_equal(shown, tensors_of(recipe_.collate(examples(count, false)))),
                        "the same examples twice give other batches: draw from Example::random");
                const auto dropped = tensors_of(recipe_.collate(examples(count, true)));
                require(dropped.size() == shown.size(), "a batch of dropped captions has other tensors");
                if (!recipe_.dropped_caption())
                    require(!are_equal(shown, dropped),
                            "no text stands in for a dropped caption, and collate() passes over Example::is_dropped");
                for (std::size_t i = 0; i < count; ++i)
                    require(are_near(before[i], pictures_[i], 0), "collate() changes what is cached");
            }
        }
    }

    const R& recipe_;
    RecipeTrial trial_;
    std::string name_;
    std::vector<std::string> failures_;
    std::vector<data::NamedTensors> pictures_;
    std::vector<data::NamedTensors> captions_;
};

}  // namespace detail

/// Loads the recipe's encoders and tries them with a few pictures and captions. Local. Returns what is wrong, a sentence
/// each; empty when nothing is.
template <data::Recipe R>
[[nodiscard]] std::vector<std::string> recipe_failures(const R& recipe, const RecipeTrial& trial = {}) {
    return detail::RecipeLaws<R>{recipe, trial}.run();
}

}  // namespace strata::testing
