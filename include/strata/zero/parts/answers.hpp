#pragma once
// strata/zero/parts/answers.hpp - Answers: what a program's options and functions say of a model, asked once for an engine's life.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/channel.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/engine_settings.hpp>
#include <strata/zero/parts/exceptions.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/trained_model.hpp>

namespace strata::zero {

template <class Setup>
struct Answers {
    using Rule = typename Setup::optimizer::rule;
    engine_options_t<Setup> options{};
    std::vector<Parameter> parameters{};  ///< exceptions last
    std::vector<std::size_t> group_of{};  ///< of each
    std::vector<char> recomputed{};       ///< by unit
    std::array<float, optim::state_count_v<Rule>> initial{};
    std::string name{};  ///< of the engine, for messages
};

/// Asks for all but the name. The functions are the program's own and may throw on one rank alone: ranks hear of it before they do
/// anything else together. Collective. Throws bad_value, and what they throw.
template <class Setup, comm::Communicator Comm>
[[nodiscard]] std::shared_ptr<Answers<Setup>> asked(Comm& comm, std::vector<Parameter> given,
                                                    engine_options_t<Setup> wanted) {
    comm::settle(comm);  // another engine may have gathered ahead
    const auto found = std::make_shared<Answers<Setup>>();
    comm::agree(comm, [&] {
        found->options = detail::checked(std::move(wanted));
        const EngineSettings<Setup> settings{found->options};
        settings.check();
        static_cast<void>(settings.groups());
        constexpr bool has_exceptions = FormatsOf<typename Setup::precision>::has_exceptions;
        found->parameters = exceptions_last(with_exceptions(std::move(given), found->options, has_exceptions));
        for (const Parameter& parameter : found->parameters)
            found->group_of.push_back(settings.group_of(parameter.name));
        found->recomputed = settings.recomputed(unit_count(found->parameters));
        for (std::size_t k = 0; k < found->initial.size(); ++k)
            found->initial[k] = optim::initial_state<typename Answers<Setup>::Rule>(found->options.update, k);
    });
    return found;
}

}  // namespace strata::zero
