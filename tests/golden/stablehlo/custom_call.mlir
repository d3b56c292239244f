module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %2 = stablehlo.custom_call @"norm"(%arg0, %arg1) {api_version = 4 : i32, backend_config = {eps = 1.0e-05 : f32}, has_side_effect = true, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[0]> : tensor<1xindex>]} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3, %4 = stablehlo.custom_call @"split"(%arg0) {api_version = 4 : i32, backend_config = {}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    stablehlo.custom_call @"legacy"(%arg0) {api_version = 1 : i32, backend_config = "quoted \22text\22", has_side_effect = true} : (tensor<2x3xf32>) -> ()
    return %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
