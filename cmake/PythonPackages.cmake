# Headers and libraries come from the Python packages that ship them. Packages are located, never imported: importing torch
# would autoload a torch_xla that may be half built.
function(locate_python_package module out_directory)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.util as u; s = u.find_spec('${module}'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE directory ERROR_VARIABLE error OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT directory)
    set(directory "")
  endif()
  set(${out_directory} "${directory}" PARENT_SCOPE)
endfunction()

if(NOT PJRT_INCLUDE_DIR)
  locate_python_package(xla_plugins.xla_cpu_pjrt plugin_directory)
  if(NOT plugin_directory)
    message(FATAL_ERROR "pjrt_c_api.h not found: install the Python package xla-cpu-pjrt, or set PJRT_INCLUDE_DIR")
  endif()
  set(PJRT_INCLUDE_DIR "${plugin_directory}/include" CACHE PATH "Directory of pjrt_c_api.h" FORCE)
endif()

# Optional: without XLA's FFI headers, ATen kernels cannot run inside compiled programs.
if(NOT DEFINED TORCH_PJRT_FFI_INCLUDE_DIR)
  locate_python_package(jaxlib jaxlib_directory)
  if(EXISTS "${jaxlib_directory}/include/xla/ffi/api/c_api.h")
    set(ffi_directory "${jaxlib_directory}/include")
  endif()
  set(TORCH_PJRT_FFI_INCLUDE_DIR "${ffi_directory}" CACHE PATH "Directory of xla/ffi/api/c_api.h; may be empty")
endif()

# libtorch of the pip package, as an imported target of our own: TorchConfig.cmake of a CUDA build demands the CUDA toolkit.
if(NOT TORCH_DIR)
  locate_python_package(torch torch_directory)
  set(TORCH_DIR "${torch_directory}" CACHE PATH "Directory of the torch package; empty builds only the layers below it" FORCE)
endif()
if(TORCH_DIR)
  file(STRINGS ${TORCH_DIR}/version.py version_line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" TORCH_VERSION "${version_line}")
  add_library(tp_libtorch INTERFACE)
  target_include_directories(tp_libtorch SYSTEM INTERFACE ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include)
  target_link_libraries(tp_libtorch INTERFACE ${TORCH_DIR}/lib/libtorch.so ${TORCH_DIR}/lib/libtorch_cpu.so ${TORCH_DIR}/lib/libc10.so)
endif()
