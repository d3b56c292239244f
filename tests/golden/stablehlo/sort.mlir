module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>, tensor<3x5xf32>, tensor<3x2xf32>, tensor<3x2xi32>) {
    %1 = stablehlo.iota dim = 1 : tensor<3x5xi64>
    %2, %3 = "stablehlo.sort"(%arg0, %1) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>, %arg6: tensor<i64>, %arg7: tensor<i64>):
      %8 = stablehlo.compare LT, %arg4, %arg5, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    }) : (tensor<3x5xf32>, tensor<3x5xi64>) -> (tensor<3x5xf32>, tensor<3x5xi64>)
    %9 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = false}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      %12 = stablehlo.compare GT, %arg10, %arg11, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %12 : tensor<i1>
    }) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %13, %14 = chlo.top_k(%arg0, k = 2) : tensor<3x5xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
    return %2, %3, %9, %13, %14 : tensor<3x5xf32>, tensor<3x5xi64>, tensor<3x5xf32>, tensor<3x2xf32>, tensor<3x2xi32>
  }
}
