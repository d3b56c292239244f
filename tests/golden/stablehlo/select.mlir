module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xi1>, %arg1: tensor<i1>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg5: tensor<3xi1>, %arg6: tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %4 = stablehlo.constant dense<-1.0> : tensor<f32>
    %7 = stablehlo.select %arg0, %arg2, %arg3 : tensor<4xi1>, tensor<4xf32>
    %8 = stablehlo.select %arg1, %arg2, %arg3 : tensor<i1>, tensor<4xf32>
    %9 = stablehlo.clamp %4, %arg2, %arg3 : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = stablehlo.clamp %arg2, %arg2, %arg3 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %7, %8, %9, %10 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
