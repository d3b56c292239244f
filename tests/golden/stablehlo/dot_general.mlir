module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x2x3xf32>, %arg1: tensor<3x5x4xf32>, %arg4: tensor<3xbf16>, %arg6: tensor<3x3xi64>) -> (tensor<5x2x4xf32>, tensor<5x2x3x3x5x4xf32>, tensor<f32>, tensor<3x3xi64>) {
    %2 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<5x2x3xf32>, tensor<3x5x4xf32>) -> tensor<5x2x4xf32>
    %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [], precision = [HIGHEST, HIGHEST] : (tensor<5x2x3xf32>, tensor<3x5x4xf32>) -> tensor<5x2x3x3x5x4xf32>
    %5 = stablehlo.dot_general %arg4, %arg4, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<f32>
    %7 = stablehlo.dot_general %arg6, %arg6, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi64>
    return %2, %3, %5, %7 : tensor<5x2x4xf32>, tensor<5x2x3x3x5x4xf32>, tensor<f32>, tensor<3x3xi64>
  }
}
