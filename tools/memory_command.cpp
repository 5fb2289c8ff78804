#include "memory_command.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

#include <unistd.h>

#include <strata/core/error.hpp>

#include "program_beside.hpp"

namespace strata::tools {

int memory_command(std::span<const std::string> words) {
    const std::string program = program_beside("strata-memory", "strata_memory");
    std::vector<std::string> all{program};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    throw Error{Errc::cannot_launch, program + " cannot be started: " + std::strerror(errno),
                "look at the file and its permissions"};
}

}  // namespace strata::tools
