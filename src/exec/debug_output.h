// Lines on stderr: warnings, and with PT_XLA_DEBUG=1 every cut and every compile, with their causes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "exec/program_registry.h"

namespace torch_pjrt {

// "torch_xla: cut by .item(), at train@train.py:31: 210 operators"
void print_cut(std::string_view cause, size_t num_nodes);
// "torch_xla: compiled program 4 in 0.31 s: `aten::mm` input 0 was [128, 784], is [96, 784] (compared with program 3)"
void print_compile(const ProgramRecord& record);
// Said whether or not somebody asked: something does not work as wished, and goes on without it.
void print_warning(const std::string& warning);

}  // namespace torch_pjrt
