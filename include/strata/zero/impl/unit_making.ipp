#pragma once
// strata/zero/impl/unit_making.ipp - MadeAgain: the values of a unit that is constructed for a second time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ATen/core/grad_mode.h>

#include <strata/core/crc32c.hpp>
#include <strata/core/error.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/generator_states.hpp>
#include <strata/zero/detail/unit_making.hpp>

namespace strata::zero::detail {

/// What a parameter held.
struct ParameterSum {
    std::vector<std::int64_t> sizes;
    at::ScalarType dtype;
    std::uint32_t sum;
    friend bool operator==(const ParameterSum&, const ParameterSum&) = default;
};
inline ParameterSum parameter_sum(const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().contiguous();
    const std::span bytes{static_cast<const std::byte*>(values.data_ptr()), values.nbytes()};
    return {tensor.sizes().vec(), tensor.scalar_type(), core::crc32c(bytes)};
}

class MadeAgain final : public UnitValues {
public:
    MadeAgain(MakeBlock make, std::shared_ptr<const GeneratorStates> random, const std::vector<at::Tensor>& parameters)
        : make_{std::move(make)}, random_{std::move(random)} {
        for (const at::Tensor& tensor : parameters) {
            sums_.push_back(parameter_sum(tensor));
            bytes_ += static_cast<std::int64_t>(tensor.nbytes());
        }
    }
    [[nodiscard]] bool reads_ranges() const noexcept override { return false; }
    void read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) override {
        const at::NoGradGuard no_grad;
        if (!block_.owner || !block_.parameters[parameter].defined()) make();
        at::Tensor& made = block_.parameters[parameter];
        values.copy_(made.detach().contiguous().view(-1).narrow(0, begin, values.numel()));
        if (values.numel() < made.numel()) return;
        return_memory(made);  // the unit is in memory once, and not twice
        made.reset();
    }
    void let_go() noexcept override { block_ = {}; }
    [[nodiscard]] std::int64_t bytes_beside() const noexcept override { return bytes_; }
    [[nodiscard]] std::string description() const override { return "made when it is taken over"; }

private:
    void make() {
        {
            const GeneratorsAsBefore drawn_again{*random_};
            block_ = make_();
        }
        std::vector<ParameterSum> sums;
        for (const at::Tensor& tensor : block_.parameters) sums.push_back(parameter_sum(tensor));
        if (sums == sums_) return;
        block_ = {};
        throw Error{
            Errc::bad_parameter,
            "a unit of a model that was made by in_units() has other values when its block is constructed for a second time",
            "let constructors of blocks draw random numbers from libtorch's default generator only, or make the model "
            "without in_units()"};
    }

    MakeBlock make_;
    std::shared_ptr<const GeneratorStates> random_;
    std::vector<ParameterSum> sums_;
    std::int64_t bytes_ = 0;
    MadeBlock block_;
};

STRATA_INLINE void UnitBeingMade::remember_random_numbers() {
    random_ = std::make_shared<GeneratorStates>(std::vector<at::Tensor>{});
}

STRATA_INLINE void UnitBeingMade::defer(UnitLink& link, std::vector<at::Tensor> parameters) {
    const auto is_its_own = [](const at::Tensor& tensor) {
        return tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.has_storage() && tensor.is_leaf() &&
               tensor.storage().use_count() == 1 && tensor.nbytes() > 0 && tensor.storage().nbytes() >= tensor.nbytes();
    };
    if (parameters.empty() || !std::all_of(parameters.begin(), parameters.end(), is_its_own)) return;
    if (making_in_units().for_its_shapes) {
        for (const at::Tensor& tensor : parameters) drop_memory(tensor);
        return;
    }
    const auto deferred = std::make_shared<DeferredUnit>();
    deferred->values = std::make_shared<MadeAgain>(std::move(again_), random_, parameters);
    for (const at::Tensor& tensor : parameters) {
        return_memory(tensor);
        forbid_use(tensor, true);
    }
    deferred->parameters = std::move(parameters);
    link.deferred = deferred;
}

}  // namespace strata::zero::detail
