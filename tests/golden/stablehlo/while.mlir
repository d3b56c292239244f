module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<i32>, tensor<4xf32>) {
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %13, %14 = "stablehlo.while"(%2, %arg0) ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<4xf32>):
      %5 = stablehlo.compare LT, %arg3, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }, {
    ^bb0(%arg6: tensor<i32>, %arg7: tensor<4xf32>):
      %8 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %arg6, %8 : tensor<i32>
      %10 = stablehlo.constant dense<0.5> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.multiply %arg7, %11 : tensor<4xf32>
      stablehlo.return %9, %12 : tensor<i32>, tensor<4xf32>
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    return %13, %14 : tensor<i32>, tensor<4xf32>
  }
}
