module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3x4xui8>, tensor<3xui32>, tensor<3xi32>) {
    %1 = stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3x4xui8>
    %2 = stablehlo.bitcast_convert %arg0 : (tensor<3xf32>) -> tensor<3xui32>
    %3 = stablehlo.bitcast_convert %1 : (tensor<3x4xui8>) -> tensor<3xi32>
    return %1, %2, %3 : tensor<3x4xui8>, tensor<3xui32>, tensor<3xi32>
  }
}
