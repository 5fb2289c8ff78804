#include "exit_status.hpp"

namespace strata::tools {

int status_of(const Error& error) {
    switch (error.code()) {
        case Errc::bad_argument:
        case Errc::cannot_launch:
        case Errc::node_refused:
            return 2;
        case Errc::node_missing:
        case Errc::host_lost:
        case Errc::not_elastic:
            return host_lost_status;
        case Errc::interrupted:
            return 130;
        default:
            return 1;
    }
}

}  // namespace strata::tools
