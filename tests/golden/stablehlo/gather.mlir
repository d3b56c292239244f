module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x3xf32>, %arg2: tensor<4x2xi64>, %arg6: tensor<5x2xi64>, %arg8: tensor<2x7xi32>) -> (tensor<4x2x3xf32>, tensor<5x2xf32>, tensor<2x7x3xf32>) {
    %1 = stablehlo.constant dense<4> : tensor<i64>
    %3 = stablehlo.constant dense<0> : tensor<i64>
    %4 = stablehlo.clamp %3, %arg2, %1 : (tensor<i64>, tensor<4x2xi64>, tensor<i64>) -> tensor<4x2xi64>
    %5 = "stablehlo.gather"(%arg0, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<4x2xi64>) -> tensor<4x2x3xf32>
    %7 = "stablehlo.gather"(%arg0, %arg6) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1>}> : (tensor<5x3xf32>, tensor<5x2xi64>) -> tensor<5x2xf32>
    %9 = "stablehlo.gather"(%arg0, %arg8) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [0, 1], index_vector_dim = 0>, indices_are_sorted = false, slice_sizes = array<i64: 2, 3>}> : (tensor<5x3xf32>, tensor<2x7xi32>) -> tensor<2x7x3xf32>
    return %5, %7, %9 : tensor<4x2x3xf32>, tensor<5x2xf32>, tensor<2x7x3xf32>
  }
}
