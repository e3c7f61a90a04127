"""Networks of torch: files, devices, classifiers and their last layers, and encoders of other libraries built on it."""
