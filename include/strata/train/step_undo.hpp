#pragma once
// strata/train/step_undo.hpp - StepUndo: back to where the last step ended, when one fails.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/buffer_copies.hpp>
#include <strata/zero/buffers.hpp>

namespace strata::train {

/// What a step changes before anybody knows whether it will be done: gradients, the model's buffers, the engine's scalars, and
/// an average that an action put in the weights' place. The update itself changes nothing unless it is done, or says that it
/// broke off half way (Engine::state_is_whole()).
class StepUndo {
public:
    ///   engine  outlives it
    StepUndo(AnyEngine& engine, const AnyModel& model) : engine_{engine}, buffers_{buffers_of(model)} {}

    /// A step begins. Local; throws where memory for copies lacks.
    void begin() {
        buffers_.take();
        scalars_ = engine_.scalars();
        in_step_ = true;
    }
    /// The step is done, or skipped. Local.
    void end() noexcept { in_step_ = false; }
    /// Whether buffers and scalars may not be those of the last step done. Local.
    [[nodiscard]] bool in_step() const noexcept { return in_step_; }

    /// Back to where the last step ended. Collective where the average is in the weights' place, else local.
    void undo() {
        engine_.discard_step();
        if (engine_.average_is_in()) engine_.swap_average();
        if (!std::exchange(in_step_, false)) return;
        buffers_.put_back();
        engine_.restore_scalars(scalars_);
    }

    /// The buffers alone, for a step that is skipped: running statistics of what is not finite stay so for good. Local.
    void undo_buffers() { buffers_.put_back(); }

private:
    [[nodiscard]] static std::vector<at::Tensor> buffers_of(const AnyModel& model) {
        std::vector<at::Tensor> tensors;
        for (const zero::Buffer& buffer : model.named_buffers())
            if (buffer.tensor.defined()) tensors.push_back(buffer.tensor);
        return tensors;
    }

    AnyEngine& engine_;
    BufferCopies buffers_;
    std::map<std::string, double> scalars_;
    bool in_step_ = false;
};

}  // namespace strata::train
