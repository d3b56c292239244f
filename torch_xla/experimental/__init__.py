"""Names that were experimental in earlier releases of the `torch_xla` API and that libraries still import."""
