module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<5x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<3x6xf32>, tensor<5x3xf32>, tensor<2x3xf32>, tensor<2x3x1xf32>, tensor<3xf32>) {
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %3 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %4 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
    %5 = stablehlo.slice %arg0 [0:2, 0:1] : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<5x2x4xf32>
    %7 = stablehlo.slice %arg0 [0:2, 1:3] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %8 = stablehlo.slice %arg0 [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %9 = stablehlo.slice %arg0 [0:2, 0:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %10 = stablehlo.pad %arg0, %1, low = [1, 0], high = [0, -1], interior = [0, 2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x6xf32>
    %11 = stablehlo.slice %arg0 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %12 = stablehlo.concatenate %arg0, %arg0, %11, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<5x3xf32>
    %13 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<2x3xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %15 = stablehlo.slice %arg0 [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %2, %3, %4, %6, %7, %8, %9, %10, %12, %13, %14, %16 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x4x3xf32>, tensor<5x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<3x6xf32>, tensor<5x3xf32>, tensor<2x3xf32>, tensor<2x3x1xf32>, tensor<3xf32>
  }
}
