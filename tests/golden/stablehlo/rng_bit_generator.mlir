module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui64>, %arg1: tensor<3xui64>) -> (tensor<2xui64>, tensor<4xui32>, tensor<2x2xui64>, tensor<3xui8>) {
    %2, %3 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %4, %5 = stablehlo.rng_bit_generator %2, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui64>)
    %6, %7 = stablehlo.rng_bit_generator %4, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui8>)
    return %6, %3, %5, %7 : tensor<2xui64>, tensor<4xui32>, tensor<2x2xui64>, tensor<3xui8>
  }
}
