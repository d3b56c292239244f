module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg4: tensor<f32>) -> (tensor<1x2xf32>, tensor<2x3xf32>) {
    %3 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i64>, tensor<i64>) -> tensor<1x2xf32>
    %5 = stablehlo.dynamic_update_slice %arg0, %3, %arg2, %arg1 : (tensor<2x3xf32>, tensor<1x2xf32>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
    return %3, %5 : tensor<1x2xf32>, tensor<2x3xf32>
  }
}
