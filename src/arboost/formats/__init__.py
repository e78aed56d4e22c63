"""Models as files: the model file, JSON, C, ONNX."""
