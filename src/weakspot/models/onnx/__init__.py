"""ONNX files: sessions and what computes them, classifiers, pairs of encoders, and their last layers."""
