// A compiler in a plugin (LLVM's JIT) tells libgcc's unwinder where the frames of its machine code are described, and
// not always when that code is unmapped. The next C++ exception of the process then reads what is no longer there.
#pragma once

namespace torch_pjrt::pjrt {

// From here on what this library registers with the unwinder is not registered. Exceptions do not pass through
// generated code: what it calls catches them. `library` is a handle from dlopen. Does nothing where the library
// registers nothing through a procedure linkage table, or on processors other than x86-64.
void ignore_generated_frames(void* library);

}  // namespace torch_pjrt::pjrt
