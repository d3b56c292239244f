module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32>, tensor<i32>, tensor<4xf32>) {
    %2, %3, %4 = stablehlo.optimization_barrier %arg0, %arg1, %arg0 : tensor<4xf32>, tensor<i32>, tensor<4xf32>
    return %2, %3, %4 : tensor<4xf32>, tensor<i32>, tensor<4xf32>
  }
}
