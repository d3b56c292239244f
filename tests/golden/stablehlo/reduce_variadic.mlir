module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5xf32>) -> (tensor<2xf32>, tensor<2xi64>) {
    %1 = stablehlo.iota dim = 1 : tensor<2x5xi64>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.constant dense<0> : tensor<i64>
    %4, %5 = "stablehlo.reduce"(%arg0, %1, %2, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<i64>, %arg8: tensor<f32>, %arg9: tensor<i64>):
      %10 = stablehlo.compare LT, %arg7, %arg9, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %11 = stablehlo.compare EQ, %arg6, %arg8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %12 = stablehlo.and %11, %10 : tensor<i1>
      %13 = stablehlo.compare GT, %arg6, %arg8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %14 = stablehlo.or %13, %12 : tensor<i1>
      %15 = stablehlo.select %14, %arg6, %arg8 : tensor<i1>, tensor<f32>
      %16 = stablehlo.select %14, %arg7, %arg9 : tensor<i1>, tensor<i64>
      stablehlo.return %15, %16 : tensor<f32>, tensor<i64>
    }) : (tensor<2x5xf32>, tensor<2x5xi64>, tensor<f32>, tensor<i64>) -> (tensor<2xf32>, tensor<2xi64>)
    return %4, %5 : tensor<2xf32>, tensor<2xi64>
  }
}
