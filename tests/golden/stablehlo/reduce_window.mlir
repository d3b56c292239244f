module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x6x6xf32>, %arg26: tensor<f32>) -> (tensor<1x3x3xf32>, tensor<1x10x3xf32>, tensor<1x6x6xf32>, tensor<1x3x3xf32>, tensor<1x3x3xi32>, tensor<f32>) {
    %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = "stablehlo.reduce_window"(%arg0, %1) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [1, 1]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3>, window_strides = array<i64: 1, 2, 2>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %5 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<1x6x6xf32>, tensor<f32>) -> tensor<1x3x3xf32>
    %6 = stablehlo.constant dense<0.0> : tensor<f32>
    %7 = "stablehlo.reduce_window"(%arg0, %6) <{base_dilations = array<i64: 1, 2, 1>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 3>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
      %10 = stablehlo.add %arg8, %arg9 : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<1x6x6xf32>, tensor<f32>) -> tensor<1x10x3xf32>
    %11 = "stablehlo.reduce_window"(%arg0, %6) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [5, 0], [0, 0]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 6, 1>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<f32>):
      %14 = stablehlo.add %arg12, %arg13 : tensor<f32>
      stablehlo.return %14 : tensor<f32>
    }) : (tensor<1x6x6xf32>, tensor<f32>) -> tensor<1x6x6xf32>
    %15 = stablehlo.iota dim = 2 : tensor<1x6x6xi32>
    %16 = stablehlo.constant dense<0> : tensor<i32>
    %17, %18 = "stablehlo.reduce_window"(%arg0, %15, %1, %16) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
    ^bb0(%arg19: tensor<f32>, %arg20: tensor<i32>, %arg21: tensor<f32>, %arg22: tensor<i32>):
      %23 = stablehlo.compare GE, %arg19, %arg21, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %24 = stablehlo.select %23, %arg19, %arg21 : tensor<i1>, tensor<f32>
      %25 = stablehlo.select %23, %arg20, %arg22 : tensor<i1>, tensor<i32>
      stablehlo.return %24, %25 : tensor<f32>, tensor<i32>
    }) : (tensor<1x6x6xf32>, tensor<1x6x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<1x3x3xf32>, tensor<1x3x3xi32>)
    %27 = "stablehlo.reduce_window"(%arg26, %6) <{base_dilations = array<i64>, padding = dense<> : tensor<0x2xi64>, window_dilations = array<i64>, window_dimensions = array<i64>, window_strides = array<i64>}> ({
    ^bb0(%arg28: tensor<f32>, %arg29: tensor<f32>):
      %30 = stablehlo.add %arg28, %arg29 : tensor<f32>
      stablehlo.return %30 : tensor<f32>
    }) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %2, %7, %11, %17, %18, %27 : tensor<1x3x3xf32>, tensor<1x10x3xf32>, tensor<1x6x6xf32>, tensor<1x3x3xf32>, tensor<1x3x3xi32>, tensor<f32>
  }
}
