#pragma once
// strata/zero/impl/recompute.ipp - the node that runs a call again, and the generators' states.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/generator_states.hpp>
#include <strata/zero/detail/recompute.hpp>

namespace strata::zero::detail {

[[noreturn]] STRATA_INLINE void refuse_recomputation(const std::string& what, const std::string& fix) {
    throw Error{Errc::wrong_call_order, what, fix};
}

/// One call of recomputed().
struct Recomputation {
    std::function<Tensors(const Tensors&)> forward;
    std::function<void()> before_rerun;
    GeneratorStates generators;
    std::vector<std::size_t> first_same;  ///< number of the first input that is the same tensor, for every input
    std::vector<std::size_t> trained;     ///< inputs that require a gradient, each tensor once
    Tensors parameters;                   ///< leaves that require a gradient, each once
    std::vector<std::size_t> made;        ///< outputs that come from the node
    std::size_t output_count = 0;

    [[nodiscard]] Tensors detached(const Tensors& inputs) const {
        Tensors result(inputs.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (first_same[i] < i) {
                result[i] = result[first_same[i]];
            } else if (inputs[i].defined()) {
                result[i] = inputs[i].detach();
            }
        }
        return result;
    }
};

/// A tensor that owns `object`: saved by a node, it frees the object together with the node's other saved tensors.
template <class Object>
at::Tensor owner_of(std::shared_ptr<Object> object) {
    void* const address = object.get();
    return at::from_blob(
        address, {1}, [object = std::move(object)](void*) {}, at::kByte);
}
template <class Object>
Object& owned_by(const at::Tensor& owner) {
    return *static_cast<Object*>(owner.data_ptr());
}

/// Where the graph of a rerun ends: keeps the gradients as they arrive. Accumulation into .grad of a leaf may change
/// strides, and then bits of what is computed from the gradient further down.
struct RerunInputs : torch::autograd::Function<RerunInputs> {
    using Context = torch::autograd::AutogradContext;

    static Tensors forward(Context* context, at::TensorList leaves, const at::Tensor& owner_of_gradients) {
        context->set_materialize_grads(false);
        context->save_for_backward({owner_of_gradients});
        Tensors result;
        for (const at::Tensor& leaf : leaves) result.push_back(leaf.detach());
        return result;
    }
    static Tensors backward(Context* context, Tensors gradients) {
        Tensors nothing(gradients.size() + 1);
        owned_by<Tensors>(context->get_saved_variables().front()) = std::move(gradients);
        return nothing;
    }
};

/// Where a rerun's graph ends at a parameter: keeps its gradient.
struct ParameterGradient : torch::autograd::Node {
    ParameterGradient()
        : Node{/*sequence_nr=*/UINT64_MAX} {}  // at once when it is there, as accumulation into .grad is
    Tensors apply(Tensors&& gradients) override {
        gradient = std::move(gradients.front());
        return {};
    }
    at::Tensor gradient;
};

/// The parameters of a rerun. What is recorded before end_recording() ends in nodes of this object instead of their
/// accumulators, which add up for the caller's graph and must hear of a gradient once it is complete.
class RerunParameters {
public:
    explicit RerunParameters(const Tensors& parameters) {
        for (const at::Tensor& parameter : parameters) {
            const auto node = std::make_shared<ParameterGradient>();
            node->add_input_metadata(parameter);
            ends_.push_back({parameter, torch::autograd::impl::grad_accumulator(parameter), node});
            if (parameter.requires_grad()) torch::autograd::impl::set_grad_accumulator(parameter, node);
        }
    }
    ~RerunParameters() { end_recording(); }
    RerunParameters(const RerunParameters&) = delete;
    RerunParameters& operator=(const RerunParameters&) = delete;

    void end_recording() {
        for (End& end : ends_) {
            if (auto accumulator = std::exchange(end.accumulator, nullptr))
                torch::autograd::impl::set_grad_accumulator(end.parameter, std::move(accumulator));
        }
    }
    /// In the order of the parameters; undefined where forward did not use one. Once.
    [[nodiscard]] Tensors gradients() {
        Tensors result;
        for (const End& end : ends_) result.push_back(std::move(end.node->gradient));
        return result;
    }

private:
    struct End {
        at::Tensor parameter;
        decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>())) accumulator;
        std::shared_ptr<ParameterGradient> node;
    };
    std::vector<End> ends_;
};

struct RecomputedCall : torch::autograd::Function<RecomputedCall> {
    using Context = torch::autograd::AutogradContext;

    struct Parts {
        const Tensors& outputs;
        const Tensors& saved;  ///< the inputs, and the owner of the Recomputation
    };

    /// always_trained  makes outputs require a gradient where no input does: parameters that are not known may
    static Tensors forward(Context* context, const at::Tensor& /*always_trained*/, at::TensorList /*trained*/,
                           at::TensorList /*parameters*/, const Parts& parts) {
        context->set_materialize_grads(false);
        context->save_for_backward(parts.saved);
        return parts.outputs;
    }

    static Tensors backward(Context* context, Tensors gradients) {
        if (at::GradMode::is_enabled()) {
            refuse_recomputation(
                "a recomputed block has no higher derivatives, and backward was called with create_graph",
                "leave create_graph out, or do not recompute this block");
        }
        if (!torch::autograd::Engine::get_default_engine().is_checkpoint_valid()) {
            refuse_recomputation(
                "a recomputed block computes the gradients of all its parameters, and gradients of chosen "
                "tensors only were asked for",
                "call backward() without inputs instead of torch::autograd::grad, or do not recompute this "
                "block");
        }
        Tensors inputs = context->get_saved_variables();  // throws if one was changed in place
        const at::Tensor owner = std::move(inputs.back());
        inputs.pop_back();
        Recomputation& call = owned_by<Recomputation>(owner);

        Tensors result(1 + call.trained.size() + call.parameters.size() + 1);  // one an argument of forward()
        if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& each) { return each.defined(); })) {
            return result;
        }
        run_again(call, inputs, gradients, std::span{result}.subspan(1));
        return result;
    }

    /// Puts the gradients of call.trained, as far as there are any, and after them those of call.parameters into `result`.
    static void run_again(Recomputation& call, const Tensors& inputs, const Tensors& gradients,
                          std::span<at::Tensor> result) {
        if (call.before_rerun) call.before_rerun();
        const auto input_gradients = std::make_shared<Tensors>();
        RerunParameters parameters{call.parameters};
        Tensors outputs;
        {
            const at::AutoGradMode recording{true};
            Tensors given = call.detached(inputs);
            Tensors leaves;
            for (const std::size_t i : call.trained) leaves.push_back(given[i].requires_grad_());
            if (!leaves.empty()) {
                leaves = RerunInputs::apply(at::TensorList{leaves}, owner_of(input_gradients));
                for (std::size_t k = 0; k < leaves.size(); ++k) given[call.trained[k]] = std::move(leaves[k]);
                for (std::size_t i = 0; i < given.size(); ++i) given[i] = given[call.first_same[i]];
            }
            const GeneratorsAsBefore as_before{call.generators};
            outputs = call.forward(given);
        }
        parameters.end_recording();
        if (outputs.size() != call.output_count) {
            refuse_recomputation("a recomputed block returned " + std::to_string(call.output_count) +
                                     " tensors, and in backward, for the same inputs, " +
                                     std::to_string(outputs.size()),
                                 "let its forward depend on nothing that changes between forward and backward");
        }
        Tensors roots;
        Tensors root_gradients;
        for (std::size_t k = 0; k < call.made.size(); ++k) {
            at::Tensor& output = outputs[call.made[k]];
            if (!gradients[k].defined() || !output.defined() || !output.requires_grad()) continue;
            roots.push_back(std::move(output));
            root_gradients.push_back(gradients[k]);
        }
        outputs.clear();
        if (!roots.empty()) torch::autograd::backward(roots, root_gradients);
        std::move(input_gradients->begin(), input_gradients->end(), result.begin());
        Tensors of_parameters = parameters.gradients();
        std::move(of_parameters.begin(), of_parameters.end(),
                  result.begin() + static_cast<std::ptrdiff_t>(call.trained.size()));
    }
};

/// Counts changes in place; one counter for all tensors of the same memory.
STRATA_INLINE std::int64_t version_of(const at::Tensor& tensor) {
    return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
}

STRATA_INLINE Tensors recomputed(const Tensors& inputs, std::function<Tensors(const Tensors&)> forward,
                                 std::function<void()> before_rerun, const std::optional<Tensors>& parameters) {
    const auto requires_gradient = [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); };
    const auto any_requires = [&](const Tensors& tensors) {
        return std::any_of(tensors.begin(), tensors.end(), requires_gradient);
    };
    if (!at::GradMode::is_enabled() || !(!parameters || any_requires(*parameters) || any_requires(inputs))) {
        return forward(inputs);
    }
    const auto call = std::make_shared<Recomputation>(
        Recomputation{std::move(forward), std::move(before_rerun), GeneratorStates{inputs}, {}, {}, {}, {}, 0});
    for (const at::Tensor& parameter : parameters.value_or(Tensors{})) {
        const auto same = [&](const at::Tensor& known) { return known.is_same(parameter); };
        if (requires_gradient(parameter) && std::none_of(call->parameters.begin(), call->parameters.end(), same))
            call->parameters.push_back(parameter);
    }
    Tensors trained;
    std::vector<std::int64_t> versions;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto same = [&](const at::Tensor& other) { return other.is_same(inputs[i]); };
        const auto first = std::find_if(inputs.begin(), inputs.end(), same);
        call->first_same.push_back(static_cast<std::size_t>(first - inputs.begin()));
        versions.push_back(version_of(inputs[i]));
        if (!requires_gradient(inputs[i]) || call->first_same[i] < i) continue;
        call->trained.push_back(i);
        trained.push_back(inputs[i]);
    }

    const Tensors given = call->detached(inputs);
    Tensors outputs;
    {
        const at::NoGradGuard no_graph;
        outputs = call->forward(given);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (version_of(inputs[i]) == versions[i]) continue;
        refuse_recomputation("a recomputed block changes its tensor argument " + std::to_string(i + 1) +
                                 " in place, and backward needs it as it was",
                             "let its forward work on a copy: x = x.clone()");
    }

    call->output_count = outputs.size();
    Tensors made;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
        at::Tensor& output = outputs[k];
        if (!output.defined()) continue;
        const auto same = [&](const at::Tensor& input) { return input.is_same(output); };
        const auto input = std::find_if(given.begin(), given.end(), same);
        if (input != given.end()) {
            output = inputs[static_cast<std::size_t>(input - given.begin())];
        } else if (at::isFloatingType(output.scalar_type()) || at::isComplexType(output.scalar_type())) {
            call->made.push_back(k);
            made.push_back(output.detach());  // it may be a tensor of the model, which must not become part of a graph
        }
    }
    if (made.empty()) return outputs;
    Tensors saved = inputs;
    saved.push_back(owner_of(call));
    const at::Tensor always_trained = at::empty({0}).requires_grad_();
    made = RecomputedCall::apply(always_trained, at::TensorList{trained}, at::TensorList{call->parameters},
                                 RecomputedCall::Parts{made, saved});
    for (std::size_t k = 0; k < made.size(); ++k) outputs[call->made[k]] = std::move(made[k]);
    return outputs;
}

}  // namespace strata::zero::detail
