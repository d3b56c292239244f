module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xi32>, %arg3: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xcomplex<f32>>, tensor<4xf32>) {
    %4 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    %5 = stablehlo.atan2 %arg0, %arg1 : tensor<4xf32>
    %6 = stablehlo.divide %arg0, %arg1 : tensor<4xf32>
    %7 = stablehlo.maximum %arg0, %arg1 : tensor<4xf32>
    %8 = stablehlo.minimum %arg0, %arg1 : tensor<4xf32>
    %9 = stablehlo.multiply %arg0, %arg1 : tensor<4xf32>
    %10 = stablehlo.power %arg0, %arg1 : tensor<4xf32>
    %11 = stablehlo.remainder %arg0, %arg1 : tensor<4xf32>
    %12 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
    %13 = chlo.next_after %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %14 = chlo.polygamma %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %15 = chlo.zeta %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %16 = stablehlo.and %arg2, %arg2 : tensor<4xi32>
    %17 = stablehlo.or %arg2, %arg2 : tensor<4xi32>
    %18 = stablehlo.xor %arg2, %arg2 : tensor<4xi32>
    %19 = stablehlo.shift_left %arg2, %arg2 : tensor<4xi32>
    %20 = stablehlo.shift_right_arithmetic %arg2, %arg2 : tensor<4xi32>
    %21 = stablehlo.shift_right_logical %arg2, %arg2 : tensor<4xi32>
    %22 = stablehlo.add %arg3, %arg3 : tensor<4xi1>
    %23 = stablehlo.multiply %arg3, %arg3 : tensor<4xi1>
    %24 = stablehlo.maximum %arg3, %arg3 : tensor<4xi1>
    %25 = stablehlo.minimum %arg3, %arg3 : tensor<4xi1>
    %26 = stablehlo.and %arg3, %arg3 : tensor<4xi1>
    %27 = stablehlo.or %arg3, %arg3 : tensor<4xi1>
    %28 = stablehlo.xor %arg3, %arg3 : tensor<4xi1>
    %29 = stablehlo.complex %arg0, %arg1 : tensor<4xcomplex<f32>>
    %30 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>
    return %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xcomplex<f32>>, tensor<4xf32>
  }
}
