module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg2: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
    %1 = stablehlo.negate %arg0 : tensor<2x3xf32>
    %3 = stablehlo.add %1, %arg2 : tensor<2x3xf32>
    return %3 : tensor<2x3xf32>
  }
}
