module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f64>
    %1 = stablehlo.constant dense<-0.0> : tensor<f64>
    %2 = stablehlo.constant dense<1.0> : tensor<f64>
    %3 = stablehlo.constant dense<0.1> : tensor<f64>
    %4 = stablehlo.constant dense<-2.5> : tensor<f64>
    %5 = stablehlo.constant dense<1.0e+30> : tensor<f64>
    %6 = stablehlo.constant dense<3.0e-320> : tensor<f64>
    %7 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %8 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %9 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %10 = stablehlo.constant dense<0.0> : tensor<f32>
    %11 = stablehlo.constant dense<-0.0> : tensor<f32>
    %12 = stablehlo.constant dense<1.0> : tensor<f32>
    %13 = stablehlo.constant dense<0.1> : tensor<f32>
    %14 = stablehlo.constant dense<-2.5> : tensor<f32>
    %15 = stablehlo.constant dense<1.0e+30> : tensor<f32>
    %16 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %18 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %19 = stablehlo.constant dense<0.0> : tensor<bf16>
    %20 = stablehlo.constant dense<-0.0> : tensor<bf16>
    %21 = stablehlo.constant dense<1.0> : tensor<bf16>
    %22 = stablehlo.constant dense<0.100097656> : tensor<bf16>
    %23 = stablehlo.constant dense<-2.5> : tensor<bf16>
    %24 = stablehlo.constant dense<1.00025555e+30> : tensor<bf16>
    %25 = stablehlo.constant dense<0x7F80> : tensor<bf16>
    %26 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %27 = stablehlo.constant dense<0x7FC0> : tensor<bf16>
    %28 = stablehlo.constant dense<0.0> : tensor<f16>
    %29 = stablehlo.constant dense<-0.0> : tensor<f16>
    %30 = stablehlo.constant dense<1.0> : tensor<f16>
    %31 = stablehlo.constant dense<0.099975586> : tensor<f16>
    %32 = stablehlo.constant dense<-2.5> : tensor<f16>
    %33 = stablehlo.constant dense<0x7C00> : tensor<f16>
    %34 = stablehlo.constant dense<0xFC00> : tensor<f16>
    %35 = stablehlo.constant dense<0x7E00> : tensor<f16>
    %36 = stablehlo.constant dense<0.0> : tensor<f8E5M2>
    %37 = stablehlo.constant dense<-0.0> : tensor<f8E5M2>
    %38 = stablehlo.constant dense<1.0> : tensor<f8E5M2>
    %39 = stablehlo.constant dense<0.09375> : tensor<f8E5M2>
    %40 = stablehlo.constant dense<-2.5> : tensor<f8E5M2>
    %41 = stablehlo.constant dense<0x7C> : tensor<f8E5M2>
    %42 = stablehlo.constant dense<0xFC> : tensor<f8E5M2>
    %43 = stablehlo.constant dense<0x7E> : tensor<f8E5M2>
    %44 = stablehlo.constant dense<0.0> : tensor<f8E4M3FN>
    %45 = stablehlo.constant dense<-0.0> : tensor<f8E4M3FN>
    %46 = stablehlo.constant dense<1.0> : tensor<f8E4M3FN>
    %47 = stablehlo.constant dense<0.1015625> : tensor<f8E4M3FN>
    %48 = stablehlo.constant dense<-2.5> : tensor<f8E4M3FN>
    %49 = stablehlo.constant dense<0x7F> : tensor<f8E4M3FN>
    %50 = stablehlo.constant dense<-448.0> : tensor<f8E4M3FN>
    %51 = stablehlo.constant dense<448.0> : tensor<f8E4M3FN>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %8, %7, %10, %11, %12, %13, %14, %15, %10, %16, %17, %18, %17, %16, %19, %20, %21, %22, %23, %24, %19, %25, %26, %27, %26, %25, %28, %29, %30, %31, %32, %33, %28, %33, %34, %35, %34, %33, %36, %37, %38, %39, %40, %41, %36, %41, %42, %43, %42, %41, %44, %45, %46, %47, %48, %49, %44, %49, %49, %49, %50, %51 : tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<bf16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f16>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E5M2>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>, tensor<f8E4M3FN>
  }
}
