module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<complex<f32>>, tensor<complex<f64>>, tensor<complex<f32>>) {
    %0 = stablehlo.constant dense<(1.5, -0.25)> : tensor<complex<f32>>
    %1 = stablehlo.constant dense<(0.1, 0.0)> : tensor<complex<f64>>
    %2 = stablehlo.constant dense<(0x7F800000, 0x7FC00000)> : tensor<complex<f32>>
    return %0, %1, %2 : tensor<complex<f32>>, tensor<complex<f64>>, tensor<complex<f32>>
  }
}
