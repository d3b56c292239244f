module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<i32>) {
    %8, %9 = "stablehlo.if"(%arg0) ({
      %2 = stablehlo.negate %arg1 : tensor<4xf32>
      %3 = stablehlo.constant dense<1> : tensor<i32>
      stablehlo.return %2, %3 : tensor<4xf32>, tensor<i32>
    }, {
      %4 = stablehlo.not %arg0 : tensor<i1>
      %6 = "stablehlo.if"(%4) ({
        %5 = stablehlo.exponential %arg1 : tensor<4xf32>
        stablehlo.return %5 : tensor<4xf32>
      }, {
        stablehlo.return %arg1 : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      %7 = stablehlo.constant dense<2> : tensor<i32>
      stablehlo.return %6, %7 : tensor<4xf32>, tensor<i32>
    }) : (tensor<i1>) -> (tensor<4xf32>, tensor<i32>)
    %10 = stablehlo.constant dense<1> : tensor<i32>
    return %8, %9, %10 : tensor<4xf32>, tensor<i32>, tensor<i32>
  }
}
