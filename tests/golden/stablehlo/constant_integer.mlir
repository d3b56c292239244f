module @"torch_pjrt" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<i1>, tensor<i1>, tensor<i1>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>) {
    %0 = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.constant dense<false> : tensor<i1>
    %2 = stablehlo.constant dense<-1> : tensor<i8>
    %3 = stablehlo.constant dense<44> : tensor<i8>
    %4 = stablehlo.constant dense<7> : tensor<i8>
    %5 = stablehlo.constant dense<-128> : tensor<i8>
    %6 = stablehlo.constant dense<127> : tensor<i8>
    %7 = stablehlo.constant dense<3> : tensor<i8>
    %8 = stablehlo.constant dense<-1> : tensor<i16>
    %9 = stablehlo.constant dense<300> : tensor<i16>
    %10 = stablehlo.constant dense<7> : tensor<i16>
    %11 = stablehlo.constant dense<-32768> : tensor<i16>
    %12 = stablehlo.constant dense<32767> : tensor<i16>
    %13 = stablehlo.constant dense<3> : tensor<i16>
    %14 = stablehlo.constant dense<-1> : tensor<i32>
    %15 = stablehlo.constant dense<300> : tensor<i32>
    %16 = stablehlo.constant dense<7> : tensor<i32>
    %17 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %18 = stablehlo.constant dense<2147483647> : tensor<i32>
    %19 = stablehlo.constant dense<3> : tensor<i32>
    %20 = stablehlo.constant dense<-1> : tensor<i64>
    %21 = stablehlo.constant dense<300> : tensor<i64>
    %22 = stablehlo.constant dense<7> : tensor<i64>
    %23 = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
    %24 = stablehlo.constant dense<9223372036854775807> : tensor<i64>
    %25 = stablehlo.constant dense<3> : tensor<i64>
    %26 = stablehlo.constant dense<255> : tensor<ui8>
    %27 = stablehlo.constant dense<44> : tensor<ui8>
    %28 = stablehlo.constant dense<7> : tensor<ui8>
    %29 = stablehlo.constant dense<0> : tensor<ui8>
    %30 = stablehlo.constant dense<3> : tensor<ui8>
    %31 = stablehlo.constant dense<65535> : tensor<ui16>
    %32 = stablehlo.constant dense<300> : tensor<ui16>
    %33 = stablehlo.constant dense<7> : tensor<ui16>
    %34 = stablehlo.constant dense<0> : tensor<ui16>
    %35 = stablehlo.constant dense<3> : tensor<ui16>
    %36 = stablehlo.constant dense<4294967295> : tensor<ui32>
    %37 = stablehlo.constant dense<300> : tensor<ui32>
    %38 = stablehlo.constant dense<7> : tensor<ui32>
    %39 = stablehlo.constant dense<0> : tensor<ui32>
    %40 = stablehlo.constant dense<3> : tensor<ui32>
    %41 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    %42 = stablehlo.constant dense<300> : tensor<ui64>
    %43 = stablehlo.constant dense<7> : tensor<ui64>
    %44 = stablehlo.constant dense<0> : tensor<ui64>
    %45 = stablehlo.constant dense<3> : tensor<ui64>
    return %0, %1, %0, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %26, %30, %31, %32, %33, %34, %31, %35, %36, %37, %38, %39, %36, %40, %41, %42, %43, %44, %41, %45 : tensor<i1>, tensor<i1>, tensor<i1>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i8>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui8>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui16>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>, tensor<ui64>
  }
}
