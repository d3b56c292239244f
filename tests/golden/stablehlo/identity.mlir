module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<i1>, tensor<i1>, tensor<i1>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<i1>, tensor<i1>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.constant dense<1.0> : tensor<f32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %7 = stablehlo.constant dense<2147483647> : tensor<i32>
    %8 = stablehlo.constant dense<0> : tensor<ui8>
    %9 = stablehlo.constant dense<1> : tensor<ui8>
    %10 = stablehlo.constant dense<255> : tensor<ui8>
    %11 = stablehlo.constant dense<false> : tensor<i1>
    %12 = stablehlo.constant dense<true> : tensor<i1>
    %13 = stablehlo.constant dense<-1> : tensor<i32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %8, %10, %11, %12, %11, %12, %13, %4, %10, %8, %12, %11 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<i1>, tensor<i1>, tensor<i1>, tensor<i1>, tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<i1>, tensor<i1>
  }
}
