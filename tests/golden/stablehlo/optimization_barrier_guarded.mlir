module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i1>, %arg2: tensor<2x3xcomplex<f32>>, %arg3: tensor<5xbf16>, %arg4: tensor<0xf64>) -> (tensor<4xf32>, tensor<i1>, tensor<2x3xcomplex<f32>>, tensor<5xbf16>, tensor<0xf64>) {
    %5, %6, %7, %8, %9 = stablehlo.optimization_barrier %arg0, %arg1, %arg2, %arg3, %arg4 : tensor<4xf32>, tensor<i1>, tensor<2x3xcomplex<f32>>, tensor<5xbf16>, tensor<0xf64>
    %10 = stablehlo.slice %5 [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1xf32>) -> tensor<f32>
    %12 = stablehlo.bitcast_convert %11 : (tensor<f32>) -> tensor<i32>
    %13 = stablehlo.constant dense<32> : tensor<i32>
    %14 = stablehlo.popcnt %12 : tensor<i32>
    %15 = stablehlo.compare LE, %14, %13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %16 = stablehlo.convert %6 : (tensor<i1>) -> tensor<i32>
    %17 = stablehlo.popcnt %16 : tensor<i32>
    %18 = stablehlo.compare LE, %17, %13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %19 = stablehlo.and %15, %18 : tensor<i1>
    %20 = stablehlo.slice %7 [0:1, 0:1] : (tensor<2x3xcomplex<f32>>) -> tensor<1x1xcomplex<f32>>
    %21 = stablehlo.reshape %20 : (tensor<1x1xcomplex<f32>>) -> tensor<complex<f32>>
    %22 = stablehlo.real %21 : (tensor<complex<f32>>) -> tensor<f32>
    %23 = stablehlo.bitcast_convert %22 : (tensor<f32>) -> tensor<i32>
    %24 = stablehlo.popcnt %23 : tensor<i32>
    %25 = stablehlo.compare LE, %24, %13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %26 = stablehlo.and %19, %25 : tensor<i1>
    %27 = stablehlo.slice %8 [0:1] : (tensor<5xbf16>) -> tensor<1xbf16>
    %28 = stablehlo.reshape %27 : (tensor<1xbf16>) -> tensor<bf16>
    %29 = stablehlo.convert %28 : (tensor<bf16>) -> tensor<f32>
    %30 = stablehlo.bitcast_convert %29 : (tensor<f32>) -> tensor<i32>
    %31 = stablehlo.popcnt %30 : tensor<i32>
    %32 = stablehlo.compare LE, %31, %13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %33 = stablehlo.and %26, %32 : tensor<i1>
    %34 = stablehlo.constant dense<0.0> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %36 = stablehlo.select %33, %5, %35 : tensor<i1>, tensor<4xf32>
    %37 = stablehlo.constant dense<false> : tensor<i1>
    %38 = stablehlo.select %33, %6, %37 : tensor<i1>, tensor<i1>
    %39 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
    %40 = stablehlo.broadcast_in_dim %39, dims = [] : (tensor<complex<f32>>) -> tensor<2x3xcomplex<f32>>
    %41 = stablehlo.select %33, %7, %40 : tensor<i1>, tensor<2x3xcomplex<f32>>
    %42 = stablehlo.bitcast_convert %8 : (tensor<5xbf16>) -> tensor<5xui16>
    %43 = stablehlo.constant dense<0> : tensor<ui16>
    %44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<ui16>) -> tensor<5xui16>
    %45 = stablehlo.select %33, %42, %44 : tensor<i1>, tensor<5xui16>
    %46 = stablehlo.bitcast_convert %45 : (tensor<5xui16>) -> tensor<5xbf16>
    %47 = stablehlo.constant dense<0.0> : tensor<f64>
    %48 = stablehlo.broadcast_in_dim %47, dims = [] : (tensor<f64>) -> tensor<0xf64>
    %49 = stablehlo.select %33, %9, %48 : tensor<i1>, tensor<0xf64>
    return %36, %38, %41, %46, %49 : tensor<4xf32>, tensor<i1>, tensor<2x3xcomplex<f32>>, tensor<5xbf16>, tensor<0xf64>
  }
}
