module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg8: tensor<4xi32>, %arg9: tensor<4xi32>, %arg16: tensor<4xui8>, %arg17: tensor<4xui8>, %arg24: tensor<4xi1>, %arg25: tensor<4xi1>, %arg32: tensor<4xcomplex<f32>>, %arg34: tensor<f64>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<i1>) {
    %2 = stablehlo.compare EQ, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %3 = stablehlo.compare NE, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %4 = stablehlo.compare GE, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %5 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %6 = stablehlo.compare LE, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %7 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %10 = stablehlo.compare EQ, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %11 = stablehlo.compare NE, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %12 = stablehlo.compare GE, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %13 = stablehlo.compare GT, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %14 = stablehlo.compare LE, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %15 = stablehlo.compare LT, %arg8, %arg9, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %18 = stablehlo.compare EQ, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %19 = stablehlo.compare NE, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %20 = stablehlo.compare GE, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %21 = stablehlo.compare GT, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %22 = stablehlo.compare LE, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %23 = stablehlo.compare LT, %arg16, %arg17, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
    %26 = stablehlo.compare EQ, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %27 = stablehlo.compare NE, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %28 = stablehlo.compare GE, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %29 = stablehlo.compare GT, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %30 = stablehlo.compare LE, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %31 = stablehlo.compare LT, %arg24, %arg25, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %33 = stablehlo.compare EQ, %arg32, %arg32, FLOAT : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
    %35 = stablehlo.compare LT, %arg34, %arg34, TOTALORDER : (tensor<f64>, tensor<f64>) -> tensor<i1>
    return %2, %3, %4, %5, %6, %7, %10, %11, %12, %13, %14, %15, %18, %19, %20, %21, %22, %23, %26, %27, %28, %29, %30, %31, %33, %35 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<i1>
  }
}
