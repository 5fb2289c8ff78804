#pragma once
// strata/diffusion/impl/objective.ipp - noise, targets and weights of training.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <strata/diffusion/impl/flow_schedule.ipp>
#include <strata/diffusion/impl/noise_source.ipp>
#include <strata/diffusion/objective.hpp>

namespace strata::diffusion {

namespace detail {

/// One number a picture, (B) fp32 on the device of x.
template <class Number>
at::Tensor one_a_picture(const at::Tensor& x, std::size_t count, Number&& number) {
    at::Tensor values = at::empty({static_cast<std::int64_t>(count)}, at::TensorOptions().dtype(at::kFloat));
    float* to = values.data_ptr<float>();
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(number(i));
    return values.to(x.device());
}

/// (B) as (B, 1, 1, ...), to be multiplied with x.
inline at::Tensor beside(const at::Tensor& x, const at::Tensor& values_B) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
    shape[0] = values_B.size(0);
    return values_B.view(shape);
}

struct DrawnNoise {
    at::Tensor answered;
    at::Tensor shown;
};

inline DrawnNoise draw_noise(const at::Tensor& x, const NoiseSource& source, const NoiseOptions& options) {
    at::Tensor noise = source.normal(x.sizes());
    if (options.offset > 0) {
        std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
        shape[0] = x.size(0);
        shape[1] = x.size(1);
        at::Tensor offset = source.normal(shape) * options.offset;
        if (options.offset_probability < 1)
            offset = offset * beside(x, source.uniform({x.size(0)}).lt(options.offset_probability));
        noise = noise + offset;
    }
    at::Tensor shown = noise;
    if (options.perturbation > 0) shown = noise + source.normal(x.sizes()) * options.perturbation;
    const at::Tensor answered = noise.to(x.device());
    return {answered, options.perturbation > 0 ? shown.to(x.device()) : answered};
}

/// Random numbers of a batch, one a picture.
inline std::vector<double> numbers(const at::Tensor& values_B) {
    const float* from = values_B.data_ptr<float>();
    return {from, from + values_B.numel()};
}

inline void check_noise(const NoiseOptions& options, config::Problems& problems) {
    const auto look = [&](const char* name, double value) {
        if (!(value >= 0) || !std::isfinite(value))
            problems.add(bad_options(std::string{name} + " of the noise is " + OptionCheck::shown(value),
                                     "give 0 for none, or a small number, as 0.1"));
    };
    look("offset", options.offset);
    look("perturbation", options.perturbation);
    if (!(options.offset_probability >= 0 && options.offset_probability <= 1))
        problems.add(bad_options("offset_probability of the noise is " + OptionCheck::shown(options.offset_probability),
                                 "give a share from 0 to 1; 1 is every picture"));
}

inline void check_count(const at::Tensor& x, std::size_t count, const char* what) {
    if (x.dim() < 2 || static_cast<std::size_t>(x.size(0)) != count)
        throw Error{Errc::bad_value,
                    "a batch of " + std::to_string(x.dim() > 0 ? x.size(0) : 0) + " pictures was given " +
                        std::to_string(count) + " " + what,
                    "give one for each picture of a tensor (B, C, ...)"};
}

}  // namespace detail

STRATA_INLINE at::Tensor Noised::loss(const at::Tensor& prediction) const {
    const at::Tensor error = (prediction.to(at::kFloat) - target).square().flatten(1).mean(1);
    return (error * weight_B).mean();
}

STRATA_INLINE Noised noised(const at::Tensor& x, const at::Tensor& noise, const at::Tensor& shown,
                            Prediction prediction, const std::vector<Level>& levels,
                            const std::vector<double>& timesteps) {
    detail::check_count(x, levels.size(), "levels");
    const at::Tensor x_fp32 = x.to(at::kFloat);
    const auto weighted = [&](auto&& number) {
        return detail::beside(x, detail::one_a_picture(x, levels.size(), number));
    };
    const auto target = [&](std::size_t i) { return target_weights(prediction, levels[i]); };
    Noised result;
    result.input = x_fp32 * weighted([&](std::size_t i) { return levels[i].alpha; }) +
                   shown * weighted([&](std::size_t i) { return levels[i].sigma; });
    result.target = x_fp32 * weighted([&](std::size_t i) { return target(i).of_picture; }) +
                    noise * weighted([&](std::size_t i) { return target(i).of_noise; });
    result.timestep_B = detail::one_a_picture(x, levels.size(), [&](std::size_t i) { return timesteps[i]; });
    result.sigma_B = detail::one_a_picture(x, levels.size(), [&](std::size_t i) { return levels[i].sigma; });
    result.weight_B = detail::one_a_picture(x, levels.size(), [](std::size_t) { return 1.0; });
    return result;
}

STRATA_INLINE DdpmObjective::DdpmObjective(DdpmSchedule schedule, const DdpmObjectiveOptions& options)
    : schedule_{std::move(schedule)}, options_{options} {
    config::Problems problems;
    const int last = schedule_.timesteps() - 1;
    if (options_.most_timestep == -1) options_.most_timestep = last;
    if (options_.least_timestep < 0 || options_.most_timestep > last ||
        options_.most_timestep < options_.least_timestep)
        problems.add(detail::bad_options("timesteps from " + std::to_string(options_.least_timestep) + " to " +
                                             std::to_string(options_.most_timestep) + " are to be trained",
                                         "give a range from 0 to " + std::to_string(last) + " that is not empty"));
    if (!(options_.min_snr_gamma >= 0))
        problems.add(detail::bad_options("min_snr_gamma is " + OptionCheck::shown(options_.min_snr_gamma),
                                         "give 0 for none, or a number above, as 5"));
    if (options_.prediction == Prediction::flow)
        problems.add(detail::bad_options("a DDPM schedule is to be trained with the velocity of a flow",
                                         "use epsilon, v or sample, or a flow schedule"));
    if (options_.prediction == Prediction::epsilon && schedule_.ends_in_noise() && options_.most_timestep == last)
        problems.add(detail::bad_options("epsilon is to be learnt at a timestep without signal, where it is the input",
                                         "predict v, or leave rescale_betas_zero_snr out"));
    detail::check_noise(options_.noise, problems);
    problems.finish();
}

STRATA_INLINE Noised DdpmObjective::weighted(Noised noised, const std::vector<std::int64_t>& timesteps) const {
    if (options_.min_snr_gamma > 0)
        noised.weight_B = detail::one_a_picture(noised.input, timesteps.size(), [&](std::size_t i) {
            return min_snr_weight(options_.prediction, schedule_.level(timesteps[i]), options_.min_snr_gamma);
        });
    return noised;
}

STRATA_INLINE Noised DdpmObjective::at(const at::Tensor& x, const at::Tensor& noise,
                                       const std::vector<std::int64_t>& timesteps) const {
    std::vector<Level> levels;
    for (const std::int64_t timestep : timesteps) levels.push_back(schedule_.level(timestep));
    return weighted(
        diffusion::noised(x, noise, noise, options_.prediction, levels, {timesteps.begin(), timesteps.end()}),
        timesteps);
}

STRATA_INLINE Noised DdpmObjective::draw(const at::Tensor& x, const NoiseSource& source) const {
    const detail::DrawnNoise noise = detail::draw_noise(x, source, options_.noise);
    std::vector<std::int64_t> timesteps;
    std::vector<Level> levels;
    for (const double u : detail::numbers(source.uniform({x.size(0)}))) {
        const int count = options_.most_timestep - options_.least_timestep + 1;
        timesteps.push_back(options_.least_timestep + static_cast<std::int64_t>(u * count));
        levels.push_back(schedule_.level(timesteps.back()));
    }
    return weighted(diffusion::noised(x, noise.answered, noise.shown, options_.prediction, levels,
                                      {timesteps.begin(), timesteps.end()}),
                    timesteps);
}

STRATA_INLINE FlowObjective::FlowObjective(const FlowSchedule& schedule, const FlowObjectiveOptions& options)
    : schedule_{schedule}, options_{options} {
    config::Problems problems;
    const auto positive = [&](const char* name, double value) {
        if (!(value > 0) || !std::isfinite(value))
            problems.add(detail::bad_options(std::string{name} + " of a flow objective is " + OptionCheck::shown(value),
                                             "give a number above 0; 1 is usual"));
    };
    positive("shift", options.shift);
    if (options.density.shape == DensityShape::logit_normal) {
        positive("deviation", options.density.deviation);
        if (!std::isfinite(options.density.mean))
            problems.add(detail::bad_options("mean of a flow objective is " + OptionCheck::shown(options.density.mean),
                                             "give a finite number; 0 is usual"));
    }
    const double most = 2 / (std::numbers::pi - 2);
    if (options.density.shape == DensityShape::mode && !(options.density.scale >= -1 && options.density.scale <= most))
        problems.add(detail::bad_options("scale of the density mode is " + OptionCheck::shown(options.density.scale),
                                         "give -1 to 1.75, where the density is one; 1.29 is usual"));
    if (options.shift_by_tokens && options.shift != 1)
        problems.add(detail::bad_options("a flow objective has a shift of its own and one by the size of pictures",
                                         "leave one of shift and shift_by_tokens out"));
    if (options.shift_by_tokens && !schedule.options().dynamic)
        problems.add(detail::bad_options("shift_by_tokens is asked for of a flow schedule whose shift is static",
                                         "use a schedule with use_dynamic_shifting, or leave shift_by_tokens out"));
    detail::check_noise(options.noise, problems);
    problems.finish();
}

STRATA_INLINE double FlowObjective::sigma_of(double random, std::int64_t picture_tokens) const {
    double sigma = options_.density.at(random);
    if (options_.from_table) {
        const auto index =
            static_cast<std::int64_t>(static_cast<float>(sigma) * static_cast<float>(schedule_.timesteps()));
        sigma = schedule_.training_sigma(std::clamp<std::int64_t>(index, 0, schedule_.timesteps() - 1));
    }
    return options_.shift_by_tokens ? schedule_.sigma(sigma, picture_tokens) : shifted(sigma, options_.shift);
}

STRATA_INLINE Noised FlowObjective::weighted(Noised noised, const std::vector<double>& sigmas) const {
    if (options_.weighting != FlowWeighting::none)
        noised.weight_B = detail::one_a_picture(
            noised.input, sigmas.size(), [&](std::size_t i) { return flow_weight(options_.weighting, sigmas[i]); });
    return noised;
}

STRATA_INLINE Noised FlowObjective::at(const at::Tensor& x, const at::Tensor& noise,
                                       const std::vector<double>& sigmas) const {
    std::vector<Level> levels;
    std::vector<double> timesteps;
    for (const double sigma : sigmas) {
        levels.push_back(FlowSchedule::level(sigma));
        timesteps.push_back(sigma * schedule_.timesteps());
    }
    return weighted(diffusion::noised(x, noise, noise, Prediction::flow, levels, timesteps), sigmas);
}

STRATA_INLINE Noised FlowObjective::draw(const at::Tensor& x, const NoiseSource& source,
                                         std::int64_t picture_tokens) const {
    const detail::DrawnNoise noise = detail::draw_noise(x, source, options_.noise);
    const at::Tensor random =
        options_.density.wants_normal() ? source.normal({x.size(0)}) : source.uniform({x.size(0)});
    std::vector<double> sigmas, timesteps;
    std::vector<Level> levels;
    for (const double number : detail::numbers(random)) {
        sigmas.push_back(sigma_of(number, picture_tokens));
        timesteps.push_back(sigmas.back() * schedule_.timesteps());
        levels.push_back(FlowSchedule::level(sigmas.back()));
    }
    return weighted(diffusion::noised(x, noise.answered, noise.shown, Prediction::flow, levels, timesteps), sigmas);
}

}  // namespace strata::diffusion
