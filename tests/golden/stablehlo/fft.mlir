module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x8xf32>) -> (tensor<2x5xcomplex<f32>>, tensor<2x8xf32>, tensor<2x5xcomplex<f32>>, tensor<2x5xcomplex<f32>>) {
    %1 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
    %2 = stablehlo.fft %1, type = IRFFT, length = [8] : (tensor<2x5xcomplex<f32>>) -> tensor<2x8xf32>
    %3 = stablehlo.fft %1, type = FFT, length = [2, 5] : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
    %4 = stablehlo.fft %1, type = IFFT, length = [5] : (tensor<2x5xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
    return %1, %2, %3, %4 : tensor<2x5xcomplex<f32>>, tensor<2x8xf32>, tensor<2x5xcomplex<f32>>, tensor<2x5xcomplex<f32>>
  }
}
