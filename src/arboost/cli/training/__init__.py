"""Steps of a training command: task, hold-out rows, fit, scores."""
