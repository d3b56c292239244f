module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xi1>, %arg10: tensor<3xui8>, %arg22: tensor<3xi32>, %arg34: tensor<3xi64>, %arg46: tensor<3xf16>, %arg58: tensor<3xbf16>, %arg70: tensor<3xf32>, %arg82: tensor<3xf64>, %arg94: tensor<3xcomplex<f32>>, %arg112: tensor<3xcomplex<f64>>, %arg130: tensor<3xf8E4M3FN>, %arg133: tensor<3xf8E5M2>) -> (tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xf32>, tensor<3xf8E4M3FN>, tensor<3xf32>, tensor<3xf8E5M2>) {
    %1 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xui8>
    %2 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xi32>
    %3 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xi64>
    %4 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xf16>
    %5 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xbf16>
    %6 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xf32>
    %7 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xf64>
    %8 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xcomplex<f32>>
    %9 = stablehlo.convert %arg0 : (tensor<3xi1>) -> tensor<3xcomplex<f64>>
    %11 = stablehlo.constant dense<0> : tensor<ui8>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<ui8>) -> tensor<3xui8>
    %13 = stablehlo.compare NE, %arg10, %12, UNSIGNED : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xi1>
    %14 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xi32>
    %15 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xi64>
    %16 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xf16>
    %17 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xbf16>
    %18 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xf32>
    %19 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xf64>
    %20 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xcomplex<f32>>
    %21 = stablehlo.convert %arg10 : (tensor<3xui8>) -> tensor<3xcomplex<f64>>
    %23 = stablehlo.constant dense<0> : tensor<i32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %25 = stablehlo.compare NE, %arg22, %24, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %26 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xui8>
    %27 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xi64>
    %28 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xf16>
    %29 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xbf16>
    %30 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xf32>
    %31 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xf64>
    %32 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xcomplex<f32>>
    %33 = stablehlo.convert %arg22 : (tensor<3xi32>) -> tensor<3xcomplex<f64>>
    %35 = stablehlo.constant dense<0> : tensor<i64>
    %36 = stablehlo.broadcast_in_dim %35, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %37 = stablehlo.compare NE, %arg34, %36, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %38 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xui8>
    %39 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xi32>
    %40 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xf16>
    %41 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xbf16>
    %42 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xf32>
    %43 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xf64>
    %44 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xcomplex<f32>>
    %45 = stablehlo.convert %arg34 : (tensor<3xi64>) -> tensor<3xcomplex<f64>>
    %47 = stablehlo.constant dense<0.0> : tensor<f16>
    %48 = stablehlo.broadcast_in_dim %47, dims = [] : (tensor<f16>) -> tensor<3xf16>
    %49 = stablehlo.compare NE, %arg46, %48, FLOAT : (tensor<3xf16>, tensor<3xf16>) -> tensor<3xi1>
    %50 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xui8>
    %51 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xi32>
    %52 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xi64>
    %53 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xbf16>
    %54 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xf32>
    %55 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xf64>
    %56 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xcomplex<f32>>
    %57 = stablehlo.convert %arg46 : (tensor<3xf16>) -> tensor<3xcomplex<f64>>
    %59 = stablehlo.constant dense<0.0> : tensor<bf16>
    %60 = stablehlo.broadcast_in_dim %59, dims = [] : (tensor<bf16>) -> tensor<3xbf16>
    %61 = stablehlo.compare NE, %arg58, %60, FLOAT : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xi1>
    %62 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xui8>
    %63 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xi32>
    %64 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xi64>
    %65 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xf16>
    %66 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xf32>
    %67 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xf64>
    %68 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xcomplex<f32>>
    %69 = stablehlo.convert %arg58 : (tensor<3xbf16>) -> tensor<3xcomplex<f64>>
    %71 = stablehlo.constant dense<0.0> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %73 = stablehlo.compare NE, %arg70, %72, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %74 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xui8>
    %75 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xi32>
    %76 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xi64>
    %77 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xf16>
    %78 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xbf16>
    %79 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xf64>
    %80 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xcomplex<f32>>
    %81 = stablehlo.convert %arg70 : (tensor<3xf32>) -> tensor<3xcomplex<f64>>
    %83 = stablehlo.constant dense<0.0> : tensor<f64>
    %84 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %85 = stablehlo.compare NE, %arg82, %84, FLOAT : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %86 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xui8>
    %87 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xi32>
    %88 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xi64>
    %89 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xf16>
    %90 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xbf16>
    %91 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xf32>
    %92 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xcomplex<f32>>
    %93 = stablehlo.convert %arg82 : (tensor<3xf64>) -> tensor<3xcomplex<f64>>
    %95 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
    %96 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
    %97 = stablehlo.compare NE, %arg94, %96, FLOAT : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xi1>
    %98 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %99 = stablehlo.convert %98 : (tensor<3xf32>) -> tensor<3xui8>
    %100 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %101 = stablehlo.convert %100 : (tensor<3xf32>) -> tensor<3xi32>
    %102 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %103 = stablehlo.convert %102 : (tensor<3xf32>) -> tensor<3xi64>
    %104 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %105 = stablehlo.convert %104 : (tensor<3xf32>) -> tensor<3xf16>
    %106 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %107 = stablehlo.convert %106 : (tensor<3xf32>) -> tensor<3xbf16>
    %108 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %109 = stablehlo.real %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %110 = stablehlo.convert %109 : (tensor<3xf32>) -> tensor<3xf64>
    %111 = stablehlo.convert %arg94 : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f64>>
    %113 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
    %114 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
    %115 = stablehlo.compare NE, %arg112, %114, FLOAT : (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>) -> tensor<3xi1>
    %116 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %117 = stablehlo.convert %116 : (tensor<3xf64>) -> tensor<3xui8>
    %118 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %119 = stablehlo.convert %118 : (tensor<3xf64>) -> tensor<3xi32>
    %120 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %121 = stablehlo.convert %120 : (tensor<3xf64>) -> tensor<3xi64>
    %122 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %123 = stablehlo.convert %122 : (tensor<3xf64>) -> tensor<3xf16>
    %124 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %125 = stablehlo.convert %124 : (tensor<3xf64>) -> tensor<3xbf16>
    %126 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %127 = stablehlo.convert %126 : (tensor<3xf64>) -> tensor<3xf32>
    %128 = stablehlo.real %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %129 = stablehlo.convert %arg112 : (tensor<3xcomplex<f64>>) -> tensor<3xcomplex<f32>>
    %131 = stablehlo.convert %arg130 : (tensor<3xf8E4M3FN>) -> tensor<3xf32>
    %132 = stablehlo.convert %131 : (tensor<3xf32>) -> tensor<3xf8E4M3FN>
    %134 = stablehlo.convert %arg133 : (tensor<3xf8E5M2>) -> tensor<3xf32>
    %135 = stablehlo.convert %134 : (tensor<3xf32>) -> tensor<3xf8E5M2>
    return %1, %2, %3, %4, %5, %6, %7, %8, %9, %13, %14, %15, %16, %17, %18, %19, %20, %21, %25, %26, %27, %28, %29, %30, %31, %32, %33, %37, %38, %39, %40, %41, %42, %43, %44, %45, %49, %50, %51, %52, %53, %54, %55, %56, %57, %61, %62, %63, %64, %65, %66, %67, %68, %69, %73, %74, %75, %76, %77, %78, %79, %80, %81, %85, %86, %87, %88, %89, %90, %91, %92, %93, %97, %99, %101, %103, %105, %107, %108, %110, %111, %115, %117, %119, %121, %123, %125, %127, %128, %129, %131, %132, %134, %135 : tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f64>>, tensor<3xi1>, tensor<3xui8>, tensor<3xi32>, tensor<3xi64>, tensor<3xf16>, tensor<3xbf16>, tensor<3xf32>, tensor<3xf64>, tensor<3xcomplex<f32>>, tensor<3xf32>, tensor<3xf8E4M3FN>, tensor<3xf32>, tensor<3xf8E5M2>
  }
}
