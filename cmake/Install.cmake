# The package torch_xla as an installation prefix: lib/, include/torch_pjrt/ and the CMake package for libtorch programs.
include(CMakePackageConfigHelpers)

target_include_directories(torch_pjrt INTERFACE $<INSTALL_INTERFACE:include>)
install(TARGETS torch_pjrt EXPORT torch_pjrtTargets LIBRARY DESTINATION lib COMPONENT torch_xla)
install(TARGETS _XLAC LIBRARY DESTINATION . COMPONENT torch_xla)
install(FILES src/torch/api.h DESTINATION include/torch_pjrt COMPONENT torch_xla)

set(config_directory share/cmake/torch_pjrt)
configure_package_config_file(cmake/torch_pjrtConfig.cmake.in torch_pjrtConfig.cmake
  INSTALL_DESTINATION ${config_directory})
write_basic_package_version_file(torch_pjrtConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/torch_pjrtConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/torch_pjrtConfigVersion.cmake
  DESTINATION ${config_directory} COMPONENT torch_xla)
install(EXPORT torch_pjrtTargets NAMESPACE torch_pjrt:: DESTINATION ${config_directory} COMPONENT torch_xla)
