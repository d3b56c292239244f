# libtorch_pjrt.so (everything but Python) and the _XLAC module. Both go into the package torch_xla, whose directory is also
# the prefix of the CMake package.
file(GLOB torch_sources CONFIGURE_DEPENDS src/torch/*.cpp)
file(GLOB python_sources CONFIGURE_DEPENDS src/python/*.cpp)
if(NOT TORCH_DIR)
  message(STATUS "Only the layers below libtorch are built: ${Python_EXECUTABLE} has no torch package")
  return()
endif()

if(TORCH_PJRT_IN_TREE)
  set(package_directory ${CMAKE_CURRENT_SOURCE_DIR}/torch_xla)
else()
  # A second package beside the source tree's: the same Python files around this build's libraries.
  set(package_directory ${CMAKE_CURRENT_BINARY_DIR}/package/torch_xla)
  file(MAKE_DIRECTORY ${package_directory})
  file(GLOB package_entries CONFIGURE_DEPENDS LIST_DIRECTORIES true torch_xla/*)
  list(FILTER package_entries EXCLUDE REGEX "/lib$|\\.so$|__pycache__$")
  foreach(entry ${package_entries})
    cmake_path(GET entry FILENAME name)
    file(CREATE_LINK ${entry} ${package_directory}/${name} SYMBOLIC)
  endforeach()
endif()

add_library(torch_pjrt SHARED ${torch_sources})
target_compile_features(torch_pjrt PUBLIC cxx_std_20)
target_include_directories(torch_pjrt PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_link_libraries(torch_pjrt PRIVATE ${core_layers} tp_libtorch)
# Its threads, and what it registers with PyTorch, stay for the process.
target_link_options(torch_pjrt PRIVATE LINKER:-z,nodelete)
# A program that only names the device "xla" refers to no symbol of the library; its loading is what registers the device.
target_link_options(torch_pjrt INTERFACE LINKER:--no-as-needed)
if(TORCH_PJRT_FFI_INCLUDE_DIR)
  target_include_directories(torch_pjrt SYSTEM PRIVATE ${TORCH_PJRT_FFI_INCLUDE_DIR})
  target_compile_definitions(torch_pjrt PRIVATE TORCH_PJRT_HAVE_FFI)
endif()
# The OpenMP that PyTorch's kernels run on: host calls set its number of threads.
find_library(TORCH_GOMP NAMES libgomp.so.1 PATHS ${TORCH_DIR}/lib NO_DEFAULT_PATH REQUIRED)
target_link_libraries(torch_pjrt PRIVATE ${TORCH_GOMP})
target_precompile_headers(torch_pjrt PRIVATE <ATen/core/Tensor.h> <torch/library.h> <string> <unordered_map> <vector>)
# An installed torch_xla lies beside torch. A build tree finds torch by the absolute path that CMake adds.
set_target_properties(torch_pjrt PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${package_directory}/lib
  INSTALL_RPATH "$ORIGIN/../../torch/lib")

Python_add_library(_XLAC MODULE WITH_SOABI ${python_sources})
target_include_directories(_XLAC PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
# libtorch ships the pybind11 that libtorch_python was built with; a second copy could disagree about its internals.
target_link_libraries(_XLAC PRIVATE torch_pjrt tp_libtorch ${TORCH_DIR}/lib/libtorch_python.so)
set_target_properties(_XLAC PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${package_directory}
  INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib")

if(TORCH_PJRT_TESTS)
  add_library(custom_operators MODULE tests/python/custom_operators.cpp)
  target_compile_features(custom_operators PRIVATE cxx_std_20)
  target_link_libraries(custom_operators PRIVATE tp_libtorch)
  target_compile_options(custom_operators PRIVATE -O0)
endif()

include(cmake/Install.cmake)
