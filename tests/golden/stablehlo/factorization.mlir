module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<3x3xcomplex<f32>>) -> (tensor<2x3x3xf32>, tensor<3x3xcomplex<f32>>, tensor<2x3x4xf32>, tensor<2x4x3xf32>, tensor<3x3xcomplex<f32>>) {
    %3 = stablehlo.cholesky %arg0, lower = true : tensor<2x3x3xf32>
    %4 = stablehlo.cholesky %arg2, lower = false : tensor<3x3xcomplex<f32>>
    %5 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %6 = stablehlo.transpose %arg1, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    %7 = "stablehlo.triangular_solve"(%arg0, %6) <{left_side = false, lower = false, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = true}> : (tensor<2x3x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
    %8 = "stablehlo.triangular_solve"(%arg2, %arg2) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<3x3xcomplex<f32>>, tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
    return %3, %4, %5, %7, %8 : tensor<2x3x3xf32>, tensor<3x3xcomplex<f32>>, tensor<2x3x4xf32>, tensor<2x4x3xf32>, tensor<3x3xcomplex<f32>>
  }
}
