# libtorch_pjrt.so (everything but Python) and the _XLAC module. Both go into the package torch_xla, which is also the
# prefix of the CMake package.
file(GLOB torch_sources CONFIGURE_DEPENDS src/torch/*.cpp)
file(GLOB python_sources CONFIGURE_DEPENDS src/python/*.cpp)
list(FILTER torch_sources EXCLUDE REGEX "_test\\.cpp$")
if(NOT TORCH_DIR OR NOT torch_sources)
  message(STATUS "libtorch_pjrt is skipped: no libtorch or no sources")
  return()
endif()

if(TORCH_PJRT_IN_TREE)
  set(package_directory ${CMAKE_CURRENT_SOURCE_DIR}/torch_xla)
else()
  set(package_directory ${CMAKE_CURRENT_BINARY_DIR}/package/torch_xla)
endif()
# An installed torch_xla lies beside torch; a build tree finds torch by its absolute path, which CMake adds.
set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)

add_library(torch_pjrt SHARED ${torch_sources})
add_library(torch_pjrt::torch_pjrt ALIAS torch_pjrt)
target_compile_features(torch_pjrt PUBLIC cxx_std_20)
target_include_directories(torch_pjrt PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
target_link_libraries(torch_pjrt PRIVATE ${core_layers} tp_libtorch)
if(TORCH_PJRT_FFI_INCLUDE_DIR)
  target_include_directories(torch_pjrt SYSTEM PRIVATE ${TORCH_PJRT_FFI_INCLUDE_DIR})
  target_compile_definitions(torch_pjrt PRIVATE TORCH_PJRT_HAVE_FFI)
endif()
target_precompile_headers(torch_pjrt PRIVATE <ATen/Tensor.h> <c10/core/TensorImpl.h> <string> <unordered_map> <vector>)
set_target_properties(torch_pjrt PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${package_directory}/lib
  INSTALL_RPATH "$ORIGIN/../../torch/lib")

if(python_sources)
  Python_add_library(_XLAC MODULE WITH_SOABI ${python_sources})
  target_include_directories(_XLAC PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  # libtorch ships the pybind11 headers that libtorch_python was built with; a second copy could disagree on internals.
  target_link_libraries(_XLAC PRIVATE torch_pjrt tp_libtorch ${TORCH_DIR}/lib/libtorch_python.so)
  set_target_properties(_XLAC PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${package_directory}
    INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib")
endif()
