module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x3xi1>, %arg2: tensor<2x3xi32>) -> (tensor<3xf32>, tensor<2x4xf32>, tensor<f32>, tensor<3xi32>, tensor<2xi1>, tensor<i1>) {
    %3 = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%arg0 init: %3) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %5 = stablehlo.constant dense<1.0> : tensor<f32>
    %6 = stablehlo.reduce(%arg0 init: %5) applies stablehlo.multiply across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.reduce(%arg0 init: %7) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<f32>
    %9 = stablehlo.constant dense<2147483647> : tensor<i32>
    %10 = stablehlo.reduce(%arg2 init: %9) applies stablehlo.minimum across dimensions = [0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>
    %11 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%arg1 init: %11) applies stablehlo.and across dimensions = [1] : (tensor<2x3xi1>, tensor<i1>) -> tensor<2xi1>
    %13 = stablehlo.constant dense<false> : tensor<i1>
    %14 = stablehlo.reduce(%arg1 init: %13) applies stablehlo.or across dimensions = [0, 1] : (tensor<2x3xi1>, tensor<i1>) -> tensor<i1>
    return %4, %6, %8, %10, %12, %14 : tensor<3xf32>, tensor<2x4xf32>, tensor<f32>, tensor<3xi32>, tensor<2xi1>, tensor<i1>
  }
}
