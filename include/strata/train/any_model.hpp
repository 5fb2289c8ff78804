#pragma once
// strata/train/any_model.hpp - AnyModel: a trainer's model, as far as a run and its checkpoints look at it.

#include <vector>

#include <strata/zero/buffers.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::train {

/// A torch::nn::Module for what is compiled once for all of them. Local, all of it.
class AnyModel {
public:
    AnyModel(const AnyModel&) = delete;
    AnyModel& operator=(const AnyModel&) = delete;

    /// Names and tensors as the state dict has them, those that are registered twice under both names.
    [[nodiscard]] virtual std::vector<zero::Buffer> named_buffers() const = 0;
    [[nodiscard]] virtual std::vector<zero::Buffer> named_parameters() const = 0;
    /// zero::tensors_of() and zero::parameters_of().
    [[nodiscard]] virtual std::vector<zero::Buffer> tensors() const = 0;
    [[nodiscard]] virtual std::vector<zero::Parameter> parameters() const = 0;
    /// Into training mode.
    virtual void train() = 0;

protected:
    AnyModel() = default;
    ~AnyModel() = default;
};

///   Model  a torch::nn::Module
template <class Model>
class ModelOf final : public AnyModel {
public:
    ///   model  outlives it
    explicit ModelOf(Model& model) noexcept : model_{model} {}

    [[nodiscard]] std::vector<zero::Buffer> named_buffers() const override {
        std::vector<zero::Buffer> found;
        for (const auto& item : model_.named_buffers()) found.push_back({item.key(), item.value()});
        return found;
    }
    [[nodiscard]] std::vector<zero::Buffer> named_parameters() const override {
        std::vector<zero::Buffer> found;
        for (const auto& item : model_.named_parameters()) found.push_back({item.key(), item.value()});
        return found;
    }
    [[nodiscard]] std::vector<zero::Buffer> tensors() const override { return zero::tensors_of(model_); }
    [[nodiscard]] std::vector<zero::Parameter> parameters() const override { return zero::parameters_of(model_); }
    void train() override { model_.train(); }

private:
    Model& model_;
};

}  // namespace strata::train
