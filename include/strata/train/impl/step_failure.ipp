#pragma once
// strata/train/impl/step_failure.ipp - exceptions of models and sources as errors.

#include <strata/core/text.hpp>
#include <strata/health/failure_class.hpp>
#include <strata/train/step_failure.hpp>

namespace strata::train {

STRATA_INLINE Error as_error(const std::exception_ptr& failure, const std::string& who) {
    std::string said = "an exception that is no std::exception";
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        // What a GPU's runtime says names no rank, and all ranks may throw it together.
        const bool lacks_rank = error.code() == Errc::device_failed && !health::rank_named_in(error.problem());
        if (!lacks_rank || !health::rank_named_in(who)) return error;
        return Error{error.code(), who + " failed: " + error.problem(), error.fix()};
    } catch (const std::exception& error) {
        said = core::first_line(error.what());
    } catch (...) {  // `said` tells
    }
    return Error{Errc::step_failed, who + " failed: " + said, "mend that and run again"};
}

}  // namespace strata::train
