#pragma once
// strata/diffusion/objective.hpp - DdpmObjective and FlowObjective: what a model is shown, and what it is to answer.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/loss_weights.hpp>
#include <strata/diffusion/noise_source.hpp>
#include <strata/diffusion/prediction.hpp>
#include <strata/diffusion/timestep_density.hpp>

namespace strata::diffusion {

/// Changes of the noise that training adds.
struct NoiseOptions {
    /// Adds offset * normal, one number a picture and channel, so that the model learns to change the mean of a picture
    /// (Guttenberg 2023, "Diffusion with offset noise"). 0.05 to 0.1 are usual; 0 is none.
    double offset = 0;
    /// Share of the pictures of a batch that have it, drawn for each.
    double offset_probability = 1;
    /// What the model is shown has sqrt(1 + perturbation^2) times the noise that it is to answer (Ning et al. 2023,
    /// arXiv:2301.11706, algorithm 1). 0.1 is usual; 0 is none.
    double perturbation = 0;
};

/// A training step's input and answer, all on the device of the pictures. B pictures.
struct Noised {
    at::Tensor input;       ///< alpha * x + sigma * noise, shape of the pictures, fp32
    at::Tensor target;      ///< what the model is to predict, fp32
    at::Tensor timestep_B;  ///< what the model is told: 0 ... 999, or sigma * 1000; fp32
    at::Tensor sigma_B;     ///< of the noise in input; fp32
    at::Tensor weight_B;    ///< of each picture's error; fp32

    /// Mean over pictures of weight * mean squared error, fp32: a scalar to compute gradients of.
    [[nodiscard]] at::Tensor loss(const at::Tensor& prediction) const;
};

/// Input and target of pictures x at levels, one a picture, with this noise; the weights are 1 and the timesteps as
/// given.
///
///   shown  the noise in the input where that is not `noise` itself (perturbation)
[[nodiscard]] Noised noised(const at::Tensor& x, const at::Tensor& noise, const at::Tensor& shown,
                            Prediction prediction, const std::vector<Level>& levels,
                            const std::vector<double>& timesteps);

struct DdpmObjectiveOptions {
    Prediction prediction = Prediction::epsilon;
    double min_snr_gamma = 0;  ///< 5 is usual (Hang et al. 2023); 0 weighs all levels alike
    NoiseOptions noise = {};
    /// Timesteps that are trained, uniformly, the last one included; -1 is the schedule's last.
    int least_timestep = 0;
    int most_timestep = -1;
};

/// How SD 1.5 and SDXL are trained.
class DdpmObjective {
public:
    /// Throws Errc::bad_diffusion_options: an empty range of timesteps, negative numbers, flow as the prediction, or
    /// epsilon at a level that has no signal.
    explicit DdpmObjective(DdpmSchedule schedule = DdpmSchedule{}, const DdpmObjectiveOptions& options = {});

    [[nodiscard]] const DdpmSchedule& schedule() const noexcept { return schedule_; }
    [[nodiscard]] const DdpmObjectiveOptions& options() const noexcept { return options_; }

    /// Pictures x, (B, C, ...), at timesteps and with noise from `source`: noise, offset, which pictures have
    /// it where not all do, perturbation and timestep, in this order.
    [[nodiscard]] Noised draw(const at::Tensor& x, const NoiseSource& source) const;
    /// The same at given timesteps with given noise, as it is.
    [[nodiscard]] Noised at(const at::Tensor& x, const at::Tensor& noise,
                            const std::vector<std::int64_t>& timesteps) const;

private:
    [[nodiscard]] Noised weighted(Noised noised, const std::vector<std::int64_t>& timesteps) const;

    DdpmSchedule schedule_;
    DdpmObjectiveOptions options_;
};

struct FlowObjectiveOptions {
    TimestepDensity density = {};
    /// The density's number u chooses an entry of the schedule's table, floor(u * timesteps), as diffusers' training
    /// scripts do: entry 0 is noise, so that sigma is about 1 - u, shifted where the schedule's shift is static.
    /// Without it sigma is u.
    bool from_table = true;
    double shift = 1;              ///< another static shift of sigma, behind the above
    bool shift_by_tokens = false;  ///< or that of the schedule's mu(), by the size of the pictures
    FlowWeighting weighting = FlowWeighting::none;
    NoiseOptions noise = {};
};

/// How Flux is trained: the velocity noise - x at (1 - sigma) x + sigma noise.
class FlowObjective {
public:
    /// Throws Errc::bad_diffusion_options: a deviation or shift that is not above 0, two shifts at once,
    /// shift_by_tokens of a schedule that is not dynamic, negative noise options.
    explicit FlowObjective(const FlowSchedule& schedule = FlowSchedule{}, const FlowObjectiveOptions& options = {});

    [[nodiscard]] const FlowSchedule& schedule() const noexcept { return schedule_; }
    [[nodiscard]] const FlowObjectiveOptions& options() const noexcept { return options_; }

    /// sigma of a random number, normal or uniform as the density wants it.
    [[nodiscard]] double sigma_of(double random, std::int64_t picture_tokens) const;

    /// Pictures x, (B, C, ...), at levels and with noise from `source`: noise, offset, which pictures have it
    /// where not all do, perturbation and level, in this order.
    ///
    ///   picture_tokens  of a picture in this batch (H / 16 * W / 16 pixels of Flux.1); used with shift_by_tokens
    [[nodiscard]] Noised draw(const at::Tensor& x, const NoiseSource& source, std::int64_t picture_tokens) const;
    /// The same at given sigmas with given noise, as it is.
    [[nodiscard]] Noised at(const at::Tensor& x, const at::Tensor& noise, const std::vector<double>& sigmas) const;

private:
    [[nodiscard]] Noised weighted(Noised noised, const std::vector<double>& sigmas) const;

    FlowSchedule schedule_;
    FlowObjectiveOptions options_;
};

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/objective.ipp>
#endif
