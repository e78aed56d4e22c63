"""Models <-> files: the model file, JSON, C and ONNX."""
