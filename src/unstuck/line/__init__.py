"""The product: stages, the loop, the pool, landing, resuming and operating a run."""
