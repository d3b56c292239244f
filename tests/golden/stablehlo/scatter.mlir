module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x3xf32>, %arg1: tensor<4xi64>, %arg2: tensor<4x3xf32>, %arg7: tensor<5x2x1xi64>, %arg8: tensor<5x2xf32>) -> (tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xi32>) {
    %3 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %6 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
    %9 = "stablehlo.scatter"(%arg0, %arg7, %arg8) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = true}> ({
    ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
      stablehlo.return %arg11 : tensor<f32>
    }) : (tensor<5x3xf32>, tensor<5x2x1xi64>, tensor<5x2xf32>) -> tensor<5x3xf32>
    %12 = stablehlo.constant dense<0> : tensor<i32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %14 = stablehlo.constant dense<1> : tensor<i32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
    %16, %17 = "stablehlo.scatter"(%arg0, %13, %arg1, %arg2, %15) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<i32>, %arg20: tensor<f32>, %arg21: tensor<i32>):
      %22 = stablehlo.add %arg18, %arg20 : tensor<f32>
      %23 = stablehlo.add %arg19, %arg21 : tensor<i32>
      stablehlo.return %22, %23 : tensor<f32>, tensor<i32>
    }) : (tensor<5x3xf32>, tensor<5x3xi32>, tensor<4xi64>, tensor<4x3xf32>, tensor<4x3xi32>) -> (tensor<5x3xf32>, tensor<5x3xi32>)
    return %3, %9, %16, %17 : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xi32>
  }
}
