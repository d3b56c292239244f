module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<3xf32>) {
    %1 = stablehlo.constant dense<0.0> : tensor<f32> loc("aten::relu \22model.py\22:12\0A")
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc("aten::relu \22model.py\22:12\0A")
    %3 = stablehlo.maximum %arg0, %2 : tensor<2x3xf32> loc("aten::relu \22model.py\22:12\0A")
    %4 = "stablehlo.reduce"(%3, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %7 = stablehlo.add %arg5, %arg6 : tensor<f32> loc("aten::relu \22model.py\22:12\0A")
      stablehlo.return %7 : tensor<f32> loc("aten::relu \22model.py\22:12\0A")
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32> loc("aten::relu \22model.py\22:12\0A")
    %8 = stablehlo.negate %4 : tensor<3xf32>
    return %8 : tensor<3xf32>
  }
}
