module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<0x3xf32>, %arg1: tensor<f32>) -> (tensor<3x0xf32>, tensor<3x0xf32>, tensor<0x3xf32>, tensor<2x3xf32>, tensor<1x1xf32>, tensor<0xf32>, tensor<3xf32>) {
    %2 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<0x3xf32>) -> tensor<3x0xf32>
    %3 = stablehlo.reshape %arg0 : (tensor<0x3xf32>) -> tensor<3x0xf32>
    %4 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<0x3xf32>
    %5 = stablehlo.pad %arg0, %arg1, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.reshape %arg1 : (tensor<f32>) -> tensor<1x1xf32>
    %7 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<0xf32>
    %8 = stablehlo.constant dense<0.0> : tensor<f32>
    %9 = stablehlo.reduce(%arg0 init: %8) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
    return %2, %3, %4, %5, %6, %7, %9 : tensor<3x0xf32>, tensor<3x0xf32>, tensor<0x3xf32>, tensor<2x3xf32>, tensor<1x1xf32>, tensor<0xf32>, tensor<3xf32>
  }
}
